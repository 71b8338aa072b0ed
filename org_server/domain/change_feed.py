"""Positions in the change feed, and who may read which event.

A cursor is the database's lineage (its epoch) and the number of the last event that was seen. A
restore makes a new lineage, so an old cursor is recognised instead of pointing at other events.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, NamedTuple, Never

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import FeedEventType

_DIGITS: Final = 18
"""More digits than any feed reaches, fewer than 64 bits hold."""


class Cursor(NamedTuple):
    """A position: events up to and including ``seq`` were seen."""

    epoch: str
    seq: int

    def encode(self) -> str:
        """Return the wire form, opaque to clients."""
        return f"{self.epoch}.{self.seq}"


def decode_cursor(text: str, epoch: str, head: int) -> Cursor:
    """Read a cursor of this lineage at or below ``head``; ``resync_required`` for any other text."""
    lineage, _, digits = text.rpartition(".")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        _refuse("unreadable")
    if lineage != epoch:
        _refuse("other_lineage")
    if int(digits) > head:
        _refuse("ahead")
    return Cursor(lineage, int(digits))


def _refuse(reason: str) -> Never:
    raise InterleafError(
        ErrorCode.RESYNC_REQUIRED,
        "This cursor does not belong to the server's present history. "
        "Start again from a snapshot and without a cursor.",
        details={"reason": reason},
    )


@dataclass(frozen=True)
class Reader:
    """Who reads the feed: the user and the Projects that it may read now."""

    user_id: str
    project_ids: Collection[str]
    limited: bool = False
    """Whether the token is limited to Projects: then even the own events of others stay out."""


def may_read(
    reader: Reader, *, event_type: str, audience: str, project_id: str | None, user_id: str | None
) -> bool:
    """Tell whether the reader may see an event.

    Draft events are their author's; the Organization's are everybody's; a Project's are those of
    its readers, and a change of the reader's own membership is always told, because after losing
    it the Project cannot be read any more.
    """
    readable = project_id is None or project_id in reader.project_ids
    if audience == "author":
        return user_id == reader.user_id and readable
    if audience == "org":
        return True
    about_reader = event_type == FeedEventType.MEMBERSHIP_CHANGED and user_id == reader.user_id
    return readable or (about_reader and not reader.limited)
