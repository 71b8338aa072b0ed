"""A generation: one immutable index of one Project's Effective Memory, as files and as an open object.

::

    <project>/CURRENT                 names the generation that serves, and the former one
    <project>/<generation>/manifest.json   what it was made of, and the digest of every file
                          /units.jsonl     resources and their units, without any text
                          /lexical/        Tantivy
                          /vectors/        segments
    <project>/building-…              being built; worthless after a crash
    <project>/quarantine-…            found broken; kept until the next one is published

It holds no text: what is returned is always cut from the Effective Memory of the moment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np

from client.domain.chunking import Unit, text_hash
from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.index.files import (
    SYSTEM_FAULTS,
    FileMark,
    IndexCorruptError,
    digest_of,
    files_below,
    mark_of,
    write_durably,
)
from client.index.lexical import LexicalIndex
from client.index.manifest import MANIFEST, Manifest, read_manifest
from client.index.vectors import Segment, VectorTable

UNITS: Final = "units.jsonl"
LEXICAL: Final = "lexical"
VECTORS: Final = "vectors"


@dataclass(frozen=True, slots=True)
class IndexedUnit:
    """One unit as the index knows it; ``place`` is its vector segment and row."""

    uid: int
    unit_key: str
    heading_path: tuple[str, ...]
    kind: Literal["description", "body"]
    chars: tuple[int, int]
    span: tuple[int, int]
    content_hash: str
    tokens: int
    lengths: tuple[int, int, int]
    holds_cjk: bool
    passage: str
    place: tuple[int, int]

    def as_unit(self, resource: EffectiveResource) -> Unit:
        """Return the unit with its text, cut from an unchanged resource."""
        source = resource.body if self.kind == "body" else resource.description
        return Unit(
            self.unit_key,
            resource.resource_id,
            resource.path,
            resource.title,
            self.heading_path,
            self.kind,
            source[self.chars[0] : self.chars[1]],
            self.chars,
            self.span,
            self.content_hash,
            self.tokens,
        )


@dataclass(frozen=True, slots=True)
class IndexedResource:
    """One resource as it was indexed: what tells whether it changed, and its units in order."""

    resource_id: str
    signature: str
    units: tuple[IndexedUnit, ...]


class Generation:
    """An open generation; safe to read from any thread, never changed once it is published."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        resources: Mapping[str, IndexedResource],
        marks: Mapping[str, FileMark | None],
    ) -> None:
        """``marks`` are the files by name as they were when their contents were compared."""
        self.folder = folder
        self.manifest = manifest
        self.resources = resources
        self._marks = marks
        self.units: list[IndexedUnit] = []
        self.owners: list[str] = []
        self.first_unit: dict[str, int] = {}
        for resource in resources.values():
            self.first_unit[resource.resource_id] = len(self.units)
            self.units.extend(resource.units)
            self.owners.extend([resource.resource_id] * len(resource.units))
        if len(self.units) != manifest.units:
            raise IndexCorruptError("the manifest counts other units")
        self.lexical = LexicalIndex(folder / LEXICAL)
        if len(self.lexical) != len(self.units):
            raise IndexCorruptError("the lexical index holds other units")
        versions = manifest.versions
        segments = [
            Segment(folder / VECTORS, info, versions.dimensions, versions.token_dimensions)
            for info in manifest.segments
        ]
        places = np.array([unit.place for unit in self.units], dtype=np.int64).reshape(-1, 2)
        self.vectors = VectorTable(segments, places)
        self.cjk = np.array([unit.holds_cjk for unit in self.units], dtype=bool)
        self.made_of: EffectiveMemory | None = None
        """A memory of this process that shows what is indexed, once one was seen: others are compared
        with it in the time of their differences."""
        self.number_of_uid = {unit.uid: number for number, unit in enumerate(self.units)}

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def revision(self) -> str:
        """What an answer calls the index: ``search_`` and a hash of content and versions."""
        return f"search_{text_hash(self.manifest.memory_hash + repr(self.manifest.versions))[7:23]}"

    @property
    def verified(self) -> frozenset[str]:
        """Digests that were compared with the files' contents."""
        return frozenset(self.manifest.files.values())

    def move_to(self, folder: Path) -> None:
        """Follow the folder to its final place, before the first reader."""
        self.folder = folder
        self.lexical = LexicalIndex(folder / LEXICAL)

    def check(self) -> None:
        """Make sure that the files are still those that were opened: one ``stat`` each, no reading.

        They are mapped into memory, so that reading one that was cut short would end the process.

        Raises:
            IndexCorruptError: a file is gone, was replaced or was written to.
        """
        folder = f"{self.folder}{os.sep}"
        for name, mark in self._marks.items():
            found = mark_of(folder + name)
            if found is None or found != mark:
                raise IndexCorruptError(f"{name} was changed or removed")

    def warm(self, made_of: EffectiveMemory) -> None:
        """Note the memory that is indexed, and make now what the next answer would have to make first."""
        self.made_of = made_of
        _ = self.average_lengths, self.number_of_passage

    @cached_property
    def average_lengths(self) -> tuple[float, float, float]:
        """Average terms in each lexical field."""
        if not self.units:
            return (1.0, 1.0, 1.0)
        path, headings, body = np.array([unit.lengths for unit in self.units]).mean(axis=0).tolist()
        return (path, headings, body)

    @cached_property
    def number_of_passage(self) -> Mapping[str, int]:
        """Unit numbers by passage hash."""
        return {unit.passage: number for number, unit in enumerate(self.units)}

    @classmethod
    def open(
        cls,
        folder: Path,
        trusted: frozenset[str] = frozenset(),
        resources: Mapping[str, IndexedResource] | None = None,
    ) -> Generation:
        """Open a generation and check every file against the manifest.

        ``trusted`` are digests of files known to be good, because this process wrote or verified them
        and the folder shares them; they are not read again. ``resources`` are those of the folder where
        this process wrote them: reading a large list takes longer than all the rest.

        Raises:
            IndexCorruptError: something is missing, changed, or made by other versions of the code.
        """
        manifest = read_manifest(folder)
        found = files_below(folder)
        # Before they are read: what is written to them from here on is found by `check`.
        marks = {name: mark_of(path) for name, path in found.items()}
        found.pop(MANIFEST, None)
        if set(found) != set(manifest.files):
            raise IndexCorruptError("files are missing or were added")
        for name, path in found.items():
            expected = manifest.files[name]
            if expected not in trusted and _digest(path) != expected:
                raise IndexCorruptError(f"{name} was changed")
        if resources is None:
            resources = dict(_read_units(folder / UNITS))
        if len(resources) != manifest.resources:
            raise IndexCorruptError("the manifest counts other resources")
        return cls(folder, manifest, resources, marks)


