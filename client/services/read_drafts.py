"""Drafts as people read them: how each stands, and what it changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from client.domain.local_draft import BrokenDraft, LocalDraft
from client.domain.projection import Installed, authority_commit
from client.services.bind_directories import find_project
from client.services.finding_drafts import find_draft
from client.services.project_memory import ProjectMemory
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.daemon_contract import DraftCall, DraftDetail, DraftItem, DraftList, DraftListCall
from shared_schema.drafts import Freshness
from shared_schema.memory import ABSENT, ResourceState, Scope
from shared_schema.rules.diffs import unified_diff
from shared_schema.sync_status import SyncStatus

_LEAST_ADVANCED: Final = (SyncStatus.FAILED, SyncStatus.RETRYING, SyncStatus.SYNCING, SyncStatus.QUEUED)


class ReadDrafts:
    """Lists and shows the Drafts of this machine, those of Projects without access too."""

    def __init__(self, store: Store, memory: ProjectMemory) -> None:
        self._store = store
        self._memory = memory

    def list(self, call: DraftListCall) -> DraftList:
        """Return Drafts in order of creation: the active ones, or all."""
        with self._store.read() as uow:
            project_id = find_project(uow, call.project).project_id if call.project else None
            statuses = uow.outbox.statuses_by_draft(project_id)
            drafts = uow.drafts.list(project_id, active_only=not call.all)
            return DraftList(drafts=[_item(uow, draft, statuses.get(draft.draft_id, ())) for draft in drafts])

    def show(self, call: DraftCall) -> DraftDetail:
        """Return one Draft with its base, its result, the published state and the difference.

        A Draft that cannot be applied shows its base as its result.
        """
        with self._store.read() as uow:
            draft = find_draft(uow, call)
            statuses = {row.sync_status for row in uow.outbox.of_draft(draft.draft_id)}
            item = _item(uow, draft, statuses)
            published = uow.published.get(draft.project_id, draft.resource_id)
        state = _state_before_discard(draft)
        return DraftDetail(
            draft=item,
            base=draft.base,
            state=state,
            current=published.state() if published else ABSENT,
            conflicts=list(draft.conflicts),
            diff=unified_diff(draft.base, state),
        )


def _item(uow: UnitOfWork, draft: LocalDraft, statuses: Collection[SyncStatus]) -> DraftItem:
    source = draft.org_source if draft.scope is Scope.PROJECT else None
    return DraftItem(
        id=draft.draft_id,
        resource_id=draft.resource_id,
        project_id=draft.project_id,
        scope=draft.scope,
        path=draft.shown_path(),
        status=draft.status,
        freshness=_freshness(uow, draft),
        reconciliation=draft.reconciliation,
        sync_status=next((status for status in _LEAST_ADVANCED if status in statuses), SyncStatus.SYNCED),
        review_id=draft.review_id,
        operations=len(draft.operations) + draft.unread,
        adapts=source.resource_id if source else None,
        created_at=draft.created_at,
        updated_at=draft.updated_at,
    )


def _freshness(uow: UnitOfWork, draft: LocalDraft) -> Freshness:
    project = uow.projects.get(draft.project_id)
    if project is None or not draft.active:
        return Freshness.CURRENT
    published = None
    if draft.scope is Scope.ORG:
        published = uow.published.get(draft.project_id, draft.resource_id)
    installed = Installed(project.project_id, project.installed_commit, project.installed_seq)
    return draft.freshness(authority_commit(installed, draft, published))


def _state_before_discard(draft: LocalDraft) -> ResourceState:
    try:
        return draft.without_discard().state()
    except BrokenDraft:
        return draft.base
