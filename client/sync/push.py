"""One pass over the outbox: what is due goes to the server, Draft by Draft, in order.

Each batch is claimed in one transaction, sent outside of any, and recorded in another one, guarded
by its lease token: the answer of an attempt that was given up meanwhile changes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Final

from client.domain.local_draft import LocalDraft
from client.domain.outbox import (
    Accepted,
    Due,
    Event,
    Parked,
    Problem,
    PutBack,
    Refused,
    ServerFailed,
    Unanswered,
)
from client.domain.retry_policy import (
    RETRY_CAN_HELP,
    FullJitter,
    Verdict,
    delay_ms,
    judge,
    retry_after_ms,
)
from client.store.outbox import OutboxRow
from client.store.unit_of_work import Store, UnitOfWork
from client.sync import deliveries
from client.sync.org_client import OrgClient
from client.sync.witness import Witness
from shared_schema import limits
from shared_schema.drafts import DraftOperation, DraftStatus
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import new_id
from shared_schema.org_contract import UploadRequest
from shared_schema.sync_status import ParkingCause, SyncStatus

BATCH_BYTES: Final = 3 * limits.MIB
INSTALLATION_KEY: Final = "installation_id"
_RETRYING: Final = SyncStatus.RETRYING
_FAILURES_IN_A_ROW: Final = 3
"""After so many Drafts met a 5xx and none passed, the rest of the pass waits for the next round."""


@dataclass
class PushReport:
    """What a pass came to."""

    accepted: int = 0
    failed: int = 0
    error: InterleafError | None = None
    """Why the pass ended early: nobody answered, the account is signed out, patience was asked for."""
    lost_projects: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Batch:
    draft: LocalDraft
    lease: str
    rows: tuple[OutboxRow, ...]
    operations: tuple[DraftOperation, ...]


class Pusher:
    """Sends operations. Clock in epoch ms; one pass at a time."""

    def __init__(self, store: Store, clock: Callable[[], int], rng: Random, witness: Witness) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._wait = FullJitter(rng)
        self._witness = witness

    def push(self, client: OrgClient, stopping: Callable[[], bool]) -> PushReport:
        """Send everything that is due; see `PushReport`."""
        report = PushReport()
        began = self._witness.begin_round()
        self._end_discarded(client, report)
        failures = 0
        with self._store.read() as uow:
            due = uow.outbox.due(self._clock())
        for draft_id, rows in groupby(due, key=lambda row: row.draft_id):
            listed = [*rows]
            if listed[0].project_id in report.lost_projects:
                continue
            before = report.accepted
            if not self._push_draft(client, draft_id, [row.operation_id for row in listed], began, report):
                failures += 1
            if report.accepted > before:
                failures = 0
            if report.error is not None or failures >= _FAILURES_IN_A_ROW or stopping():
                break
        return report

    def _push_draft(
        self, client: OrgClient, draft_id: str, waiting: list[str], began: int, report: PushReport
    ) -> bool:
        """Send one Draft's due operations; return whether the server held up."""
        largest = limits.UPLOAD_OPERATIONS
        while waiting:
            batch = self._claim(draft_id, waiting, largest)
            if batch is None:
                return True
            try:
                request = UploadRequest(
                    installation_id=installation_id(self._store),
                    draft=batch.draft.header(),
                    operations=list(batch.operations),
                )
                taken = set(client.upload(request).accepted)
            except InterleafError as error:
                verdict = judge(error)
                again = self._record_error(batch, error, verdict, began, report)
                if not again:
                    return verdict is not Verdict.SERVER_FAILED
                largest = 1
                continue
            self._witness.saw(draft_id, good=True)
            self._record(
                batch, [Accepted() if row.operation_id in taken else PutBack() for row in batch.rows]
            )
            report.accepted += len(taken)
            waiting = [name for name in waiting if name not in taken]
            if not taken:
                return True
            largest = limits.UPLOAD_OPERATIONS
        return True

    def _claim(self, draft_id: str, waiting: Sequence[str], largest: int) -> _Batch | None:
        """Take the next operations of a Draft; None when another holder was faster."""
        now = self._clock()
        lease = secrets.token_hex(8)
        with self._store.write() as uow:
            draft = uow.drafts.get(draft_id)
            if draft is None:
                return None
            chosen = _choose(draft, waiting, _size_limit(uow, waiting[0], largest))
            if not chosen:
                return None
            names = [operation.operation_id for operation in chosen]
            rows = uow.outbox.claim(names, lease, now)
            if [row.operation_id for row in rows] != names:
                for row in rows:
                    uow.outbox.put_leased(deliveries.moved(row, PutBack(), now), lease)
                return None
        return _Batch(draft, lease, rows, chosen)

    def _record(self, batch: _Batch, events: Sequence[Event]) -> None:
        now = self._clock()
        with self._store.write() as uow:
            for row, event in zip(batch.rows, events, strict=True):
                uow.outbox.put_leased(deliveries.moved(row, event, now), batch.lease)
            if all(isinstance(event, Accepted) for event in events):
                return
            # What waits behind this attempt has no time of its own: the order is strict.
            own = {row.operation_id for row in batch.rows}
            for row in uow.outbox.of_draft(batch.draft.draft_id):
                if row.operation_id not in own and row.sync_status is _RETRYING and row.cause is None:
                    uow.outbox.put(deliveries.moved(row, Due(), now))

    def _record_error(
        self, batch: _Batch, error: InterleafError, verdict: Verdict, began: int, report: PushReport
    ) -> bool:
        """Record a failed attempt; return whether the Draft should be tried again in smaller steps."""
        problem = Problem(error.code.value, error.message)
        if verdict is Verdict.REFUSED:
            return self._record_refusal(batch, error, problem, report)
        if verdict is Verdict.SIGNED_OUT:
            report.error = error
            self._park(batch, ParkingCause.SIGNED_OUT, problem)
        elif verdict is Verdict.ACCESS_LOST:
            report.lost_projects.add(batch.draft.project_id)
            self._park(batch, ParkingCause.ACCESS_LOST, problem)
        else:
            due = self._clock() + delay_ms(
                self._wait,
                batch.rows[0].attempts,
                retry_after_ms=retry_after_ms(error),
                rng=self._rng,
            )
            event: Event = Unanswered(problem, due)
            if verdict is Verdict.SERVER_FAILED:
                event = ServerFailed(problem, due, self._witness.others_pass(batch.draft.draft_id, began))
            else:
                report.error = error
            self._record(batch, [event] * len(batch.rows))
        return False

    def _record_refusal(
        self, batch: _Batch, error: InterleafError, problem: Problem, report: PushReport
    ) -> bool:
        self._witness.saw(batch.draft.draft_id, good=True)
        if self._reoffered(batch, error):
            return False
        if error.code is ErrorCode.COMMIT_UNKNOWN or self._merged_meanwhile(batch, error):
            # The server was restored: the next pull brings another base. Or the Draft was published
            # before these came: the feed tells how far, and the others go on in a Draft of their own.
            due = self._clock() + delay_ms(self._wait, batch.rows[0].attempts, rng=self._rng)
            self._record(batch, [Unanswered(problem, due)] * len(batch.rows))
            return False
        named = error.details.get("operation_id")
        culprit = next((row for row in batch.rows if row.operation_id == named), None)
        if culprit is None and len(batch.rows) > 1:
            # Nobody knows which one it was: one at a time, until it shows.
            self._record(batch, [PutBack()] * len(batch.rows))
            return True
        culprit = culprit or batch.rows[0]
        refused = Refused(problem, retry_can_help=error.code in RETRY_CAN_HELP)
        self._record(batch, [refused if row is culprit else PutBack() for row in batch.rows])
        report.failed += 1
        # Requests take effect as a whole, so those before the culprit have not been taken yet.
        return culprit is not batch.rows[0]

    def _merged_meanwhile(self, batch: _Batch, error: InterleafError) -> bool:
        with self._store.read() as uow:
            draft = uow.drafts.get(batch.draft.draft_id)
        merged = error.details.get("status") == DraftStatus.MERGED.value
        return error.code is ErrorCode.DRAFT_NOT_OPEN and merged and draft is not None and draft.active

    def _reoffered(self, batch: _Batch, error: InterleafError) -> bool:
        """After a restore the server may miss what it took: queue it again, in front of the batch."""
        expected = error.details.get("expected_ordinal")
        first = batch.operations[0].ordinal
        if error.code is not ErrorCode.OPERATION_OUT_OF_ORDER or not isinstance(expected, int):
            return False
        missing = {
            operation.operation_id
            for operation in batch.draft.operations
            if expected <= operation.ordinal < first
        }
        if not missing:
            return False
        self._record(batch, [PutBack()] * len(batch.rows))
        with self._store.write() as uow:
            rows = [row for row in uow.outbox.of_draft(batch.draft.draft_id) if row.operation_id in missing]
            return deliveries.reoffer(uow, rows, self._clock()) > 0

    def _park(self, batch: _Batch, cause: ParkingCause, problem: Problem) -> None:
        project_id = batch.draft.project_id if cause is ParkingCause.ACCESS_LOST else None
        self._record(batch, [Parked(cause, problem)] * len(batch.rows))
        with self._store.write() as uow:
            deliveries.park(uow, cause, problem, self._clock(), project_id)
            if cause is ParkingCause.SIGNED_OUT:
                uow.account.set_signed_out(True)

    def _end_discarded(self, client: OrgClient, report: PushReport) -> None:
        """A discard behind an operation that the server refused cannot wait for it: end the Draft."""
        with self._store.read() as uow:
            stuck = {row.draft_id for row in uow.outbox.with_status(SyncStatus.FAILED)}
            stuck |= {
                row.draft_id
                for row in uow.outbox.with_status(SyncStatus.RETRYING)
                if row.error_code == ErrorCode.COMMIT_UNKNOWN and row.cause is None
            }
            drafts = [draft for name in sorted(stuck) if (draft := uow.drafts.get(name)) is not None]
        for draft in drafts:
            # What was discarded elsewhere does not take away what was written here: that stays to read.
            if not draft.discarded_here:
                continue
            try:
                client.discard_draft(draft.draft_id)
            except InterleafError as error:
                if judge(error) is not Verdict.ACCESS_LOST and error.code is not ErrorCode.DRAFT_NOT_OPEN:
                    continue
            self._drop_rest(draft.draft_id)
            report.accepted += 1

    def _drop_rest(self, draft_id: str) -> None:
        with self._store.write() as uow:
            rest = [
                row.operation_id
                for row in uow.outbox.of_draft(draft_id)
                if row.sync_status is not SyncStatus.SYNCED
            ]
            uow.outbox.remove(rest)
            uow.drafts.cancel_operations(rest)


