"""Documents that say of themselves that they no longer hold.

A team keeps a replaced decision or an ended product's pages for the history, and marks them in the
front matter::

    ---
    status: superseded
    superseded_by: decisions/0017-signed-cookies.md
    ---

Such a document answers no question, however near its words are; who names it gets it. Only the mark
counts, never the text: what prose means is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

STATUSES: Final = frozenset(
    {
        *("archived", "deprecated", "expired", "obsolete", "retired", "superseded", "tombstoned"),
        *("withdrawn", "已废止", "已废弃", "废弃", "已归档", "已失效", "廃止"),
    }
)
"""Values of ``status``, in lower case."""

_LINES: Final = 100
"""Lines of front matter that are read."""
_STATUS: Final = re.compile(r"status[ \t]*:[ \t]*[\"']?([^\W\d_]+)[\"']?[ \t]*(?:#.*)?", re.IGNORECASE)
_START: Final = re.compile(r"\ufeff?---[ \t]*\r?\n")


def retired_as(body: str) -> str | None:
    """Return the status by which a document's front matter takes it out of use, in lower case, or None.

    Front matter is a block between ``---`` at the very start and the next ``---`` or ``...``; one that
    is not closed within 100 lines is ordinary text.
    """
    opening = _START.match(body)
    if opening is None:
        return None
    found: str | None = None
    for line in islice(_lines(body, opening.end()), _LINES):
        if line.rstrip() in ("---", "..."):
            return found
        status = _STATUS.fullmatch(line)
        if status is not None:
            word = status[1].lower()
            found = word if word in STATUSES else None
    return None


def _lines(text: str, start: int) -> Iterator[str]:
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end].removesuffix("\r")
        start = end + 1
