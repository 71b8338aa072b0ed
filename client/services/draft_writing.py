"""What every local write shares: reading what it is decided on, and making it durable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from client.domain.draft_checks import Situation
from client.domain.draft_log import Decision, Ids
from client.domain.effective_memory import EffectiveResource
from client.domain.local_draft import BrokenDraft, LocalDraft
from client.domain.projection import Installed, authority_commit
from client.services.project_memory import CurrentMemory
from client.store.outbox import OutboxRow
from client.store.unit_of_work import UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import Prefix
from shared_schema.memory import PublishedResource, ResourceState, Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.sync_status import SyncStatus

NewId = Callable[[Prefix], str]
"""Returns a fresh id with this prefix."""
Wake = Callable[[str], None]
"""Told of a Project whose Drafts changed, after the commit; it must return at once."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write came to, as both doors answer it."""

    local_operation_id: str
    draft_id: str
    resource_id: str
    queued: bool
    sync_status: SyncStatus
    path: str | None
    content_hash: str | None
    adapts: str | None


def fresh_ids(new_id: NewId, now: int, operation_id: str | None = None) -> Ids:
    """Allocate what a write may need; ``operation_id`` is the caller's own, if it has one."""
    operations = (operation_id or new_id("lop"), new_id("lop"))
    return Ids(draft_id=new_id("drf"), resource_id=new_id("mem"), operation_ids=operations, now=now)


def situation_of(uow: UnitOfWork, current: CurrentMemory, resource_id: str) -> Situation:
    """Return what a write on a resource is decided on, whether or not the resource is visible."""
    project_id = current.project.project_id
    standing = uow.drafts.standing_on(project_id, resource_id)
    draft = next((found for found in standing if found.active), None)
    merged = next((found for found in reversed(standing) if not found.active and found.overlay), None)
    item = current.memory.by_id.get(resource_id)
    if draft is None and merged is None and item is not None:
        # The usual case: what is visible is what is published, so nothing more needs to be read.
        return Situation(
            current.memory,
            current.paths,
            beneath=_state_of(item),
            beneath_commit=_commit_of(current, item),
        )
    beneath, commit = _beneath(uow, current, resource_id, draft, merged)
    sent, not_sent = _sending(uow, draft) if draft is not None else (False, ())
    return Situation(current.memory, current.paths, draft, beneath, commit, sent, not_sent)


def record(
    uow: UnitOfWork, decision: Decision, fingerprint: str | None = None, answer: str | None = None
) -> None:
    """Store a decision: Draft, operations, outbox rows and the projection version."""
    draft = decision.draft
    now = draft.updated_at
    if decision.is_new:
        uow.drafts.add(draft)
    else:
        uow.drafts.put(draft)
    if decision.cancelled:
        uow.outbox.remove(decision.cancelled)
        if decision.queued:
            # The server counts on without them, so the next operation takes their place.
            uow.drafts.cancel_operations(decision.cancelled)
    for operation in decision.operations:
        last = operation is decision.operations[-1]
        uow.drafts.add_operation(
            draft.draft_id,
            operation,
            now,
            fingerprint=fingerprint if last else None,
            answer=answer if last else None,
        )
        if decision.queued:
            uow.outbox.add(
                OutboxRow(operation.operation_id, draft.draft_id, draft.project_id, SyncStatus.QUEUED, now)
            )
    uow.touch(draft.project_id, decision.touched)


def written(decision: Decision) -> Written:
    """Return the answer to a decision."""
    state = decision.state
    return Written(
        local_operation_id=decision.operations[-1].operation_id,
        draft_id=decision.draft.draft_id,
        resource_id=decision.draft.resource_id,
        queued=decision.queued,
        sync_status=SyncStatus.QUEUED if decision.queued else SyncStatus.SYNCED,
        path=state.path if state.exists else None,
        content_hash=content_hash(state.body) if state.exists else None,
        adapts=decision.adapts,
    )


def draft_not_found(asked: str) -> InterleafError:
    """Return the error for a Draft that is not there, or not in this Project."""
    return InterleafError(
        ErrorCode.DRAFT_NOT_FOUND,
        "There is no such Draft, and no open one on such a resource. List them with: interleaf draft list",
        details={"draft": asked},
    )


def _state_of(item: EffectiveResource) -> ResourceState:
    return ResourceState(
        exists=True,
        path=item.path,
        description=item.description,
        body=item.body,
        org_source=item.org_source if item.scope is Scope.PROJECT else None,
    )


def _commit_of(current: CurrentMemory, item: EffectiveResource) -> str | None:
    if item.scope is Scope.PROJECT:
        return current.project.installed_commit
    return item.org_source.commit_id if item.org_source else None


def _beneath(
    uow: UnitOfWork,
    current: CurrentMemory,
    resource_id: str,
    draft: LocalDraft | None,
    merged: LocalDraft | None,
) -> tuple[ResourceState | None, str | None]:
    """Return the state that lies under the active Draft, and the commit that it belongs to."""
    if merged is not None:
        try:
            state = merged.state()
        except BrokenDraft:
            pass
        else:
            # Published already, only not pulled: the commit is known, and so is its result.
            return (state if state.exists else None), merged.merged_commit
    published = uow.published.get(current.project.project_id, resource_id)
    state_beneath = published.state() if published is not None else None
    return state_beneath, _authority(current, draft, published)


def _authority(
    current: CurrentMemory, draft: LocalDraft | None, published: PublishedResource | None
) -> str | None:
    row = current.project
    if draft is None:
        return row.installed_commit
    installed = Installed(row.project_id, row.installed_commit, row.installed_seq)
    return authority_commit(installed, draft, published)


def _sending(uow: UnitOfWork, draft: LocalDraft) -> tuple[bool, tuple[str, ...]]:
    """Return whether the server may have anything of a Draft, and the operations it cannot have."""
    rows = {row.operation_id: row for row in uow.outbox.of_draft(draft.draft_id)}
    if draft.broken:
        sent = any(row.sent for row in rows.values()) or not rows
        return sent, () if sent else tuple(rows)
    not_sent: list[str] = []
    for operation in reversed(draft.operations):
        row = rows.get(operation.operation_id)
        # A refused operation is none that the server has; one without a row was synced long ago.
        if row is None or (row.sent and row.sync_status is not SyncStatus.FAILED):
            break
        not_sent.append(operation.operation_id)
    return len(not_sent) < len(draft.operations), tuple(reversed(not_sent))
