"""One Project's index as the manager keeps it, and its status."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

from client.index.shelf import Shelf
from shared_schema.errors import InterleafError, Kind

State = Literal["none", "building", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """Where a Project's index stands. ``done`` and ``total`` count units with vectors."""

    generation: str | None
    index_revision: str | None
    state: State
    done: int
    total: int
    lag: bool
    """A change waits or is being indexed."""
    error: str | None
    """What failed or was found broken last, in words; none once a build succeeded."""
    error_code: str | None


@dataclass(slots=True)
class ProjectIndex:
    """One Project's generations and where its builds stand. ``lock`` guards all of it."""

    project_id: str
    shelf: Shelf
    dirty: bool = False
    forced: bool = False
    building: bool = False
    forgotten: bool = False
    done: int = 0
    total: int = 0
    error: InterleafError | None = None
    failures: int = 0
    due: float = 0.0
    """Monotonic seconds before which a failed build is not tried again."""
    lock: Lock = field(default_factory=Lock)
    opened: bool = False
    refused: str | None = None
    """Why it could not be opened, in words; no fault of its files."""

    @property
    def wanting(self) -> bool:
        """Whether it was found broken or could not be read, so that it has to be built or opened again."""
        return self.refused is not None or self.shelf.fault is not None

    @property
    def idle(self) -> bool:
        """Whether no build runs, waits, or waits to be tried again."""
        return not (self.dirty or self.building)

    def open(self) -> None:
        """Open the newest whole generation, once; where the system refuses, the next call tries again."""
        with self.lock:
            if self.opened:
                return
            try:
                self.shelf.open()
            except OSError as error:
                self.refused = f"The search index cannot be read: {error.strerror}."
                return
            self.opened, self.refused = True, None
            if self.shelf.current is not None:
                self.done = self.total = self.shelf.current.manifest.units

    def status(self) -> IndexStatus:
        """Tell where it stands."""
        with self.lock:
            generation = self.shelf.current
            if self.building:
                state: State = "building"
            elif self.error is not None and self.error.kind is not Kind.NOT_READY:
                state = "failed"
            else:
                state = "ready" if generation is not None else "none"
            return IndexStatus(
                generation.name if generation else None,
                generation.revision if generation else None,
                state,
                self.done,
                self.total,
                self.dirty or self.building,
                self.error.message if self.error else self.refused or self.shelf.fault,
                self.error.code.value if self.error else None,
            )
