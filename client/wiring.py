"""The one place that constructs the client's parts and connects them.

::

    writes  services ──woken──▶ sync worker, index
    pulls   sync engine ──published──▶ index, guides      ──revoked──▶ index, memory forget
    reads   services ──▶ store, Effective Memory, index   (never the network)
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from random import Random
from typing import Final

import structlog
from flask import Flask

from client.clock import system_clock
from client.config import Settings
from client.credentials import open_credentials
from client.daemon.app import create_app
from client.daemon.deadline import Deadline
from client.daemon.dispatch import Dispatcher
from client.daemon.guide_mirror import GuideMirror
from client.daemon.methods import Services, handlers
from client.daemon.status import StatusReport
from client.domain.activation_state import EXPIRES_AFTER
from client.index.manager import IndexManager
from client.index.searcher import Searcher
from client.index.vector_cache import VectorCache
from client.models.resident import ResidentModels, SearchModels, find_profile
from client.services.activate_memory import ActivateMemory
from client.services.bind_directories import BindDirectories
from client.services.edit_drafts import EditDrafts
from client.services.evaluation.case_report_jobs import CaseReports
from client.services.evaluation.cases import EvaluationCases
from client.services.evaluation.export import ExportCases
from client.services.evaluation.replay import ReplayCases
from client.services.explain_ranking import ExplainRanking
from client.services.export_memory import ExportMemory
from client.services.import_drafts import ImportDrafts
from client.services.load_memory import LoadMemory
from client.services.project_memory import ProjectMemory
from client.services.read_drafts import ReadDrafts
from client.services.read_memory import ReadMemory
from client.services.read_outbox import ReadOutbox
from client.services.read_runs import ReadRuns
from client.services.run_log import RunLog
from client.services.sign_in import SignIn
from client.services.store_draft_operation import StoreDraftOperation
from client.services.submit_drafts import SubmitDrafts
from client.services.sync_now import SyncNow
from client.store.unit_of_work import Store
from client.sync.engine import SyncEngine
from client.sync.org_client import OrgClient
from client.sync.worker import SyncWorker
from shared_schema.daemon_contract import runtime_marker
from shared_schema.ids import new_id

SIGNING_KEY: Final = "state_signing_key"
"""Fact of the installation: the key of activation states, in hex."""
STOP_SECONDS: Final = 1.5
"""How long the background threads are waited for when calls have been drained."""

log = structlog.get_logger("interleaf.daemon")


class Daemon:
    """Everything that lives as long as the resident process; see `client.daemon.lifecycle`."""

    def __init__(self, settings: Settings, models: SearchModels | None = None) -> None:
        """Open and migrate the store; nothing runs before `start`.

        ``models`` replaces those of the settings' profile.
        """
        self.settings = settings
        self.places = settings.places
        self.marker = runtime_marker()
        # Checked before the store is opened: a wrong setting leaves nothing behind.
        profile = find_profile(settings.profile)
        self.store = Store(self.places.database, clock=system_clock)
        self.models: SearchModels = models or ResidentModels(
            profile,
            self.places.models,
            model_folder=settings.model_folder,
            now_ms=system_clock,
            idle_minutes=settings.model_idle_minutes,
            on_ready=lambda: self.index.wake_all(),
        )
        self.memory = ProjectMemory(self.store)
        self.cache = VectorCache(self.places.index / "vectors.db", system_clock)
        self.index = IndexManager(
            self.places.index / "projects", self.memory.get, self.models.embedder, self.cache
        )
        self.searcher = Searcher(self.cache)
        self.run_log = RunLog(self.store)
        self.account = self._sign_in()
        self.worker = self._sync_worker()
        self.bindings = BindDirectories(self.store, system_clock)
        self.guides = GuideMirror(self.places, self.bindings.list)
        self.deadline = Deadline(settings.activation_deadline_seconds)
        self.services = self._services()
        self._winding_down: list[threading.Thread] = []

    def make_app(self, token: str | None, request_stop: Callable[[], None]) -> Flask:
        """Return the application; ``request_stop`` answers the ``stop`` call."""
        answering = handlers(self.services, request_stop)
        return create_app(Dispatcher(self.marker, answering, self.bindings.verify), token=token)

    def start(self) -> None:
        """Start the background threads, and let them look at what happened while none ran."""
        with self.store.write() as uow:
            uow.activation_states.delete_expired(system_clock() - EXPIRES_AFTER)
        self.guides.refresh()
        self.models.start()
        self.index.start()
        self.run_log.start()
        self.services.case_reports.tidy()
        self._look_again()
        self.worker.start()

    def begin_stop(self) -> None:
        """Tell the threads to end, and let calls that wait for them return; does not wait itself."""
        if self._winding_down:
            return
        steps: tuple[Callable[[], object], ...] = (
            lambda: self.worker.stop(STOP_SECONDS),
            lambda: self.index.stop(STOP_SECONDS),
            self.models.stop,
            lambda: self.services.case_reports.stop(STOP_SECONDS),
        )
        self._winding_down = [threading.Thread(target=step, name="stopping", daemon=True) for step in steps]
        for thread in self._winding_down:
            thread.start()

    def stop(self) -> None:
        """Wait for the threads, a second or two at most, and close the store."""
        self.begin_stop()
        for thread in self._winding_down:
            thread.join(STOP_SECONDS)
        self.deadline.close()
        self.run_log.stop(STOP_SECONDS)
        self.account.close()
        self.cache.close()
        self.store.close()

    # --- what happens after something changed -------------------------------------------

    def written(self, project_id: str) -> None:
        """Send and index what a local write changed."""
        self.worker.wake()
        self.index.wake(project_id)

    def published(self, project_id: str) -> None:
        """Index what a pull changed; the Project's guide may be another one too."""
        self.index.wake(project_id)
        self.guides.refresh()

    def revoked(self, project_id: str) -> None:
        """Forget the texts of a Project that may not be read any more."""
        self.memory.forget(project_id)
        self.index.forget(project_id)
        self.services.activate.forget(project_id)
        self.services.case_reports.forget(project_id)
        self.guides.refresh()

    def account_changed(self) -> None:
        """Go on with the account that is signed in now; another one's texts are gone already."""
        self._look_again()
        self.guides.refresh()
        self.worker.wake()

    def _look_again(self) -> None:
        """Bring every Project's index in line with what the store allows."""
        with self.store.read() as uow:
            projects = uow.projects.all()
        for project in projects:
            if not project.access:
                self.revoked(project.project_id)
            elif project.snapshot_at is not None:
                self.index.wake(project.project_id)

    # --- construction -------------------------------------------------------------------

    def _sign_in(self) -> SignIn:
        own_home = self.settings.home is not None or self.settings.credentials == "file"
        return SignIn(
            self.store,
            open_credentials(self.places.home, own_home=own_home),
            OrgClient,
            clock=system_clock,
            woken=self.account_changed,
        )

    def _sync_worker(self) -> SyncWorker:
        jitter = Random()  # noqa: S311 - spreads requests over time, no secret
        engine = SyncEngine(
            self.store, self.account.client, system_clock, jitter, self.published, self.revoked
        )
        return SyncWorker(
            engine,
            interval=self.settings.sync_interval_seconds,
            long_poll=self.settings.long_poll_seconds,
            rng=jitter,
        )

    def _services(self) -> Services:
        writing = (self.store, self.memory, system_clock, new_id, self.written)
        read_drafts = ReadDrafts(self.store, self.memory)
        activate = ActivateMemory(
            self.store,
            self.memory,
            self.index,
            self.searcher,
            self.models,
            system_clock,
            new_id,
            signing_key(self.store),
            self.run_log,
        )
        return Services(
            marker=self.marker,
            deadline=self.deadline,
            guides=self.guides,
            status=StatusReport(
                places=self.places,
                marker=self.marker,
                started_at=system_clock(),
                store=self.store,
                memory=self.memory,
                drafts=read_drafts,
                manager=self.index,
                search_models=self.models,
                run_write_error=lambda: self.run_log.error,
            ),
            prepare_models=self.models.retry_now,
            activate=activate,
            load=LoadMemory(self.store, self.memory),
            store=StoreDraftOperation(*writing),
            bindings=self.bindings,
            edit_drafts=EditDrafts(*writing),
            read_drafts=read_drafts,
            submit=SubmitDrafts(self.store, self.memory, self.worker, self.account.client),
            import_drafts=ImportDrafts(*writing),
            export_memory=ExportMemory(self.store, self.memory),
            read_memory=ReadMemory(self.store, self.memory),
            outbox=ReadOutbox(self.store, self.worker),
            runs=ReadRuns(self.store, self.run_log.flush),
            explain=ExplainRanking(self.store, self.memory, self.index, self.searcher, self.models),
            cases=EvaluationCases(
                self.store, self.memory, self.models, system_clock, new_id, self.run_log.flush
            ),
            case_reports=self._case_reports(),
            export_cases=ExportCases(self.store),
            account=self.account,
            sync=SyncNow(self.worker, self.store),
        )

    def _case_reports(self) -> CaseReports:
        # A searcher of its own: replays put nothing out of what agents' searches keep.
        replay = ReplayCases(
            self.store, self.models, self.cache, lambda: Searcher(self.cache), self.places.index / "replay"
        )
        return CaseReports(self.store, replay, new_id)


def build_daemon(settings: Settings, models: SearchModels | None = None) -> Daemon:
    """Construct the daemon; the caller holds the lock of its home.

    Raises:
        InterleafError: ``invalid_arguments`` for an unknown model profile, and what opening the store
            says: ``database_corrupt``, ``daemon_too_old``, ``storage_full``.
    """
    return Daemon(settings, models)


def signing_key(store: Store) -> bytes:
    """Return the installation's key for activation states, made on first use."""
    with store.read() as uow:
        found = uow.meta.get(SIGNING_KEY)
    if found is None:
        with store.write() as uow:
            found = uow.meta.get(SIGNING_KEY) or secrets.token_hex(32)
            uow.meta.set(SIGNING_KEY, found)
    return bytes.fromhex(found)
