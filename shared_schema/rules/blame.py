"""Which version of a text last changed each of its lines.

Versions are followed from the newest back. A line that the comparison with the version before calls
new is the newer one's; every other goes on to its place in the version before. So the work ends as
soon as every line has its version, and a bound on versions and lines may end it earlier: what is
left then is named after the oldest version that was looked at, which does hold those lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from shared_schema.rules.line_diff import diff_lines, split_lines

MAX_VERSIONS: Final = 1_000
MAX_LINES: Final = 1_000_000
"""Lines of all versions together that one blame compares."""


class BlamedRange(NamedTuple):
    """Lines ``start`` up to ``end`` (from 0, end excluded) and their version: 0 is the newest."""

    start: int
    end: int
    version: int


class Blamed(NamedTuple):
    """Ranges that cover every line of the newest version once, in order."""

    ranges: list[BlamedRange]
    complete: bool
    """Whether every line was followed to the version that brought it."""


def blame_lines(
    versions: Iterable[str], *, max_versions: int = MAX_VERSIONS, max_lines: int = MAX_LINES
) -> Blamed:
    """Return which of the ``versions`` (newest first, at least one) last changed each line.

    Versions are taken from the iterable one by one, only as far as they are needed.
    """
    remaining = iter(versions)
    newer = split_lines(next(remaining))
    blamed = [0] * len(newer)
    # Place in the version at hand → place in the newest one, of the lines not settled yet.
    open_lines = {place: place for place in range(len(newer))}
    version, compared, complete = 0, len(newer), True
    while open_lines:
        if version + 1 >= max_versions or compared >= max_lines:
            complete = next(remaining, None) is None
            break
        text = next(remaining, None)
        if text is None:
            break
        older = split_lines(text)
        compared += len(older)
        open_lines = _carried(older, newer, open_lines)
        version += 1
        for origin in open_lines.values():
            blamed[origin] = version
        newer = older
    return Blamed(_ranges(blamed), complete)


def _carried(older: list[str], newer: list[str], open_lines: dict[int, int]) -> dict[int, int]:
    """Return the open lines that stand in the older version, by their places there."""
    carried: dict[int, int] = {}
    place = new_place = 0
    for hunk in diff_lines(older, newer):
        _carry(carried, open_lines, place, new_place, hunk.new_start)
        place, new_place = hunk.end, hunk.new_end
    _carry(carried, open_lines, place, new_place, len(newer))
    return carried


def _carry(
    carried: dict[int, int], open_lines: dict[int, int], place: int, new_place: int, new_end: int
) -> None:
    for offset, new in enumerate(range(new_place, new_end)):
        if (origin := open_lines.get(new)) is not None:
            carried[place + offset] = origin


def _ranges(blamed: list[int]) -> list[BlamedRange]:
    ranges: list[BlamedRange] = []
    for place, version in enumerate(blamed):
        if ranges and ranges[-1].version == version:
            ranges[-1] = ranges[-1]._replace(end=place + 1)
        else:
            ranges.append(BlamedRange(place, place + 1, version))
    return ranges