def _digest(path: Path) -> str:
    try:
        return digest_of(path)
    except OSError as error:
        if error.errno in SYSTEM_FAULTS:
            raise
        raise IndexCorruptError(f"{path.name} cannot be read") from error


def write_units(folder: Path, resources: Mapping[str, IndexedResource]) -> None:
    """Write the list of resources and units, durably."""
    lines = (
        json.dumps(
            [
                resource.resource_id,
                resource.signature,
                [[getattr(unit, name) for name in _UNIT_FIELDS] for unit in resource.units],
            ],
            ensure_ascii=True,
            separators=(",", ":"),
        )
        for resource in resources.values()
    )
    write_durably(folder / UNITS, "".join(f"{line}\n" for line in lines).encode("ascii"))


_UNIT_FIELDS: Final = tuple(IndexedUnit.__slots__)
_TUPLES: Final = ("heading_path", "chars", "span", "lengths", "place")


def _read_units(path: Path) -> Iterator[tuple[str, IndexedResource]]:
    places = [_UNIT_FIELDS.index(name) for name in _TUPLES]
    try:
        with path.open("rb") as file:
            for line in file:
                resource_id, signature, rows = json.loads(line)
                for row in rows:
                    for place in places:
                        row[place] = tuple(row[place])
                units = tuple(IndexedUnit(*row) for row in rows)
                yield resource_id, IndexedResource(resource_id, signature, units)
    except (OSError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, OSError) and error.errno in SYSTEM_FAULTS:
            raise
        raise IndexCorruptError("the list of units cannot be read") from error
