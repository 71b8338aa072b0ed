"""One transaction of the server, with the feed and the audit that belong to it.

Every writing transaction first takes the row of ``feed_counter`` (SQLite: the database's write
lock) and holds it until it ends. Writers are so serialised per Organization, which buys three
things: feed numbers are committed in their own order, so a reader never skips one that commits
late; no two writers can deadlock; and a check made in the transaction still holds at its end.
Refs move by compare-and-swap all the same, since callers decide on what they read earlier.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlmodel import Session, col, select, update

from org_server.clock import Clock, system_clock
from org_server.store.engine import reading, writing
from org_server.store.tables import AuditEventRow, FeedCounterRow, FeedEventRow, OrgRow, Row
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import FeedEventType

Audience = Literal["author", "project", "org"]


class UnitOfWork:
    """An open transaction. ``now`` is its one instant, in epoch milliseconds."""

    def __init__(self, session: Session, now: int, feed_seq: int | None) -> None:
        self.session = session
        self.now = now
        self._feed_seq = feed_seq
        self._org: OrgRow | None = None
        self.emitted: list[str] = []
        """The types of the feed events of this transaction."""
        self.checked: list[tuple[str, str | None]] = []
        """What the caller was found to be allowed to: an action, and the Project that it is about."""

    @property
    def org(self) -> OrgRow:
        """The Organization; ``schema_mismatch`` where none was initialised."""
        if self._org is None:
            self._org = self.session.exec(select(OrgRow)).first()
        if self._org is None:
            raise InterleafError(
                ErrorCode.SCHEMA_MISMATCH,
                "This database holds no Organization yet. "
                "Run: interleaf-server init --data DIR --org NAME --owner EMAIL",
            )
        return self._org

    def add(self, row: Row) -> None:
        """Insert a row at once, so that the next one's foreign key finds it.

        The tables declare no relationships, so a flush of several rows has no order of its own.
        """
        self.session.add(row)
        self.session.flush()

    def feed_head(self) -> int:
        """Return the last number of the change feed, as this transaction sees it."""
        if self._feed_seq is not None:
            return self._feed_seq
        return self.session.exec(select(FeedCounterRow.seq).where(col(FeedCounterRow.id) == 1)).one()

    def emit(
        self,
        event_type: FeedEventType,
        *,
        project_id: str | None = None,
        user_id: str | None = None,
        draft_id: str | None = None,
        review_id: str | None = None,
        resource_id: str | None = None,
        commit_id: str | None = None,
        commit_seq: int | None = None,
        audience: Audience | None = None,
    ) -> int:
        """Append an event to the change feed and return its number.

        Draft events are read by their author alone (``user_id``, which they need); the others by
        everybody who may read ``project_id``; those without a Project by the whole Organization.
        ``audience`` overrides that.
        """
        if self._feed_seq is None:
            raise RuntimeError("events are emitted by writing transactions only")
        if audience is None:
            if event_type.value.startswith("draft."):
                audience = "author"
            else:
                audience = "project" if project_id is not None else "org"
        if audience == "author" and user_id is None:
            raise RuntimeError("an event for its author names the author")
        self._feed_seq += 1
        self.emitted.append(event_type.value)
        self.session.add(
            FeedEventRow(
                seq=self._feed_seq,
                at=self.now,
                type=event_type.value,
                audience=audience,
                project_id=project_id,
                user_id=user_id,
                draft_id=draft_id,
                review_id=review_id,
                resource_id=resource_id,
                commit_id=commit_id,
                commit_seq=commit_seq,
            )
        )
        return self._feed_seq

    def take_back_feed(self, head: int) -> None:
        """Forget the events after ``head``, whose rows were rolled back."""
        del self.emitted[len(self.emitted) - (self.feed_head() - head) :]
        self._feed_seq = head

    def audit(
        self, actor_id: str | None, action: str, subject: str, data: Mapping[str, Any] | None = None
    ) -> None:
        """Record one administrative or publishing action; ``data`` is JSON-able, without secrets."""
        self.session.add(
            AuditEventRow(
                at=self.now, actor_id=actor_id, action=action, subject=subject, data=dict(data or {})
            )
        )


@dataclass(frozen=True, slots=True)
class Transaction:
    """What is told of a transaction that ended; times are seconds."""

    kind: Literal["read", "write"]
    outcome: Literal["done", "rolled_back"]
    seconds: float
    waited: float = 0.0
    """Until the writers' turn was got; part of ``seconds``."""
    events: Sequence[str] = ()
    """The types of the feed events that were committed."""


