"""Marks of an unfinished merge, which never become memory text.

Tools that merge write their conflicts between lines of seven ``<``, ``|``, ``=`` and ``>``. A
resolution that still holds such a line was not finished. A document may speak about them, so only
lines that neither side of the conflict had are counted, and a row of ``=`` below a text is the
underline of a heading.
"""

from __future__ import annotations

import re

from shared_schema.errors import ErrorCode, InterleafError

_MARKER = re.compile(r"(<{7}|>{7}|\|{7}|={7})(?: .*)?")


def fresh_markers(text: str, *sides: str) -> list[int]:
    """Return the numbers, from 1, of the marker lines of ``text`` that none of ``sides`` has.

    A separator counts beside another fresh marker, or where it can underline nothing.
    """
    known = {line.rstrip("\r") for side in sides for line in side.split("\n")}
    lines = [line.rstrip("\r") for line in text.split("\n")]
    fresh = [at for at, line in enumerate(lines) if line not in known and _MARKER.fullmatch(line)]
    certain = any(lines[at][0] != "=" for at in fresh)
    return [at + 1 for at in fresh if certain or at == 0 or not lines[at - 1].strip()]


def check_resolution(text: str, *sides: str) -> None:
    """Raise ``conflict_markers`` (details: ``lines``) when a resolution holds fresh marker lines."""
    if lines := fresh_markers(text, *sides):
        raise InterleafError(
            ErrorCode.CONFLICT_MARKERS,
            f"Line {lines[0]} is the mark of an unfinished merge. Decide what holds, take the marker "
            "lines out, and send the whole text again.",
            details={"lines": lines},
        )
