"""An immutable mapping whose successors share what did not change.

A copied ``dict`` costs in proportion to its size for every change of one entry. Here the entries are
spread over 256 parts by a checksum of their keys, and a successor copies the parts that it changes
only. A digest can be kept with each part, so that the digest of a whole follows a change as cheaply
(a Merkle tree of two levels); the checksum is the same in every process, so that digests compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, compress
from operator import is_not
from typing import Final, Self, TypeVar, overload
from zlib import crc32

PARTS: Final = 256

V = TypeVar("V")
D = TypeVar("D")


class _Part(dict[str, V]):
    """Some of the entries, never changed once its map is made."""

    __slots__ = ("digest",)
    digest: bytes


class PersistentMap(Mapping[str, V]):
    """Maps strings to values that are never ``None``; not ordered. Safe to read from any thread."""

    __slots__ = ("_length", "_parts")

    def __init__(self, items: Iterable[tuple[str, V]] = ()) -> None:
        empty: _Part[V] = _Part()
        parts = [empty] * PARTS
        for key, value in items:
            number = _number(key)
            if parts[number] is empty:
                parts[number] = _Part()
            parts[number][key] = value
        self._parts = tuple(parts)
        self._length = sum(map(len, parts))

    def __getitem__(self, key: str) -> V:
        return self._parts[_number(key)][key]

    @overload
    def get(self, key: str, /) -> V | None: ...
    @overload
    def get(self, key: str, default: V | D, /) -> V | D: ...
    def get(self, key: str, default: D | None = None, /) -> V | D | None:
        """Return the value, or ``default``; without the exception that the inherited one costs."""
        return self._parts[_number(key)].get(key, default)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self._parts[_number(key)]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"PersistentMap({dict(self)!r})"

    def changed(self, changes: Mapping[str, V | None]) -> Self:
        """Return a map with these entries set, or taken out where the value is ``None``.

        Time: in proportion to ``changes``, and to the square root of the size in practice (one part for
        each change, a 256th of the entries).
        """
        copies: dict[int, _Part[V]] = {}
        length = self._length
        for key, value in changes.items():
            number = _number(key)
            part = copies.get(number, self._parts[number])
            if part.get(key) is value:
                continue
            if number not in copies:
                part = copies[number] = _Part(part)
            length -= len(part)
            if value is None:
                del part[key]
            else:
                part[key] = value
            length += len(part)
        if not copies:
            return self
        parts = list(self._parts)
        for number, part in copies.items():
            parts[number] = part
        successor = object.__new__(type(self))
        successor._parts, successor._length = tuple(parts), length
        return successor

    def differing(self, other: PersistentMap[V]) -> set[str]:
        """Return the keys that are in one map only, or have not the same object as their value."""
        if self is other:
            return set()
        apart = compress(zip(self._parts, other._parts, strict=True), map(is_not, self._parts, other._parts))
        return {
            key
            for mine, theirs in apart
            for key in mine.keys() | theirs.keys()
            if mine.get(key) is not theirs.get(key)
        }

    def digests(self, digest_of: Callable[[Mapping[str, V]], bytes]) -> list[bytes]:
        """Return the digest of each part, in a fixed order; kept, so always ask with one function.

        ``digest_of`` has to bring the entries into an order itself.
        """
        for part in self._parts:
            if not hasattr(part, "digest"):
                part.digest = digest_of(part)  # Two threads may both compute it; it comes out the same.
        return [part.digest for part in self._parts]


def _number(key: str) -> int:
    return crc32(key.encode("utf-8", "surrogatepass")) % PARTS
