"""The outbox as a person sees it, and another try for what failed."""

from __future__ import annotations

from client.clock import Clock, system_clock
from client.domain.local_draft import BrokenDraft, LocalDraft
from client.store.outbox import OutboxEntry
from client.store.unit_of_work import Store
from client.sync import deliveries
from client.sync.worker import SyncWorker
from shared_schema.daemon_contract import Count, Outbox, OutboxItem, OutboxListCall, OutboxRetryCall
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.sync_status import SyncStatus

_WAITING = frozenset({SyncStatus.FAILED, SyncStatus.RETRYING})


class ReadOutbox:
    """Lists operations on their way, and sends them on."""

    def __init__(self, store: Store, worker: SyncWorker, clock: Clock = system_clock) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock

    def list(self, call: OutboxListCall) -> Outbox:
        """Return what is not synced, in order; with ``all`` also what is."""
        with self._store.read() as uow:
            entries = uow.outbox.entries(all_rows=call.all)
            drafts = {name: uow.drafts.get(name) for name in {entry.row.draft_id for entry in entries}}
        return Outbox(operations=[_item(entry, drafts[entry.row.draft_id]) for entry in entries])

    def retry(self, call: OutboxRetryCall) -> Count:
        """Queue a failed or waiting operation again under its id, or all of them; returns how many.

        Raises ``outbox_operation_not_found``.
        """
        with self._store.write() as uow:
            if call.local_operation_id is None:
                rows = list(uow.outbox.with_status(*_WAITING))
            else:
                row = uow.outbox.get(call.local_operation_id)
                if row is None:
                    raise InterleafError(
                        ErrorCode.OUTBOX_OPERATION_NOT_FOUND,
                        "There is no such operation. List them with: interleaf outbox list",
                        details={"local_operation_id": call.local_operation_id},
                    )
                rows = [row] if row.sync_status in _WAITING else []
            count = deliveries.retry(uow, rows, self._clock())
        self._worker.wake()
        return Count(count=count)


def _item(entry: OutboxEntry, draft: LocalDraft | None) -> OutboxItem:
    row = entry.row
    return OutboxItem(
        local_operation_id=row.operation_id,
        draft_id=row.draft_id,
        project_id=row.project_id,
        ordinal=entry.ordinal,
        kind=entry.kind,
        path=entry.payload.path or _path(draft),
        sync_status=row.sync_status,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        cause=row.cause,
        error_code=row.error_code,
        error_message=row.error_message,
        retry_can_help=row.retry_can_help,
        created_at=entry.created_at,
    )


def _path(draft: LocalDraft | None) -> str | None:
    if draft is None:
        return None
    try:
        return draft.state().path or draft.base.path or None
    except BrokenDraft:
        return None
