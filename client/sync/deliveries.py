"""Rows of the outbox moved by the transition table, many at once, inside an open transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from client.domain.outbox import (
    Delivery,
    Due,
    Event,
    Parked,
    Problem,
    ProcessDied,
    Reoffered,
    Restored,
    RetriedByPerson,
    transition,
)
from client.store.outbox import OutboxRow
from client.store.unit_of_work import UnitOfWork
from shared_schema.errors import ERRORS, ErrorCode
from shared_schema.sync_status import ParkingCause, SyncStatus

SIGNED_OUT: Final = Problem(ErrorCode.SIGNED_OUT.value, ERRORS[ErrorCode.SIGNED_OUT].remedy)
ACCESS_LOST: Final = Problem(
    ErrorCode.PROJECT_ACCESS_LOST.value, ERRORS[ErrorCode.PROJECT_ACCESS_LOST].remedy
)


def moved(row: OutboxRow, event: Event, now: int) -> OutboxRow:
    """Return the row after an event; ``now`` in ms."""
    after = transition(delivery_of(row), event)
    return replace(
        row,
        sync_status=after.sync_status,
        attempts=after.attempts,
        lease=after.lease,
        lease_at=after.lease_at,
        next_attempt_at=after.next_attempt_at,
        cause=after.cause,
        error_code=after.error_code,
        error_message=after.error_message,
        retry_can_help=after.retry_can_help,
        streak=after.streak,
        updated_at=now,
    )


def delivery_of(row: OutboxRow) -> Delivery:
    """Return what the transition table knows of a row."""
    return Delivery(
        sync_status=row.sync_status,
        attempts=row.attempts,
        lease=row.lease,
        lease_at=row.lease_at,
        next_attempt_at=row.next_attempt_at,
        cause=row.cause,
        error_code=row.error_code,
        error_message=row.error_message,
        retry_can_help=row.retry_can_help,
        streak=row.streak,
    )


def recover(uow: UnitOfWork, now: int, claimed_before: int) -> int:
    """Free the rows whose holder is gone: leases taken before a time (ms); return how many."""
    stale = [
        row
        for row in uow.outbox.with_status(SyncStatus.SYNCING)
        if row.lease_at is None or row.lease_at < claimed_before
    ]
    return _move(uow, stale, ProcessDied(now), now)


def park(
    uow: UnitOfWork, cause: ParkingCause, problem: Problem, now: int, project_id: str | None = None
) -> int:
    """Park everything that is on its way, or that of one Project; return how many rows that moved."""
    rows = uow.outbox.with_status(
        SyncStatus.QUEUED, SyncStatus.SYNCING, SyncStatus.RETRYING, project_id=project_id
    )
    return _move(uow, (row for row in rows if row.cause is not cause), Parked(cause, problem), now)


def restore(uow: UnitOfWork, cause: ParkingCause, now: int, project_id: str | None = None) -> int:
    """Queue what was parked for a cause; return how many rows that were."""
    rows = uow.outbox.with_status(SyncStatus.RETRYING, project_id=project_id)
    return _move(uow, (row for row in rows if row.cause is cause), Restored(cause), now)


def make_due(uow: UnitOfWork, now: int) -> int:
    """Queue everything that waits for time alone, because somebody asks for it now."""
    rows = uow.outbox.with_status(SyncStatus.RETRYING)
    return _move(uow, (row for row in rows if row.cause is None), Due(), now)


def retry(uow: UnitOfWork, rows: Iterable[OutboxRow], now: int) -> int:
    """Give rows a new budget of attempts, because a person asks for it; same operation ids."""
    return _move(uow, rows, RetriedByPerson(), now)


def reoffer(uow: UnitOfWork, rows: Iterable[OutboxRow], now: int) -> int:
    """Queue rows again that the server took before it lost them."""
    return _move(uow, (row for row in rows if row.sync_status is SyncStatus.SYNCED), Reoffered(), now)


def _move(uow: UnitOfWork, rows: Iterable[OutboxRow], event: Event, now: int) -> int:
    count = 0
    for row in rows:
        uow.outbox.put(moved(row, event, now))
        count += 1
    return count
