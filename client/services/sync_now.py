"""Synchronising because somebody asks for it, and telling what is left."""

from __future__ import annotations

import time
from collections.abc import Callable

from client.clock import Clock, system_clock
from client.store.unit_of_work import Store
from client.sync import deliveries
from client.sync.engine import RoundResult
from client.sync.worker import SyncWorker
from shared_schema.daemon_contract import SyncCall, SyncResult
from shared_schema.errors import ErrorCode
from shared_schema.sync_status import SyncStatus


class SyncNow:
    """Wakes the worker, and waits for it when asked to."""

    def __init__(
        self,
        worker: SyncWorker,
        store: Store,
        *,
        clock: Clock = system_clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker = worker
        self._store = store
        self._clock = clock
        self._monotonic = monotonic

    def __call__(self, call: SyncCall) -> SyncResult:
        """Make everything due and wake the worker; with ``wait`` answer when all is pushed and pulled.

        Waiting ends early when only a person can help: what is left has failed, or waits for a
        sign-in or for access. It ends at ``timeout_seconds`` at the latest.
        """
        with self._store.write() as uow:
            deliveries.make_due(uow, self._clock())
        if not call.wait:
            self._worker.wake()
            return self._result(None)
        deadline = self._monotonic() + call.timeout_seconds
        result = self._worker.run_round(call.timeout_seconds)
        while not self._settled(result):
            remaining = deadline - self._monotonic()
            if remaining <= 0:
                break
            # The worker knows when trying again makes sense.
            result = self._worker.next_round(remaining) or result
        return self._result(result)

    def _settled(self, result: RoundResult | None) -> bool:
        if result is None:
            return False
        if result.error is not None:
            return not result.error.retryable
        if not result.pulled or any(error.retryable for error in result.projects_failing.values()):
            return False
        with self._store.read() as uow:
            return not uow.outbox.due(self._clock()) and uow.outbox.next_due_at() is None

    def _result(self, result: RoundResult | None) -> SyncResult:
        with self._store.read() as uow:
            counts = uow.outbox.counts()
            error = uow.sync_state.get().last_error
        pending = sum(counts[each] for each in (SyncStatus.QUEUED, SyncStatus.SYNCING, SyncStatus.RETRYING))
        failing = {} if result is None else result.projects_failing
        if result is not None and result.error is not None:
            error = result.error.message
        if error is None and failing:
            error = next(iter(failing.values())).message
        if error is None and pending and result is None:
            error = ErrorCode.SYNC_INCOMPLETE.value
        return SyncResult(
            pending=pending,
            failed=counts[SyncStatus.FAILED],
            projects_failing=sorted(failing),
            error=error,
        )
