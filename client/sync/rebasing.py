"""Bringing the Drafts of a Project onto the published state that was just installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
from client.store.outbox import OutboxRow
from client.store.projects import ProjectRow
from client.store.unit_of_work import UnitOfWork
from shared_schema.drafts import DraftOperation, OperationKind, Reconciliation
from shared_schema.ids import new_id
from shared_schema.rules.paths import PathSet
from shared_schema.sync_status import SyncStatus


def rebase_drafts(uow: UnitOfWork, project: ProjectRow, now: int) -> tuple[bool, bool]:
    """Decide about every active Draft inside the caller's transaction.

    Returns whether anything that the Project shows changed, and whether there is something to
    upload. Nothing is decided while the installed commit is newer than the feed that was read: a
    Draft may just have been published.
    """
    if not project.access or project.snapshot_at is None or project.installed_seq > project.head_seq:
        return False, False
    paths: PathSet | None = None
    changed = uploads = False
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
