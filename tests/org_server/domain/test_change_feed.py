"""Cursors of the feed, and who reads which event."""

import pytest

from org_server.domain.change_feed import Cursor, Reader, decode_cursor, may_read
from shared_schema.errors import ErrorCode, InterleafError


def test_a_cursor_survives_its_encoding() -> None:
    assert decode_cursor(Cursor("e.p-1", 42).encode(), "e.p-1", 42) == Cursor("e.p-1", 42)


@pytest.mark.requirement("sync.resync_required")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "unreadable"),
        ("garbage", "unreadable"),
        ("epoch.", "unreadable"),
        ("epoch.-1", "unreadable"),
        ("epoch.٣", "unreadable"),
        ("epoch." + "9" * 19, "unreadable"),
        ("other.3", "other_lineage"),
        ("3", "other_lineage"),
        ("epoch.8", "ahead"),
    ],
)
def test_a_cursor_of_another_history_asks_for_a_new_start(text: str, reason: str) -> None:
    with pytest.raises(InterleafError) as raised:
        decode_cursor(text, "epoch", 7)
    assert raised.value.code is ErrorCode.RESYNC_REQUIRED
    assert raised.value.details == {"reason": reason}


READER = Reader("usr_me", frozenset({"prj_mine"}))
LIMITED = Reader("usr_me", frozenset({"prj_mine"}), limited=True)


@pytest.mark.requirement("sync.visibility")
@pytest.mark.parametrize(
    ("reader", "event_type", "audience", "project_id", "user_id", "expected"),
    [
        (READER, "draft.created", "author", "prj_mine", "usr_me", True),
        (READER, "draft.created", "author", "prj_mine", "usr_other", False),
        (READER, "draft.created", "author", "prj_lost", "usr_me", False),
        (READER, "review.opened", "project", "prj_mine", None, True),
        (READER, "review.opened", "project", "prj_other", None, False),
        (READER, "ref.moved", "org", None, None, True),
        (READER, "membership.changed", "project", "prj_lost", "usr_me", True),
        (READER, "membership.changed", "project", "prj_lost", "usr_other", False),
        (LIMITED, "membership.changed", "project", "prj_lost", "usr_me", False),
        (READER, "ref.moved", "project", "prj_lost", "usr_me", False),
    ],
)
def test_events_reach_exactly_their_readers(
    reader: Reader,
    event_type: str,
    audience: str,
    project_id: str | None,
    user_id: str | None,
    expected: bool,
) -> None:
    seen = may_read(reader, event_type=event_type, audience=audience, project_id=project_id, user_id=user_id)
    assert seen is expected
