"""Cutting one stretch of text into windows of bounded token counts, at the best borders there are.

Text becomes atoms (a few words each) that know how good a border their end is; windows are packed
from atoms. Everything is linear in the text, also for a single line of a mebibyte.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

TARGET_TOKENS: Final = 200
"""Wished size of a passage, its path and headings included."""
MAX_TOKENS: Final = 384
OVERLAP_TOKENS: Final = 48
"""What two windows of one long block share."""

_ATOM: Final = 160
"""Characters of an atom; a few of them make the overlap."""
_DENSE_ATOM: Final = 40
"""The same for scripts where a character may be a token."""
_CHARACTERS_A_TOKEN: Final = 12
"""No token is counted as more."""
_LINE: Final = re.compile(r"\r\n?|\n")
_SENTENCE: Final = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？；…]+[」』”’）]*\s*|[।؟۔]\s*")
_SPACE: Final = re.compile(r"\s+")
_JOINERS: Final = frozenset("\u200d\ufe0e\ufe0f")


class Border(IntEnum):
    """How good a place to cut the end of an atom is."""

    NONE = 0
    SPACE = 1
    SENTENCE = 2
    LINE = 3
    BLOCK = 4


@dataclass(frozen=True, slots=True)
class Atom:
    """The stretch ``start:end`` of the text, in code points."""

    start: int
    end: int
    border: Border


def line_starts(text: str) -> list[int]:
    """Return the offset of each line's start, lines as Markdown counts them (LF, CRLF, lone CR)."""
    return [0, *(match.end() for match in _LINE.finditer(text))]


def atoms_of(text: str, start: int, end: int, block_ends: Sequence[int]) -> list[Atom]:
    """Return the atoms of ``text[start:end]``; ``block_ends`` are ascending offsets inside it."""
    atoms: list[Atom] = []
    for block_end in (*(offset for offset in block_ends if start < offset < end), end):
        if block_end > start:
            atoms.extend(_block_atoms(text, start, block_end))
            atoms[-1] = replace(atoms[-1], border=Border.BLOCK)
            start = block_end
    return atoms


def _block_atoms(text: str, start: int, end: int) -> Iterator[Atom]:
    """Yield the atoms of one block; short lines go together, long ones are cut."""
    position = start
    for match in _LINE.finditer(text, start, end):
        if match.end() - position >= _limit(text, position) // 2:
            yield from _cut(text, position, match.end(), Border.LINE)
            position = match.end()
    yield from _cut(text, position, end, Border.LINE)


def _limit(text: str, start: int) -> int:
    return _ATOM if text[start : start + _ATOM].isascii() else _DENSE_ATOM


def _cut(text: str, start: int, end: int, border: Border) -> Iterator[Atom]:
    """Yield atoms within ``start:end``: at line, sentence, white-space borders, else anywhere."""
    while end - start > (limit := _limit(text, start)):
        window = start + limit
        for pattern, quality in ((_LINE, Border.LINE), (_SENTENCE, Border.SENTENCE), (_SPACE, Border.SPACE)):
            cut = max((match.end() for match in pattern.finditer(text, start, window)), default=start)
            # A border right at the start would make crumbs; white space is taken wherever it is.
            if cut > start and (quality is Border.SPACE or cut - start >= limit // 4):
                break
        else:
            cut, quality = _between_characters(text, start, window), Border.NONE
        yield Atom(start, cut, quality)
        start = cut
    if end > start:
        yield Atom(start, end, border)


def _between_characters(text: str, start: int, cut: int) -> int:
    """Return a place at or shortly before ``cut`` that leaves what a reader sees as one character whole."""
    for place in range(cut, max(start, cut - 8), -1):
        following, previous = text[place], text[place - 1]
        if (
            not unicodedata.combining(following)
            and following not in _JOINERS
            and previous != "\u200d"
            and not "\U0001f3fb" <= following <= "\U0001f3ff"
        ):
            return place
    return cut


def windows(atoms: Sequence[Atom], counts: Sequence[int], context: int) -> list[tuple[int, int]]:
    """Pack atoms into windows and return their ``(start, end)`` offsets.

    ``counts`` are the atoms' tokens and ``context`` the tokens of what is put before each window. A
    window that ends inside a block is repeated in part by the next one (``OVERLAP_TOKENS``).
    """
    # Some tokenizers fold a whole run of unknown characters into one token.
    counts = [
        max(count, (atom.end - atom.start) // _CHARACTERS_A_TOKEN)
        for atom, count in zip(atoms, counts, strict=True)
    ]
    most = max(MAX_TOKENS - context, 32)
    wished = max(min(TARGET_TOKENS - context, most), most // 3)
    found: list[tuple[int, int]] = []
    first = 0
    rest = sum(counts)
    while first < len(atoms):
        last = _window_end(atoms, counts, first, rest, wished, most)
        found.append((atoms[first].start, atoms[last - 1].end))
        if last >= len(atoms):
            break
        following = last
        if atoms[last - 1].border is not Border.BLOCK:
            following = _overlap_start(counts, first, last)
        rest -= sum(counts[first:following])
        first = following
    return found


def _window_end(
    atoms: Sequence[Atom], counts: Sequence[int], first: int, rest: int, wished: int, most: int
) -> int:
    """Return the index after the window's last atom; at least one atom is taken.

    The whole rest is taken when it is not much more than wished; then a block's end counts most,
    then the better border near the wished size.
    """
    if rest <= min(most, wished + wished // 4):
        return len(atoms)
    size = 0
    best, best_key = first + 1, (-1, 0)
    for index in range(first, len(atoms)):
        size += counts[index]
        if size > most:
            break
        border = atoms[index].border
        if border is Border.BLOCK:
            near = size >= wished // 2
        else:
            near = wished * 3 // 5 <= size <= wished + wished // 4
        key = (int(border) if near else -1, -abs(size - wished))
        if key >= best_key:
            best, best_key = index + 1, key
    return best


def _overlap_start(counts: Sequence[int], first: int, last: int) -> int:
    """Return where the next window starts so that it repeats at most ``OVERLAP_TOKENS``."""
    start, shared = last, 0
    while start - 1 > first and shared + counts[start - 1] <= OVERLAP_TOKENS:
        start -= 1
        shared += counts[start]
    return start
