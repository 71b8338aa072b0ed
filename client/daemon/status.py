"""How this machine stands: account, synchronisation, models, and every Project."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from client.index.manager import IndexManager
from client.models.resident import SearchModels
from client.services.bind_directories import find_project
from client.services.project_memory import ProjectMemory
from client.services.read_drafts import ReadDrafts
from client.store.account import AccountRow
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store
from shared_schema.daemon_contract import (
    Account,
    DaemonStatus,
    DraftListCall,
    IndexStatus,
    ModelStatus,
    ProjectStatus,
    RuntimeMarker,
)
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.errors import InterleafError
from shared_schema.places import Places
from shared_schema.release import RELEASE


@dataclass(frozen=True)
class StatusReport:
    """Answers what runs here and how it is."""

    places: Places
    marker: RuntimeMarker
    started_at: int
    store: Store
    memory: ProjectMemory
    drafts: ReadDrafts
    manager: IndexManager
    search_models: SearchModels
    run_write_error: Callable[[], str | None]

    def daemon(self) -> DaemonStatus:
        """Answer ``daemon_status``."""
        with self.store.read() as uow:
            account, sync = uow.account.get(), uow.sync_state.get()
            projects, bindings = uow.projects.all(), len(uow.bindings.all())
        return DaemonStatus(
            pid=os.getpid(),
            version=RELEASE,
            marker=self.marker,
            home=str(self.places.home),
            socket=str(self.places.socket),
            started_at=self.started_at,
            account=_account(account),
            server_url=None if account is None else account.server_url,
            signed_out=account is not None and account.signed_out,
            last_sync_at=sync.last_round_at,
            last_sync_error=sync.last_error,
            run_write_error=self.run_write_error(),
            models=self.models(),
            projects=[self._project(project) for project in projects],
            bindings=bindings,
        )

    def models(self) -> ModelStatus:
        """Answer ``models_status``."""
        return self.search_models.status()

    def index(self, project: str) -> IndexStatus:
        """Answer ``search_index_status``, by the Project's id or unique name. Raises ``not_found``."""
        return self._index(self._known(project))

    def rebuild(self, project: str) -> IndexStatus:
        """Ask for a whole new index of a readable Project, and tell where it stands."""
        project_id = self._known(project)
        self.memory.get(project_id)
        self.manager.rebuild(project_id)
        return self._index(project_id)

    def _known(self, project: str) -> str:
        with self.store.read() as uow:
            return find_project(uow, project).project_id

    def _project(self, project: ProjectRow) -> ProjectStatus:
        with self.store.read() as uow:
            counts = uow.outbox.counts(project.project_id)
        drafts = self.drafts.list(DraftListCall(project=project.project_id)).drafts
        return ProjectStatus(
            project_id=project.project_id,
            name=project.name,
            role=project.role,
            access=project.access,
            commit_id=project.installed_commit,
            commit_seq=project.installed_seq,
            resources=self._resources(project.project_id),
            last_success_at=project.last_success_at,
            last_error=project.last_error,
            sync_counts={status.value: count for status, count in counts.items()},
            drafts_behind=sum(draft.freshness is Freshness.BEHIND for draft in drafts),
            drafts_conflicting=sum(draft.reconciliation is Reconciliation.CONFLICTS for draft in drafts),
            index=self._index(project.project_id),
        )

    def _resources(self, project_id: str) -> int:
        try:
            return len(self.memory.get(project_id).by_id)
        except InterleafError:
            return 0  # no access, or no first snapshot yet

    def _index(self, project_id: str) -> IndexStatus:
        found = self.manager.status(project_id)
        manifest = None
        if found.generation is not None:
            with self.manager.pin(project_id) as generation:
                manifest = None if generation is None else generation.manifest
        return IndexStatus(
            project_id=project_id,
            state=found.state,
            index_revision=found.index_revision,
            units=0 if manifest is None else manifest.units,
            resources=0 if manifest is None else manifest.resources,
            done=found.done,
            total=found.total,
            lag=found.lag,
            reranker=self.search_models.reranker,
            error=found.error,
        )


def _account(row: AccountRow | None) -> Account | None:
    return None if row is None else Account(server_url=row.server_url, me=row.me)
