"""The outbox: one row for each operation on its way to the server.

A row is made in the transaction of its operation. Only its transitions are decided elsewhere; here
they are stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, delete, func, or_, select, update

from client.store.prepared import prepared_insert
from client.store.tables import metadata
from shared_schema.drafts import DraftOperation
from shared_schema.sync_status import ParkingCause, SyncStatus

_OUTBOX = metadata.tables["outbox"]
_OPERATION = metadata.tables["operation"]
_DRAFT = metadata.tables["draft"]
_ADD = prepared_insert(_OUTBOX)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """How one operation stands. Times in ms."""

    operation_id: str
    draft_id: str
    project_id: str
    sync_status: SyncStatus
    updated_at: int
    attempts: int = 0
    sent: bool = False
    """Whether it was ever claimed: the server may have it, whatever was answered."""
    lease: str | None = None
    lease_at: int | None = None
    next_attempt_at: int | None = None
    cause: ParkingCause | None = None
    error_code: str | None = None
    error_message: str | None = None
    retry_can_help: bool | None = None
    streak: int = 0
    """How often in a row the server gave this very answer."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A row with what a list shows of its operation."""

    row: OutboxRow
    ordinal: int
    kind: str
    payload: DraftOperation
    created_at: int


class OutboxRepository:
    """The operations on their way, in the order of their Drafts and ordinals."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: OutboxRow) -> None:
        """Insert the row of a new operation."""
        _ADD.run(self._connection, _columns(row))

    def get(self, operation_id: str) -> OutboxRow | None:
        """Return one row, or None."""
        rows = self._rows(select(_OUTBOX).where(_OUTBOX.c.operation_id == operation_id))
        return next(iter(rows), None)

    def put(self, row: OutboxRow) -> None:
        """Store a row's new state."""
        statement = update(_OUTBOX).where(_OUTBOX.c.operation_id == row.operation_id)
        self._connection.execute(statement.values(**_columns(row)))

    def put_leased(self, row: OutboxRow, lease: str) -> bool:
        """Store a row's new state if ``lease`` still holds it; return whether it did."""
        statement = update(_OUTBOX).where(
            _OUTBOX.c.operation_id == row.operation_id, _OUTBOX.c.lease == lease
        )
        return self._connection.execute(statement.values(**_columns(row))).rowcount == 1

    def remove(self, operation_ids: Iterable[str]) -> None:
        """Remove rows of operations that were cancelled before they were sent."""
        self._connection.execute(delete(_OUTBOX).where(_OUTBOX.c.operation_id.in_(list(operation_ids))))

    def of_draft(self, draft_id: str) -> tuple[OutboxRow, ...]:
        """Return the rows of one Draft, in order."""
        statement = _ordered().where(_OUTBOX.c.draft_id == draft_id)
        return self._rows(statement)

    def with_status(self, *statuses: SyncStatus, project_id: str | None = None) -> tuple[OutboxRow, ...]:
        """Return the rows in these states, in order."""
        statement = _ordered().where(_OUTBOX.c.sync_status.in_([status.value for status in statuses]))
        if project_id is not None:
            statement = statement.where(_OUTBOX.c.project_id == project_id)
        return self._rows(statement)

    def due(self, now: int) -> tuple[OutboxRow, ...]:
        """Return what may be sent now: queued rows, and retrying ones whose time has come.

        Rows that are parked for a cause are not among them, nor is a row behind one of its Draft
        that is neither synced nor due itself: the order within a Draft is strict.
        """
        due = _due(now)
        earlier = _OUTBOX.alias()
        earlier_operation = _OPERATION.alias()
        blocked = (
            select(earlier.c.operation_id)
            .join(earlier_operation, earlier_operation.c.operation_id == earlier.c.operation_id)
            .where(
                earlier.c.draft_id == _OUTBOX.c.draft_id,
                earlier_operation.c.ordinal < _OPERATION.c.ordinal,
                earlier.c.sync_status != SyncStatus.SYNCED.value,
                ~_due(now, earlier),
            )
        )
        return self._rows(_ordered().where(due, ~blocked.exists()))

    def claim(self, operation_ids: Iterable[str], lease: str, now: int) -> tuple[OutboxRow, ...]:
        """Take due rows for one attempt in one conditional update; return those that were taken."""
        statement = (
            update(_OUTBOX)
            .where(_OUTBOX.c.operation_id.in_(list(operation_ids)), _due(now))
            .values(
                sync_status=SyncStatus.SYNCING.value,
                attempts=_OUTBOX.c.attempts + 1,
                sent=True,
                lease=lease,
                lease_at=now,
                next_attempt_at=None,
                updated_at=now,
            )
        )
        self._connection.execute(statement)
        return self.leased(lease)

    def leased(self, lease: str) -> tuple[OutboxRow, ...]:
        """Return the rows that a lease holds, in order."""
        return self._rows(_ordered().where(_OUTBOX.c.lease == lease))

    def entries(self, *, all_rows: bool = False) -> tuple[OutboxEntry, ...]:
        """Return rows with their operations, in order; without ``all_rows`` what is not synced."""
        statement = _ordered().add_columns(
            _OPERATION.c.ordinal, _OPERATION.c.kind, _OPERATION.c.payload, _OPERATION.c.created_at
        )
        if not all_rows:
            statement = statement.where(_OUTBOX.c.sync_status != SyncStatus.SYNCED.value)
        return tuple(
            OutboxEntry(
                row=_row(row),
                ordinal=row.ordinal,
                kind=row.kind,
                payload=DraftOperation.model_validate_json(row.payload),
                created_at=row.created_at,
            )
            for row in self._connection.execute(statement)
        )

    def counts(self, project_id: str | None = None) -> dict[SyncStatus, int]:
        """Return how many rows are in each state; states without rows count 0."""
        statement = select(_OUTBOX.c.sync_status, func.count()).group_by(_OUTBOX.c.sync_status)
        if project_id is not None:
            statement = statement.where(_OUTBOX.c.project_id == project_id)
        found = dict.fromkeys(SyncStatus, 0)
        return found | {SyncStatus(status): count for status, count in self._connection.execute(statement)}

    def statuses_by_draft(self, project_id: str | None = None) -> dict[str, frozenset[SyncStatus]]:
        """Return the states that each Draft's operations are in."""
        statement = select(_OUTBOX.c.draft_id, _OUTBOX.c.sync_status).distinct()
        if project_id is not None:
            statement = statement.where(_OUTBOX.c.project_id == project_id)
        found: dict[str, set[SyncStatus]] = defaultdict(set)
        for draft_id, status in self._connection.execute(statement):
            found[draft_id].add(SyncStatus(status))
        return {draft_id: frozenset(statuses) for draft_id, statuses in found.items()}

    def next_due_at(self) -> int | None:
        """Return the earliest stored time of a retry that waits for time alone, or None."""
        statement = select(func.min(_OUTBOX.c.next_attempt_at)).where(
            _OUTBOX.c.sync_status == SyncStatus.RETRYING.value, _OUTBOX.c.cause.is_(None)
        )
        found = self._connection.execute(statement).scalar()
        return None if found is None else int(found)

    def _rows(self, statement: Select[Any]) -> tuple[OutboxRow, ...]:
        return tuple(_row(row) for row in self._connection.execute(statement))


