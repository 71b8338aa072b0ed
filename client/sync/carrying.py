"""Splitting a Draft that was published while more was written to it, inside an open transaction."""

from __future__ import annotations

from dataclasses import replace

from client.domain.carry_over import carry_over
from client.domain.local_draft import LocalDraft
from client.domain.outbox import CarriedOver
from client.store.unit_of_work import UnitOfWork
from client.sync import deliveries
from shared_schema.drafts import DraftStatus
from shared_schema.ids import new_id
from shared_schema.sync_status import SyncStatus


def go_on_after(uow: UnitOfWork, draft: LocalDraft, last_ordinal: int | None, now: int) -> None:
    """Give what a merged Draft holds beyond ``last_ordinal`` a Draft of its own; twice is as once.

    ``draft`` is stored as merged already. None: the server is of a release that does not say.
    """
    if draft.status is not DraftStatus.MERGED or last_ordinal is None:
        return
    split = carry_over(draft, last_ordinal, new_id("drf"), now)
    if split is None:
        return
    if split.successor is None:
        uow.outbox.remove(split.dropped)
        uow.drafts.cancel_operations(split.dropped)
        return
    rows = {row.operation_id: row for row in uow.outbox.of_draft(draft.draft_id)}
    moving = [rows.get(each.operation_id) for each in split.successor.operations]
    if any(row is None or row.sync_status is SyncStatus.SYNCED for row in moving):
        return  # The server said that it has them: another backup is being restored.
    if uow.drafts.active_of(draft.project_id, draft.resource_id) is not None:
        return
    uow.drafts.add(split.successor)
    for operation, row in zip(split.successor.operations, moving, strict=True):
        uow.drafts.move_operation(split.successor.draft_id, operation)
        if row is not None:
            moved = deliveries.moved(row, CarriedOver(), now)
            uow.outbox.put(replace(moved, draft_id=split.successor.draft_id, sent=False))
