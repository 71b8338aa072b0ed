"""One call that tells an installation how all its Projects stand and what happened since."""

import time
from collections.abc import Callable
from typing import Final

from pydantic import Field
from sqlmodel import col, select

from org_server.domain.change_feed import Cursor, Reader, decode_cursor
from org_server.domain.permissions import Actor
from org_server.services import access
from org_server.services.feed_watch import FeedWatch
from org_server.store.batches import batches
from org_server.store.commits import ref_answer
from org_server.store.feed import events_for, feed_head
from org_server.store.readable import ReadableProject, readable_projects
from org_server.store.tables import DraftRow, FeedEventRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import limits
from shared_schema.memory import Contract
from shared_schema.org_contract import FeedEvent, FeedEventType, ProjectHead, SyncAnswer

EVENTS_PER_ANSWER: Final = 500
_CURSOR_CHARACTERS: Final = 200


class SyncQuery(Contract):
    """The query of GET /sync."""

    cursor: str | None = Field(default=None, max_length=_CURSOR_CHARACTERS)
    wait: int = Field(default=0, ge=0, le=limits.LONG_POLL_SECONDS)
    """Seconds to wait for something new."""


def read_feed(
    units: UnitOfWorkFactory,
    actor: Actor,
    query: SyncQuery,
    watch: FeedWatch,
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> SyncAnswer | None:
    """GET /sync: heads and events since the cursor, or None when nothing happened since (304).

    With ``wait`` it looks again until there is something for the caller or the time is over; when
    all places to wait of this process are taken it answers at once. No transaction is open in
    between. Raises ``resync_required`` for a cursor of another history.
    """
    if query.wait == 0 or query.cursor is None or not watch.enter():
        return _answer(units, actor, query.cursor)
    try:
        deadline = monotonic() + query.wait
        answer = _answer(units, actor, query.cursor)
        while (answer is None or not answer.events) and monotonic() < deadline:
            # Events of others alone move the counter; the last answer still carries the cursor on.
            seen = query.cursor if answer is None else answer.cursor
            number = int(seen.rpartition(".")[2])
            watch.wait(number, _reader(units, actor), deadline, sleep=sleep, monotonic=monotonic)
            later = _answer(units, actor, seen)
            answer = answer if later is None else later
        return answer
    finally:
        watch.leave()


def _reader(units: UnitOfWorkFactory, actor: Actor) -> Reader:
    with units.read() as uow:
        now = access.refresh(uow, actor)
        return _as_reader(now, readable_projects(uow, now))


def _answer(units: UnitOfWorkFactory, actor: Actor, cursor: str | None) -> SyncAnswer | None:
    with units.read() as uow:
        now = access.refresh(uow, actor)
        epoch, head = uow.org.epoch, feed_head(uow)
        since = head if cursor is None else decode_cursor(cursor, epoch, head).seq
        if cursor is not None and since == head:
            return None
        projects = readable_projects(uow, now)
        events = [] if cursor is None else _events(uow, now, projects, since)
        more = len(events) > EVENTS_PER_ANSWER
        shown = events[:EVENTS_PER_ANSWER]
        position = shown[-1].seq if more else head
        return SyncAnswer(
            epoch=epoch,
            cursor=Cursor(epoch, position).encode(),
            has_more=more,
            org_ref=ref_answer(uow, uow.org.id),
            projects=[_head(item) for item in projects],
            events=_as_events(uow, shown),
        )


def _events(uow: UnitOfWork, actor: Actor, projects: list[ReadableProject], since: int) -> list[FeedEventRow]:
    return events_for(uow, _as_reader(actor, projects), since, EVENTS_PER_ANSWER + 1)


def _as_reader(actor: Actor, projects: list[ReadableProject]) -> Reader:
    return Reader(
        user_id=actor.user_id,
        project_ids={item.project.id for item in projects},
        limited=actor.project_ids is not None,
    )


def _head(item: ReadableProject) -> ProjectHead:
    return ProjectHead(
        project_id=item.project.id,
        name=item.project.name,
        role=item.role,
        commit_id=item.project.head_commit,
        seq=item.project.head_seq,
        guide_path=item.project.guide_path,
    )


def _as_events(uow: UnitOfWork, rows: list[FeedEventRow]) -> list[FeedEvent]:
    merged = {row.draft_id for row in rows if row.type == FeedEventType.DRAFT_MERGED and row.draft_id}
    last: dict[str, int] = {}
    for batch in batches(sorted(merged)):
        found = select(DraftRow.id, DraftRow.last_ordinal).where(col(DraftRow.id).in_(batch))
        last.update(uow.session.exec(found).all())
    # A merged Draft takes no more operations, so its last one is what was published.
    return [_event(row, last.get(row.draft_id or "")) for row in rows]


def _event(row: FeedEventRow, draft_ordinal: int | None) -> FeedEvent:
    return FeedEvent(
        seq=row.seq,
        at=row.at,
        type=row.type,
        project_id=row.project_id,
        draft_id=row.draft_id,
        review_id=row.review_id,
        resource_id=row.resource_id,
        commit_id=row.commit_id,
        commit_seq=row.commit_seq,
        draft_ordinal=draft_ordinal if row.type == FeedEventType.DRAFT_MERGED else None,
    )
