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
from dataclasses import replace
from pathlib import Path
from typing import Final

from client.index.files import (
    IndexCorruptError,
    private_directory,
    remove_tree,
    sync_directory,
    write_json,
)
from client.index.generation import Generation, Versions, read_manifest

_CURRENT: Final = "CURRENT"
_NAME: Final = re.compile(r"gen-(\d{8})")


class Shelf:
    """One Project's generations. ``fault`` says what was found broken last, in words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.current: Generation | None = None
        self.fault: str | None = None
        self._former: str | None = None
        self._readers: Counter[str] = Counter()

    def open(self) -> None:
        """Open the newest generation that is whole, after removing what a crash may have left."""
        for leftover in self.folder.glob("building-*"):
            remove_tree(leftover)
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

    def lend(self) -> Generation | None:
        """Count a reader of the serving generation and return it."""
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

    def publish(self, building: Path, generation: Generation) -> Generation:
        """Make a finished build the serving generation, in one step as a reader or a crash sees it.

        Raises:
            OSError: the disk refuses; the former generation goes on serving.
            IndexCorruptError: it cannot be read at its new place.
        """
        name = f"gen-{self._next_serial():08d}"
        target = self.folder / name
        building.rename(target)
        sync_directory(self.folder)
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
        self.open()
        self.fault = fault

    def _checked(self, name: str) -> Generation:
        folder = self.folder / name
        ours = Versions.current("", 0, 0)
        theirs = replace(read_manifest(folder).versions, embedder="", dimensions=0, token_dimensions=0)
        if theirs != ours:
            raise IndexCorruptError("it was made by another version of the indexer")
        return Generation.open(folder)

    def _candidates(self) -> list[str]:
        """Return generations' names: the pointer's first, then newest first."""
        found = sorted(path.name for path in self.folder.glob("gen-*") if _NAME.fullmatch(path.name))[::-1]
        try:
            pointer = json.loads((self.folder / _CURRENT).read_bytes())
            named = [pointer["current"], pointer["former"]]
        except (OSError, ValueError, KeyError, TypeError):
            return found
        # A newer folder than the pointer's was renamed but never published.
        return [name for name in named if name in found]

    def _quarantine(self, name: str, error: IndexCorruptError) -> None:
        self.fault = f"The search index was broken and is built again: {error}."
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
        return 1 + max(serials, default=0)
