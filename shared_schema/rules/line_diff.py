"""Line differences of two texts in bounded time: patience anchors first, then Myers' algorithm.

Lines that occur once in both texts anchor the comparison (patience diff, as Bram Cohen
described it), which keeps paragraphs together and splits large texts into small gaps. The gaps
are compared with the greedy algorithm of E. W. Myers, "An O(ND) Difference Algorithm and Its
Variations" (1986), under one budget of steps for the whole comparison. A gap that the budget
does not cover counts as replaced as a whole: still a correct difference, only a coarse one.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_STEPS: Final = 3_000_000
"""About two seconds in the worst case; related documents of 1 MiB need a fraction of it."""
_MAX_EDITS: Final = 1_000
"""Edits looked for within one gap: their trace takes memory in proportion to the square."""


class Hunk(NamedTuple):
    """Lines ``start`` up to ``end`` of the old text became ``new_start`` up to ``new_end``.

    Counted from 0, ends excluded. Between two hunks lies at least one unchanged line.
    """

    start: int
    end: int
    new_start: int
    new_end: int


def split_lines(text: str) -> list[str]:
    """Split after every LF, CRLF and lone CR; the parts joined are the text, byte for byte."""
    return _LINE.findall(text)


def diff_lines(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    """Return the hunks that turn ``old`` into ``new``, in order. Deterministic."""
    numbers: dict[str, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    hunks: list[Hunk] = []
    for hunk in _Differ(a, b).hunks():
        if hunks and hunks[-1].end == hunk.start and hunks[-1].new_end == hunk.new_start:
            hunks[-1] = hunks[-1]._replace(end=hunk.end, new_end=hunk.new_end)
        else:
            hunks.append(hunk)
    return hunks


class _Differ:
    def __init__(self, a: list[int], b: list[int]) -> None:
        self._a = a
        self._b = b
        self._steps = _STEPS

    def hunks(self) -> Iterator[Hunk]:
        """Yield hunks in order; neighbours may touch."""
        pending = [Hunk(0, len(self._a), 0, len(self._b))]
        while pending:
            gap = self._trim(pending.pop())
            if gap.start == gap.end or gap.new_start == gap.new_end:
                if gap.start != gap.end or gap.new_start != gap.new_end:
                    yield gap
            elif self._steps > 0 and (anchors := self._anchors(gap)):
                pending += reversed(_between(gap, anchors))
            else:
                yield from self._myers(gap)

    def _trim(self, gap: Hunk) -> Hunk:
        a, b = self._a, self._b
        start, end, new_start, new_end = gap
        while start < end and new_start < new_end and a[start] == b[new_start]:
            start, new_start = start + 1, new_start + 1
        while start < end and new_start < new_end and a[end - 1] == b[new_end - 1]:
            end, new_end = end - 1, new_end - 1
        return Hunk(start, end, new_start, new_end)

    def _anchors(self, gap: Hunk) -> list[tuple[int, int]]:
        """Return the longest run of pairs, rising in both texts, of lines unique in both."""
        self._steps -= (gap.end - gap.start + gap.new_end - gap.new_start) // 4
        in_a = Counter(self._a[gap.start : gap.end])
        in_b = Counter(self._b[gap.new_start : gap.new_end])
        places = {
            line: place
            for place, line in enumerate(self._b[gap.new_start : gap.new_end], gap.new_start)
            if in_b[line] == 1 and in_a[line] == 1
        }
        pairs = [
            (place, places[line])
            for place, line in enumerate(self._a[gap.start : gap.end], gap.start)
            if line in places
        ]
        return _longest_rising(pairs)

    def _myers(self, gap: Hunk) -> Iterator[Hunk]:
        """Yield the hunks of a gap, or the gap as one hunk when the budget does not last."""
        a = self._a[gap.start : gap.end]
        b = self._b[gap.new_start : gap.new_end]
        trace = self._trace(a, b)
        if trace is None:
            yield gap
            return
        hunks: list[Hunk] = []
        x, y = len(a), len(b)
        for edits in range(len(trace) - 1, 0, -1):
            reach, k = trace[edits - 1], x - y
            down = _comes_from_above(reach, edits, k)
            from_k = k + 1 if down else k - 1
            from_x = reach[from_k + edits - 1]
            from_y = from_x - from_k
            x0, y0, x1, y1 = (
                (from_x, from_y, from_x, from_y + 1) if down else (from_x, from_y, from_x + 1, from_y)
            )
            hunks.append(Hunk(gap.start + x0, gap.start + x1, gap.new_start + y0, gap.new_start + y1))
            x, y = from_x, from_y
        yield from reversed(hunks)

    def _trace(self, a: list[int], b: list[int]) -> list[list[int]] | None:
        """Return, for 0, 1, 2 … edits, the furthest line of ``a`` reached on each diagonal.

        The entry for ``d`` edits is indexed by ``k + d`` for the diagonals ``-d`` to ``d``
        (``k`` is the place in ``a`` less the one in ``b``; those of the wrong parity hold -1).
        None when the budget does not last.
        """
        trace: list[list[int]] = []
        for edits in range(min(len(a) + len(b), _MAX_EDITS) + 1):
            reach = [-1] * (2 * edits + 1)
            for k in range(-edits, edits + 1, 2):
                x = _first_step(trace[-1], edits, k) if trace else 0
                y = x - k
                begin = x
                while x < len(a) and y < len(b) and a[x] == b[y]:
                    x, y = x + 1, y + 1
                self._steps -= 1 + x - begin
                if self._steps < 0:
                    return None
                reach[k + edits] = x
                if x >= len(a) and y >= len(b):
                    trace.append(reach)
                    return trace
            trace.append(reach)
        return None


def _comes_from_above(reach: list[int], edits: int, k: int) -> bool:
    """Tell whether the furthest path with ``edits`` edits enters diagonal ``k`` by an insertion."""
    if k == -edits:
        return True
    return k != edits and reach[k - 1 + edits - 1] < reach[k + 1 + edits - 1]


def _first_step(reach: list[int], edits: int, k: int) -> int:
    if _comes_from_above(reach, edits, k):
        return reach[k + 1 + edits - 1]
    return reach[k - 1 + edits - 1] + 1


def _between(gap: Hunk, anchors: list[tuple[int, int]]) -> list[Hunk]:
    start, new_start = gap.start, gap.new_start
    gaps: list[Hunk] = []
    for place, new_place in anchors:
        gaps.append(Hunk(start, place, new_start, new_place))
        start, new_start = place + 1, new_place + 1
    gaps.append(Hunk(start, gap.end, new_start, gap.new_end))
    return gaps


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest subsequence with rising second members (the first ones rise already)."""
    tails: list[int] = []
    tail_index: list[int] = []
    previous: list[int] = []
    for index, (_, value) in enumerate(pairs):
        place = bisect_left(tails, value)
        previous.append(tail_index[place - 1] if place else -1)
        if place == len(tails):
            tails.append(value)
            tail_index.append(index)
        else:
            tails[place] = value
            tail_index[place] = index
    chosen: list[tuple[int, int]] = []
    index = tail_index[-1] if tail_index else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = previous[index]
    return chosen[::-1]