def _ordered() -> Select[Any]:
    return (
        select(_OUTBOX)
        .join(_OPERATION, _OPERATION.c.operation_id == _OUTBOX.c.operation_id)
        .join(_DRAFT, _DRAFT.c.draft_id == _OUTBOX.c.draft_id)
        .order_by(_DRAFT.c.seq, _OPERATION.c.ordinal)
    )


def _due(now: int, table: Any = _OUTBOX) -> Any:
    return or_(
        table.c.sync_status == SyncStatus.QUEUED.value,
        and_(
            table.c.sync_status == SyncStatus.RETRYING.value,
            table.c.cause.is_(None),
            or_(table.c.next_attempt_at.is_(None), table.c.next_attempt_at <= now),
        ),
    )


def _columns(row: OutboxRow) -> dict[str, object]:
    columns: dict[str, object] = {name: getattr(row, name) for name in OutboxRow.__slots__}
    columns["sync_status"] = row.sync_status.value
    columns["cause"] = row.cause.value if row.cause else None
    return columns


def _row(row: Row[Any]) -> OutboxRow:
    fields = {name: row._mapping[_OUTBOX.c[name]] for name in OutboxRow.__slots__}
    fields["sync_status"] = SyncStatus(fields["sync_status"])
    fields["cause"] = ParkingCause(fields["cause"]) if fields["cause"] else None
    return OutboxRow(**fields)