class UnitOfWorkFactory:
    """Opens transactions on one database; shared by all threads.

    ``observe`` is told of each transaction once it ended, whatever its end.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock = system_clock,
        observe: Callable[[Transaction], None] = lambda _done: None,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self._observe = observe
        self._reading = reading(engine)
        self._writing = writing(engine)

    def observed(self, observe: Callable[[Transaction], None]) -> UnitOfWorkFactory:
        """Return a factory on the same engine that tells ``observe`` instead."""
        return UnitOfWorkFactory(self.engine, self.clock, observe)

    @contextmanager
    def read(self) -> Iterator[UnitOfWork]:
        """Open a transaction on one consistent state; it is rolled back at the end."""
        started = time.perf_counter()
        outcome: Literal["done", "rolled_back"] = "rolled_back"
        try:
            with _database_errors(), Session(self._reading, expire_on_commit=False) as session:
                # Closing ends the transaction; a rollback would empty the rows that were read, too.
                yield UnitOfWork(session, self.clock(), None)
                outcome = "done"
        finally:
            self._observe(Transaction("read", outcome, time.perf_counter() - started))

    @contextmanager
    def write(self) -> Iterator[UnitOfWork]:
        """Open a transaction that commits at the end, or leaves no trace when anything is raised."""
        started, waited = time.perf_counter(), 0.0
        outcome: Literal["done", "rolled_back"] = "rolled_back"
        events: Sequence[str] = ()
        try:
            with _database_errors(), Session(self._writing, expire_on_commit=False) as session:
                # FOR UPDATE is a row lock on PostgreSQL; SQLite leaves it out and has BEGIN IMMEDIATE.
                head = session.exec(
                    select(FeedCounterRow.seq).where(col(FeedCounterRow.id) == 1).with_for_update()
                ).one()
                waited = time.perf_counter() - started
                unit = UnitOfWork(session, self.clock(), head)
                try:
                    yield unit
                    _commit(unit, head)
                except BaseException:
                    session.rollback()
                    raise
            outcome, events = "done", unit.emitted
        finally:
            self._observe(Transaction("write", outcome, time.perf_counter() - started, waited, events))


def _commit(unit: UnitOfWork, head: int) -> None:
    """Commit, with the feed's new head where events were emitted after ``head``."""
    unit.session.flush()
    if unit.feed_head() != head:
        unit.session.execute(
            update(FeedCounterRow).where(col(FeedCounterRow.id) == 1).values(seq=unit.feed_head())
        )
    unit.session.commit()


class JoinedUnits(UnitOfWorkFactory):
    """Opens parts of a transaction that is open already: all of them commit with it, or none."""

    def __init__(self, factory: UnitOfWorkFactory, uow: UnitOfWork) -> None:
        super().__init__(factory.engine, factory.clock)
        self._uow = uow

    @contextmanager
    def read(self) -> Iterator[UnitOfWork]:
        """Look at the state that the transaction has come to."""
        yield self._uow

    @contextmanager
    def write(self) -> Iterator[UnitOfWork]:
        """Go on in the transaction; what is raised takes back this part of it."""
        before = self._uow.feed_head()
        try:
            with self._uow.session.begin_nested():
                yield self._uow
        except BaseException:
            self._uow.take_back_feed(before)
            raise


@contextmanager
def _database_errors() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeoutError) as error:
        if isinstance(error, DBAPIError) and "full" in str(error.orig):
            raise InterleafError(
                ErrorCode.STORAGE_FULL, "The server's disk is full; nothing was changed."
            ) from error
        raise InterleafError(
            ErrorCode.DATABASE_UNAVAILABLE, "The database does not answer. Try again in a moment."
        ) from error
