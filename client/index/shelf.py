"""The generations of one Project on disk: which serves, which served before, and which are gone.

::

    building-N ──checked, renamed──▶ gen-N ──CURRENT──▶ serves ──next published──▶ former ──▶ deleted
                                       └── found broken ──▶ quarantine-gen-N (until the next is published)

At most two generations are kept; an older one that somebody still reads is deleted when its last
reader lets go. Used under the manager's lock, except for what it says of building.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from client.index.files import (
    IndexCorruptError,
    IndexOutdatedError,
    private_directory,
    remove_tree,
    sync_directory,
    write_json,
)
from client.index.generation import Generation
from client.index.manifest import Versions, read_manifest

_CURRENT: Final = "CURRENT"
_NAME: Final = re.compile(r"gen-(\d{8})")


class Shelf:
    """One Project's generations. ``fault`` says what was found broken since the last build, in words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.current: Generation | None = None
        self.fault: str | None = None
        self._former: str | None = None
        self._readers: Counter[str] = Counter()
        self._serial = 0
        """Number of the generation published last by this process."""

    def open(self) -> None:
        """Open the newest generation that is whole, after removing what a crash may have left."""
        for leftover in self.folder.glob("building-*"):
            remove_tree(leftover)
        self._choose()

    def check(self) -> None:
        """Notice when files of the serving generation changed since they were opened."""
        if self.current is not None:
            try:
                self.current.check()
            except IndexCorruptError as error:
                self.doubt(self.current, error)

    def lend(self) -> Generation | None:
        """Count a reader of the serving generation, which is checked first, and return it."""
        self.check()
        if self.current is not None:
            self._readers[self.current.name] += 1
        return self.current

    def take_back(self, generation: Generation) -> None:
        """Count a reader less; delete what nobody needs any more."""
        self._readers[generation.name] -= 1
        if not self._readers[generation.name]:
            del self._readers[generation.name]
            self._sweep()

    def building_folder(self) -> Path:
        """Return a new empty folder to build in."""
        folder = self.folder / f"building-{self._next_serial():08d}"
        remove_tree(folder)
        return private_directory(folder)

    def publish(
        self, building: Path, generation: Generation, checkpoint: Callable[[str], None] = lambda _: None
    ) -> Generation:
        """Make a finished build the serving generation, in one step as a reader or a crash sees it.

        Raises:
            OSError: the disk refuses; the former generation goes on serving.
            IndexCorruptError: it cannot be read at its new place.
        """
        # Kept, because readers know generations by name: after all folders were deleted none comes again.
        self._serial = self._next_serial()
        name = f"gen-{self._serial:08d}"
        target = self.folder / name
        building.rename(target)
        sync_directory(self.folder)
        checkpoint("renamed")
        generation.move_to(target)
        former = self.current.name if self.current else None
        write_json(self.folder / _CURRENT, {"current": name, "former": former})
        self.current, self._former = generation, former
        for broken in self.folder.glob("quarantine-*"):
            remove_tree(broken)
        self._sweep()
        return generation

    def set_aside(self, generation: Generation, error: IndexCorruptError) -> None:
        """Take a generation that broke while it served out of service; the former one serves again."""
        if self.current is not generation:
            return
        self.current = None
        self._quarantine(generation.name, error)
        fault = self.fault
        self._choose()
        self.fault = fault

    def doubt(self, generation: Generation, error: IndexCorruptError) -> None:
        """Read a generation's files anew: when it is whole it goes on serving, else the former one does."""
        if self.current is not generation:
            return
        self.current = None
        chosen = self._choose()
        if chosen is None or chosen.name != generation.name:
            self.fault = self.fault or _said(error)

    def _choose(self) -> Generation | None:
        """Open the newest generation that is whole and return it; broken ones go into quarantine."""
        pointer = self._pointer()
        if pointer and not (self.folder / pointer[0]).is_dir():
            self.fault = self.fault or _said(IndexCorruptError("its folder is missing"))
        self._former = None
        for name in self._candidates():
            try:
                self.current = self._checked(name)
            except IndexCorruptError as error:
                self._quarantine(name, error)
                continue
            others = [other for other in self._candidates() if other != name]
            self._former = others[0] if others else None
            break
        self._sweep()
        return self.current

    def _checked(self, name: str) -> Generation:
        folder = self.folder / name
        ours = Versions.current("", 0, 0)
        theirs = replace(read_manifest(folder).versions, embedder="", dimensions=0, token_dimensions=0)
        if theirs != ours:
            raise IndexOutdatedError("it was made by another version of the indexer")
        return Generation.open(folder)

    def _candidates(self) -> list[str]:
        """Return generations' names: the pointer's first, then newest first."""
        found = sorted(path.name for path in self.folder.glob("gen-*") if _NAME.fullmatch(path.name))[::-1]
        # A newer folder than the pointer's was renamed but never published.
        pointer = self._pointer()
        return found if pointer is None else [name for name in pointer if name in found]

    def _pointer(self) -> list[str] | None:
        """Return the names that the pointer holds, the serving one first; none when it is broken."""
        try:
            value = json.loads((self.folder / _CURRENT).read_bytes())
            names = [value["current"]] + ([] if value["former"] is None else [value["former"]])
            return names if all(_NAME.fullmatch(name) for name in names) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _quarantine(self, name: str, error: IndexCorruptError) -> None:
        self.fault = _said(error)
        target = self.folder / f"quarantine-{name}"
        remove_tree(target)
        try:
            (self.folder / name).rename(target)
        except OSError:
            remove_tree(self.folder / name)

    def _sweep(self) -> None:
        keep = {self._former, *self._readers}
        if self.current is not None:
            keep.add(self.current.name)
        for path in self.folder.glob("gen-*"):
            if path.name not in keep:
                remove_tree(path)

    def _next_serial(self) -> int:
        serials = (int(match[1]) for path in self.folder.glob("*gen-*") if (match := _NAME.search(path.name)))
        return 1 + max([self._serial, *serials])


def _said(error: IndexCorruptError) -> str:
    if isinstance(error, IndexOutdatedError):
        return f"The search index is built again: {error}."
    return f"The search index was broken and is built again: {error}."
