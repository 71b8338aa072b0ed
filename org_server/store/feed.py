"""The change feed: events by their numbers, filtered for one reader."""

from sqlalchemy import ColumnElement, and_, or_
from sqlmodel import col, select

from org_server.domain.change_feed import Reader
from org_server.store.tables import FeedCounterRow, FeedEventRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.org_contract import FeedEventType


def feed_head(uow: UnitOfWork) -> int:
    """Return the number of the last committed event."""
    return uow.session.exec(select(FeedCounterRow.seq).where(col(FeedCounterRow.id) == 1)).one()


def events_for(uow: UnitOfWork, reader: Reader, after: int, limit: int) -> list[FeedEventRow]:
    """Return the next events that the reader may see, by number.

    The database's form of `org_server.domain.change_feed.may_read`; a test holds them together.
    """
    return list(
        uow.session.exec(
            select(FeedEventRow)
            .where(col(FeedEventRow.seq) > after, _readable_by(reader))
            .order_by(col(FeedEventRow.seq))
            .limit(limit)
        )
    )


def events_after(uow: UnitOfWork, after: int) -> list[FeedEventRow]:
    """Return everything that happened after a number, whoever may read it."""
    return list(
        uow.session.exec(
            select(FeedEventRow).where(col(FeedEventRow.seq) > after).order_by(col(FeedEventRow.seq))
        )
    )


def _readable_by(reader: Reader) -> ColumnElement[bool]:
    readable = or_(
        col(FeedEventRow.project_id).is_(None),
        col(FeedEventRow.project_id).in_(sorted(reader.project_ids)),
    )
    own = col(FeedEventRow.user_id) == reader.user_id
    conditions: list[ColumnElement[bool]] = [
        col(FeedEventRow.audience) == "org",
        and_(col(FeedEventRow.audience) == "author", own, readable),
        and_(col(FeedEventRow.audience) == "project", readable),
    ]
    if not reader.limited:
        conditions.append(
            and_(
                col(FeedEventRow.audience) == "project",
                col(FeedEventRow.type) == FeedEventType.MEMBERSHIP_CHANGED.value,
                own,
            )
        )
    return or_(*conditions)
