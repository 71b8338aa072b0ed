"""Three-way merge of texts by lines, without ever writing conflict markers into a text.

Works as diff3 does (S. Khanna, K. Kunal, B. C. Pierce, "A Formal Investigation of Diff3", 2007):
both sides are compared with the base, and the hunks of both are laid over it. Hunks of different
sides conflict when they overlap **or touch**, as in git: whoever changes the line next to
another's change has not seen it. Hunks that conflict but read the same on both sides are clean.

Laws, for all texts: ``merge(b, x, b) = x``, ``merge(b, b, x) = x``, ``merge(b, x, x) = x``, and
``merge(b, x, y) = merge(b, y, x)``.
"""

from collections.abc import Iterator
from typing import NamedTuple

from shared_schema.memory import Contract
from shared_schema.rules.line_diff import Hunk, diff_lines, split_lines


class LineRange(Contract):
    """``count`` lines from line ``first`` on, counted from 1; with 0 lines, the place before it."""

    first: int
    count: int


class TextConflict(Contract):
    """A region that both sides changed differently, with its three texts."""

    base_lines: LineRange
    ours_lines: LineRange
    theirs_lines: LineRange
    base: str
    ours: str
    theirs: str


class _Region(NamedTuple):
    """A part of the three texts, in lines from 0, with what the merge makes of it."""

    base: tuple[int, int]
    ours: tuple[int, int]
    theirs: tuple[int, int]
    merged: list[str] | None


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Return the text with the changes of both sides, or None when they conflict.

    Lines keep their endings byte for byte; every line of the result is a line of an input.
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    texts = (split_lines(base), split_lines(ours), split_lines(theirs))
    parts: list[str] = []
    position = 0
    for region in _regions(*texts):
        if region.merged is None:
            return None
        parts += texts[0][position : region.base[0]]
        parts += region.merged
        position = region.base[1]
    parts += texts[0][position:]
    return "".join(parts)


def merge_text_conflicts(base: str, ours: str, theirs: str) -> list[TextConflict]:
    """Return what keeps `merge_text` from a result, in order; empty when it has one."""
    if ours == theirs or base in (ours, theirs):
        return []
    texts = (split_lines(base), split_lines(ours), split_lines(theirs))
    return [
        TextConflict(
            base_lines=_lines(region.base),
            ours_lines=_lines(region.ours),
            theirs_lines=_lines(region.theirs),
            base="".join(texts[0][slice(*region.base)]),
            ours="".join(texts[1][slice(*region.ours)]),
            theirs="".join(texts[2][slice(*region.theirs)]),
        )
        for region in _regions(*texts)
        if region.merged is None
    ]


def _lines(span: tuple[int, int]) -> LineRange:
    return LineRange(first=span[0] + 1, count=span[1] - span[0])


def _regions(base: list[str], ours: list[str], theirs: list[str]) -> Iterator[_Region]:
    """Yield every changed region of the base, in order."""
    # How far a side's lines are ahead of the base's before the region.
    ours_ahead = theirs_ahead = 0
    for start, end, ours_hunks, theirs_hunks in _groups(diff_lines(base, ours), diff_lines(base, theirs)):
        ours_growth, theirs_growth = _growth(ours_hunks), _growth(theirs_hunks)
        ours_span = (start + ours_ahead, end + ours_ahead + ours_growth)
        theirs_span = (start + theirs_ahead, end + theirs_ahead + theirs_growth)
        ours_part, theirs_part = ours[slice(*ours_span)], theirs[slice(*theirs_span)]
        merged: list[str] | None = None
        if not theirs_hunks or ours_part == theirs_part:
            merged = ours_part
        elif not ours_hunks:
            merged = theirs_part
        yield _Region((start, end), ours_span, theirs_span, merged)
        ours_ahead += ours_growth
        theirs_ahead += theirs_growth


def _groups(ours: list[Hunk], theirs: list[Hunk]) -> Iterator[tuple[int, int, list[Hunk], list[Hunk]]]:
    """Yield ranges of the base with the hunks in them; hunks that touch share a range."""
    sides = (ours, theirs)
    next_of = [0, 0]
    while any(next_of[side] < len(sides[side]) for side in (0, 1)):
        group: tuple[list[Hunk], list[Hunk]] = ([], [])
        start = end = -1
        while True:
            waiting = [
                (sides[side][next_of[side]], side) for side in (0, 1) if next_of[side] < len(sides[side])
            ]
            if not waiting:
                break
            hunk, side = min(waiting)
            if start < 0:
                start, end = hunk.start, hunk.end
            elif hunk.start > end:
                break
            end = max(end, hunk.end)
            group[side].append(hunk)
            next_of[side] += 1
        yield start, end, *group


def _growth(hunks: list[Hunk]) -> int:
    return sum((hunk.new_end - hunk.new_start) - (hunk.end - hunk.start) for hunk in hunks)
