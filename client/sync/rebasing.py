"""Bringing the Drafts of a Project onto the published state that was just installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from client.domain.local_draft import BrokenDraft, LocalDraft
from client.domain.rebase import (
    AdvanceBase,
    Decision,
    DraftView,
    Keep,
    RecordRebase,
    ReportConflicts,
    current_of,
    decide_rebase,
)
from client.domain.refounding import Ground, refound
from client.store.outbox import OutboxRow
from client.store.projects import ProjectRow
from client.store.unit_of_work import UnitOfWork
from shared_schema.drafts import DraftOperation, OperationKind, Reconciliation
from shared_schema.errors import ErrorCode
from shared_schema.ids import new_id
from shared_schema.rules.paths import PathSet
from shared_schema.sync_status import SyncStatus

_LOST_AFTER: Final = 3
"""So many answers that a commit is unknown, with pulls in between: it does not come back."""


def rebase_drafts(uow: UnitOfWork, project: ProjectRow, now: int) -> tuple[bool, bool]:
    """Decide about every active Draft inside the caller's transaction.

    Returns whether anything that the Project shows changed, and whether there is something to
    upload. Nothing is decided while the installed commit is newer than the feed that was read: a
    Draft may just have been published.
    """
    if not project.access or project.snapshot_at is None or project.installed_seq > project.head_seq:
        return False, False
    paths: PathSet | None = None
    changed = uploads = refound_lost(uow, project, now)
    for draft in uow.drafts.list(project.project_id, active_only=True):
        published = uow.published.get(project.project_id, draft.resource_id)
        current, commit = current_of(draft.scope, published, project.installed_commit, draft.base_commit)
        conflicting = draft.reconciliation is Reconciliation.CONFLICTS
        if commit == draft.base_commit and not conflicting:
            continue
        try:
            view = DraftView(draft.scope, draft.base_commit, draft.base, draft.state(), conflicting)
        except BrokenDraft:
            continue
        if paths is None:
            paths = PathSet((each.path, each.resource_id) for each in uow.published.all(project.project_id))
        decision = decide_rebase(view, current, commit, _occupied(paths, draft))
        if _apply(uow, draft, decision, now):
            changed = True
            uploads = uploads or isinstance(decision, RecordRebase)
    return changed, uploads


def refound_lost(uow: UnitOfWork, project: ProjectRow, now: int) -> bool:
    """Found the Drafts anew whose commits the server lost; return whether there were any."""
    if project.installed_commit != project.head_commit:
        return False
    lost = {row.draft_id for row in lost_rows(uow) if row.project_id == project.project_id}
    return sum(_refound(uow, project, draft_id, now) for draft_id in sorted(lost)) > 0


def lost_rows(uow: UnitOfWork) -> list[OutboxRow]:
    """Return the operations that name a commit which the server does not have any more."""
    return [
        row
        for row in uow.outbox.with_status(SyncStatus.RETRYING)
        if row.error_code == ErrorCode.COMMIT_UNKNOWN and row.cause is None and row.attempts >= _LOST_AFTER
    ]


def _refound(uow: UnitOfWork, project: ProjectRow, draft_id: str, now: int) -> bool:
    draft = uow.drafts.get(draft_id)
    if draft is None or not draft.active:
        return False
    rows = {row.operation_id: row for row in uow.outbox.of_draft(draft_id)}
    waiting = [
        each
        for each in draft.operations
        if (row := rows.get(each.operation_id)) is not None and row.sync_status is not SyncStatus.SYNCED
    ]
    published = uow.published.get(project.project_id, draft.resource_id)
    state, commit = current_of(draft.scope, published, project.installed_commit, None)
    adapted = draft.org_source.resource_id if draft.org_source is not None else None
    source = uow.published.get(project.project_id, adapted) if adapted is not None else None
    ground = Ground(state, commit, source.org_source if source is not None else None)
    paths = PathSet((each.path, each.resource_id) for each in uow.published.all(project.project_id))
    try:
        founded = refound(
            draft,
            len(draft.operations) - len(waiting),
            ground,
            lambda: new_id("lop"),
            _occupied(paths, draft),
        )
    except BrokenDraft:
        return False
    uow.outbox.remove(founded.replaced)
    uow.drafts.cancel_operations(founded.replaced)
    uow.drafts.put(replace(founded.draft, updated_at=now))
    for operation in founded.operations:
        if operation.operation_id in founded.replaced:
            uow.drafts.move_operation(draft_id, operation)
        else:
            uow.drafts.add_operation(draft_id, operation, now)
        uow.outbox.add(OutboxRow(operation.operation_id, draft_id, draft.project_id, SyncStatus.QUEUED, now))
    uow.touch(draft.project_id, {draft.resource_id, *([adapted] if adapted is not None else [])})
    return True


def _apply(uow: UnitOfWork, draft: LocalDraft, decision: Decision, now: int) -> bool:
    """Store what was decided about a Draft; return whether anything changed."""
    match decision:
        case Keep():
            return False
        case AdvanceBase():
            after = _settled(replace(draft, base_commit=decision.base_commit))
        case RecordRebase():
            _record(uow, draft, decision, now)
            after = _settled(replace(draft, base_commit=decision.base_commit, base=decision.base))
        case ReportConflicts():
            kinds = tuple(dict.fromkeys(conflict.kind for conflict in decision.conflicts))
            after = replace(draft, reconciliation=Reconciliation.CONFLICTS, conflicts=kinds)
    if after == draft:
        return False
    uow.drafts.put(replace(after, updated_at=now))
    uow.touch(draft.project_id, {draft.resource_id})
    return True


def _settled(draft: LocalDraft) -> LocalDraft:
    return replace(draft, reconciliation=Reconciliation.UNKNOWN, conflicts=())


def _record(uow: UnitOfWork, draft: LocalDraft, decision: RecordRebase, now: int) -> None:
    operation = DraftOperation(
        operation_id=new_id("lop"),
        ordinal=draft.next_ordinal,
        kind=OperationKind.REBASE,
        base_commit=decision.base_commit,
        state=decision.state,
    )
    uow.drafts.add_operation(draft.draft_id, operation, now)
    uow.outbox.add(
        OutboxRow(
            operation_id=operation.operation_id,
            draft_id=draft.draft_id,
            project_id=draft.project_id,
            sync_status=SyncStatus.QUEUED,
            updated_at=now,
        )
    )


def _occupied(paths: PathSet, draft: LocalDraft) -> Callable[[str], str | None]:
    """Tell which published resource is in a path's way: neither the Draft's own nor the one it hides."""
    own = {draft.resource_id} | ({draft.org_source.resource_id} if draft.org_source is not None else set())
    return lambda path: next((holder for holder in paths.holders(path) if holder not in own), None)