def _choose(draft: LocalDraft, waiting: Sequence[str], largest: int) -> tuple[DraftOperation, ...]:
    """Return the first waiting operations that go together in one request."""
    wanted = set(waiting)
    chosen: list[DraftOperation] = []
    size = 0
    for operation in draft.operations:
        if operation.operation_id not in wanted:
            continue
        size += len(operation.model_dump_json(exclude_none=True).encode())
        if chosen and (size > BATCH_BYTES or len(chosen) == largest):
            break
        chosen.append(operation)
    return tuple(chosen)


def _size_limit(uow: UnitOfWork, first: str, largest: int) -> int:
    """An operation that the server choked on goes alone, so that it alone is blamed or passes."""
    row = uow.outbox.get(first)
    suspicious = row is not None and (row.streak > 0 or row.error_code == ErrorCode.INTERNAL_ERROR)
    return 1 if suspicious else largest


def installation_id(store: Store) -> str:
    """Return this installation's id, made on first use: half of every idempotency key."""
    with store.read() as uow:
        found = uow.meta.get(INSTALLATION_KEY)
    if found is not None:
        return found
    with store.write() as uow:
        found = uow.meta.get(INSTALLATION_KEY)
        if found is None:
            found = new_id("ins")
            uow.meta.set(INSTALLATION_KEY, found)
    return found
