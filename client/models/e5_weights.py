"""Reader of the 4-bit weights file of multilingual-e5-small (magic ``E5S1``).

Layout, little-endian: magic, version, seven int32 sizes (hidden, layers, heads, feed-forward,
vocabulary, positions, type vocabulary), float32 epsilon, int32 block size; the unigram pieces; a list
of merges; a directory of named tensors; then the tensors. A vector is float32. A matrix is Q4_0: per
row, blocks of 32 weights, each a float16 scale and 16 bytes of nibbles, where the low nibbles are
weights 0-15, the high ones 16-31, and a weight is ``(nibble - 8) * scale``.

The file comes from outside: every size is checked before memory is taken.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

_MAGIC: Final = b"E5S1"
_BLOCK: Final = 32
_BLOCK_BYTES: Final = 18
_MAX_TENSORS: Final = 10_000


class WeightsError(ValueError):
    """The file is not a weights file of the expected layout."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the network."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    type_vocabulary: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Quantised:
    """A matrix [r, c]: nibbles uint8 [r, c/32, 32] and scales float16 [r, c/32]."""

    nibbles: NDArray[np.uint8]
    scales: NDArray[np.float16]

    def packed(self) -> NDArray[np.uint8]:
        """Return uint8 [rows, columns/2] with neighbours in one byte, the even column in the low half."""
        pairs = self.nibbles[..., 0::2] | (self.nibbles[..., 1::2] << 4)
        return np.ascontiguousarray(pairs.reshape(pairs.shape[0], -1))

    def dense(self) -> NDArray[np.float32]:
        """Return float32 [rows, columns]."""
        centred = self.nibbles.astype(np.float32) - 8.0
        values = centred * self.scales.astype(np.float32)[..., None]
        return np.asarray(values.reshape(values.shape[0], -1), dtype=np.float32)


class E5Weights:
    """The tensors of one file, read on demand from one buffer.

    Raises:
        WeightsError: on a wrong magic, a size out of bounds, an unknown tensor.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._offset = 0
        self.shape = self._read_header()
        self._skip_pieces()
        self._tensors = self._read_directory()

    @classmethod
    def from_file(cls, path: Path) -> E5Weights:
        """Read the whole file (72 MB) into memory."""
        return cls(path.read_bytes())

    def vector(self, name: str) -> NDArray[np.float32]:
        """Return a float32 vector."""
        start, size = self._locate(name)
        if size % 4:
            raise WeightsError(f"the tensor {name} is not a float32 vector")
        return np.frombuffer(self._data[start : start + size], dtype="<f4").astype(np.float32)

    def matrix(self, name: str, rows: int, columns: int) -> Quantised:
        """Return a Q4_0 matrix of ``rows`` times ``columns``."""
        start, size = self._locate(name)
        blocks = columns // _BLOCK
        if size != rows * blocks * _BLOCK_BYTES:
            raise WeightsError(f"the tensor {name} is not a 4-bit matrix of {rows} x {columns}")
        raw = np.frombuffer(self._data[start : start + size], dtype=np.uint8)
        raw = raw.reshape(rows, blocks, _BLOCK_BYTES)
        scales = raw[..., :2].copy().view("<f2")[..., 0].astype(np.float16)
        packed = raw[..., 2:]
        return Quantised(np.concatenate([packed & 15, packed >> 4], axis=-1), scales)

    def _locate(self, name: str) -> tuple[int, int]:
        try:
            return self._tensors[name]
        except KeyError:
            raise WeightsError(f"the tensor {name} is missing") from None

    def _read_header(self) -> Shape:
        if bytes(self._data[:4]) != _MAGIC:
            raise WeightsError("this is not an E5S1 weights file")
        self._offset = 8
        sizes = self._take("<7i")
        (epsilon,) = self._take("<f")
        (block,) = self._take("<i")
        if min(sizes) <= 0 or block != _BLOCK or sizes[0] % _BLOCK or sizes[0] % sizes[2]:
            raise WeightsError("the header has sizes that do not fit")
        hidden, layers, heads, inner, vocabulary, positions, kinds = sizes
        return Shape(hidden, layers, heads, inner, vocabulary, positions, kinds, float(epsilon))

    def _skip_pieces(self) -> None:
        # The tokenizer comes from its own file; the pieces here are only walked over.
        count = self._take("<5i")[0]
        (blob_bytes,) = self._take("<Q")
        if count < 0:
            raise WeightsError("the number of pieces is negative")
        self._skip(4 * (count + 1) + 4 * count + blob_bytes)
        _, normaliser_bytes = self._take("<iI")
        self._skip(normaliser_bytes)

    def _read_directory(self) -> dict[str, tuple[int, int]]:
        (count,) = self._take("<i")
        if not 0 < count <= _MAX_TENSORS:
            raise WeightsError("the number of tensors is out of bounds")
        tensors: dict[str, tuple[int, int]] = {}
        for _ in range(count):
            (length,) = self._take("<H")
            name = bytes(self._data[self._offset : self._offset + length]).decode("ascii", "replace")
            self._skip(length)
            _, _, start, size = self._take("<BIQQ")
            if start + size > len(self._data):
                raise WeightsError(f"the tensor {name} ends behind the file")
            tensors[name] = (start, size)
        return tensors

    def _take(self, layout: str) -> tuple[int, ...]:
        try:
            values = struct.unpack_from(layout, self._data, self._offset)
        except struct.error as error:
            raise WeightsError("the file ends too early") from error
        self._offset += struct.calcsize(layout)
        return values

    def _skip(self, size: int) -> None:
        self._offset += size
        if self._offset > len(self._data):
            raise WeightsError("the file ends too early")
