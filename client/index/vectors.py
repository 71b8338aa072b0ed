"""Vectors of a generation: immutable segments of memory-mapped matrices.

A segment holds pooled vectors (float32), token vectors (int8 with one float16 scale a token) and where
each row's tokens lie. A generation is a few segments; the next one shares those that it keeps using and
adds one, so that a small change writes little. Search is exact: one matrix product a segment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import numpy as np
from numpy.typing import NDArray

from client.domain.embedding import PassageVectors
from client.index.files import SYSTEM_FAULTS, IndexCorruptError

PARTS: Final = ("pooled", "tokens", "scales", "offsets")


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """What a manifest says about a segment."""

    name: str
    rows: int
    tokens: int


class Segment:
    """An open segment; safe to read from any thread."""

    def __init__(self, folder: Path, info: SegmentInfo, dimensions: int, token_dimensions: int) -> None:
        self.info = info
        self._pooled = _mapped(folder / f"{info.name}.pooled", np.float32, (info.rows, dimensions))
        self._tokens = _mapped(folder / f"{info.name}.tokens", np.int8, (info.tokens, token_dimensions))
        self._scales = _mapped(folder / f"{info.name}.scales", np.float16, (info.tokens,))
        self._offsets = np.array(_mapped(folder / f"{info.name}.offsets", np.int64, (info.rows + 1,)))
        if (
            self._offsets[0] != 0
            or self._offsets[-1] != info.tokens
            or (len(self._offsets) > 1 and np.any(np.diff(self._offsets) < 0))
        ):
            raise IndexCorruptError(f"vector segment {info.name} has broken offsets")

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return float32 [rows]: the pooled vectors' products with the query's."""
        return np.asarray(self._pooled @ query, dtype=np.float32)

    def row(self, row: int) -> PassageVectors:
        """Return one row's vectors, views of the mapped files."""
        start, end = int(self._offsets[row]), int(self._offsets[row + 1])
        return PassageVectors(self._pooled[row], self._tokens[start:end], self._scales[start:end])


class SegmentWriter:
    """Writes a new segment row by row; nothing of it is held in memory but the offsets."""

    def __init__(self, folder: Path, name: str, dimensions: int, token_dimensions: int) -> None:
        self._folder = folder
        self._name = name
        self._shape = (dimensions, token_dimensions)
        self._files: dict[str, BinaryIO] = {part: _create(folder / f"{name}.{part}") for part in PARTS}
        self._offsets = [0]

    @property
    def rows(self) -> int:
        """Rows written."""
        return len(self._offsets) - 1

    def append(self, vectors: PassageVectors) -> int:
        """Write one row and return its number.

        Raises:
            ValueError: shapes that are not this segment's.
        """
        dimensions, token_dimensions = self._shape
        count = len(vectors.tokens)
        shapes = (vectors.pooled.shape, vectors.tokens.shape[1:], vectors.scales.shape)
        if shapes != ((dimensions,), (token_dimensions,), (count,)):
            raise ValueError(f"vectors of shapes {shapes} in a segment of {self._shape}")
        self._files["pooled"].write(np.ascontiguousarray(vectors.pooled, np.float32).tobytes())
        self._files["tokens"].write(np.ascontiguousarray(vectors.tokens, np.int8).tobytes())
        self._files["scales"].write(np.ascontiguousarray(vectors.scales, np.float16).tobytes())
        self._offsets.append(self._offsets[-1] + count)
        return self.rows - 1

    def finish(self) -> SegmentInfo:
        """Bring the segment to disk and describe it."""
        self._files["offsets"].write(np.array(self._offsets, dtype=np.int64).tobytes())
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        self._close()
        return SegmentInfo(self._name, self.rows, self._offsets[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        with ExitStack() as closing:  # Where the disk is full each of them may fail.
            for file in self._files.values():
                closing.callback(file.close)


class VectorTable:
    """The vectors of a generation's units, by unit number."""

    def __init__(self, segments: Iterable[Segment], places: NDArray[np.int64]) -> None:
        """``places`` is int64 [units, 2]: segment and row of each unit."""
        self._segments = list(segments)
        self._places = places
        for number, segment in enumerate(self._segments):
            rows = places[places[:, 0] == number, 1]
            if len(rows) and (rows.min() < 0 or rows.max() >= segment.info.rows):
                raise IndexCorruptError("a unit points outside its vector segment")
        if len(places) and (places[:, 0].min() < 0 or places[:, 0].max() >= len(self._segments)):
            raise IndexCorruptError("a unit points outside the vector segments")
        # Which units lie in a segment, and in which of its rows.
        self._members = [np.flatnonzero(places[:, 0] == n) for n in range(len(self._segments))]
        self._rows = [np.ascontiguousarray(places[members, 1]) for members in self._members]

    def __len__(self) -> int:
        return len(self._places)

    def cosines(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return float32 [units]: every unit's cosine to the query."""
        scores = np.empty(len(self._places), dtype=np.float32)
        for segment, members, rows in zip(self._segments, self._members, self._rows, strict=True):
            if len(members):
                scores[members] = segment.cosines(query)[rows]
        return scores

    def unit(self, number: int) -> PassageVectors:
        """Return one unit's vectors."""
        segment, row = self._places[number]
        return self._segments[int(segment)].row(int(row))


def _mapped(path: Path, kind: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
    expected = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
    try:
        size = path.stat().st_size
        if size != expected:
            raise IndexCorruptError(f"{path.name} has {size} bytes instead of {expected}")
        if not expected:  # An empty file cannot be mapped.
            return np.empty(shape, dtype=kind)
        # A plain array over the map: indexing numpy.memmap itself costs far more.
        return np.asarray(np.memmap(path, dtype=kind, mode="r", shape=shape))
    except OSError as error:
        if error.errno in SYSTEM_FAULTS:
            raise
        raise IndexCorruptError(f"{path.name} cannot be read") from error


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", 1 << 18)
