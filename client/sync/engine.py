"""One round of synchronisation: free old leases, push, read the feed, pull, rebase.

No thread lives here and no time passes but in the requests: clock, randomness and the client come
from outside. Whatever goes wrong is part of the `RoundResult` and stored for people to read; only
a broken local database is raised. A round may be ended at any point: everything it did so far is
committed, and the next one goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import structlog

from client.domain.retry_policy import LONGEST_RETRY_AFTER_MS, Verdict, http_status, judge, retry_after_ms
from client.store.unit_of_work import Store
from client.sync import deliveries
from client.sync.feed import Applied, apply_answer
from client.sync.org_client import OrgClient
from client.sync.org_http import Interrupted
from client.sync.pull import Puller
from client.sync.push import Pusher
from client.sync.rebasing import lost_rows, rebase_drafts
from client.sync.resync import compare_drafts
from client.sync.witness import SYNC, Witness
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import SyncAnswer
from shared_schema.sync_status import ParkingCause

LEASE_MS: Final = 600_000
"""An attempt that is older than any time-out of a request was given up, whoever made it."""

_log = structlog.get_logger("interleaf.sync")


@dataclass
class RoundResult:
    """What one round came to."""

    accepted: int = 0
    """Operations that the server took."""
    failed: int = 0
    """Operations that it refused for good."""
    changed: set[str] = field(default_factory=set)
    """Projects that show something else now."""
    projects_failing: dict[str, InterleafError] = field(default_factory=dict)
    """Projects whose pull failed, and why."""
    error: InterleafError | None = None
    """Why push or feed ended early."""
    pulled: bool = False
    """Whether the feed was read to its end."""
    interrupted: bool = False
    """Whether the long poll was ended from this side."""
    due_in: float | None = None
    """Seconds until the next stored retry."""
    more: bool = False
    """Whether there is work that need not wait: a rebase to upload, pages to read."""

    @property
    def complete(self) -> bool:
        """Whether the round reached the server and read all that was new."""
        return self.pulled and self.error is None and not self.projects_failing

    @property
    def retry_after_ms(self) -> int | None:
        """How long the server asked to be left alone."""
        return None if self.error is None else retry_after_ms(self.error)


class SyncEngine:
    """Brings this machine and the server together, one `step` at a time.

    ``clock`` gives epoch ms. ``on_published`` hears of every Project that shows something else
    after a round, ``on_revoked`` of every Project whose text has to be forgotten; both are called
    after the commit, outside of any transaction.
    """

    def __init__(
        self,
        store: Store,
        client_source: Callable[[], OrgClient | None],
        clock: Callable[[], int],
        rng: Random,
        on_published: Callable[[str], None],
        on_revoked: Callable[[str], None],
    ) -> None:
        self._store = store
        self._client_source = client_source
        self._clock = clock
        self._on_published = on_published
        self._on_revoked = on_revoked
        self._witness = Witness()
        self._pusher = Pusher(store, clock, rng, self._witness)
        self._puller = Puller(store, clock)
        self._stopping = threading.Event()
        self._one_at_a_time = threading.Lock()
        self._recovered = False
        self._rebased: dict[str, int] = {}
        self._snapshots_wanted: set[str] = set()
        self._polling: OrgClient | None = None
        self._held: tuple[int, InterleafError] | None = None
        self._unreachable = False

    def stop(self) -> None:
        """End a round that is under way at the next safe point, from another thread."""
        self._stopping.set()
        self.interrupt()

    def interrupt(self) -> None:
        """End a long poll that is under way, from another thread; see `step`."""
        polling = self._polling
        if polling is not None:
            polling.interrupt()

    def step(self, wait_seconds: float = 0, interrupted: Callable[[], bool] = lambda: False) -> RoundResult:
        """Do one round. With ``wait_seconds`` the server may hold the feed so long when nothing is new.

        ``interrupted`` says that there is something better to do than to wait; whoever makes it true
        calls `interrupt` too.
        """
        with self._one_at_a_time:
            return self._step(wait_seconds, interrupted)

    def _step(self, wait_seconds: float, interrupted: Callable[[], bool]) -> RoundResult:
        result = RoundResult()
        self._recover()
        client = self._client_source()
        if client is None:
            self._park_signed_out()
            result.error = InterleafError(ErrorCode.SIGNED_OUT)
        elif self._held is not None and self._clock() < self._held[0]:
            result.error = self._held[1]
        else:
            self._round(client, wait_seconds, interrupted, result)
            wish = result.retry_after_ms
            self._unreachable = self._unreachable or _nobody_answered(result.error)
            self._held = None
            if wish is not None and result.error is not None:
                # Whoever asks in between: the server said when it wants to be asked again.
                self._held = self._clock() + min(wish, LONGEST_RETRY_AFTER_MS), result.error
        self._finish(result)
        return result

    def _round(
        self,
        client: OrgClient,
        wait_seconds: float,
        interrupted: Callable[[], bool],
        result: RoundResult,
    ) -> None:
        report = self._pusher.push(client, self._stopping.is_set)
        result.accepted, result.failed, result.error = report.accepted, report.failed, report.error
        if report.error is not None or self._stopping.is_set():
            return
        self._polling = client
        try:
            self._read_feed(client, self._longest_wait(wait_seconds), interrupted, result)
            result.pulled = not self._stopping.is_set()
        except Interrupted:
            result.interrupted = True
        except InterleafError as error:
            self._feed_failed(error, result)
            return
        finally:
            self._polling = None
        if result.pulled or result.interrupted:
            self._pull_projects(client, result)
            self._rebase(result)

    def _recover(self) -> None:
        now = self._clock()
        # No attempt of this process is under way at its first round, so every lease is a dead one's.
        before = now - LEASE_MS if self._recovered else now + 1
        with self._store.read() as uow:
            leased = uow.outbox.counts()
        if any(count for status, count in leased.items() if status == "syncing"):
            with self._store.write() as uow:
                deliveries.recover(uow, now, before)
        self._recovered = True

    def _longest_wait(self, wanted: float) -> float:
        """Do not hold the feed while there is something to do, or past the next stored retry."""
        if wanted <= 0 or self._puller.behind():
            return 0
        with self._store.read() as uow:
            if uow.outbox.due(self._clock()):
                return 0
            due = uow.outbox.next_due_at()
        return wanted if due is None else min(wanted, max(due - self._clock(), 0) / 1000)

    def _read_feed(
        self, client: OrgClient, wait: float, interrupted: Callable[[], bool], result: RoundResult
    ) -> None:
        while not self._stopping.is_set():
            with self._store.read() as uow:
                cursor = uow.sync_state.get().cursor
            try:
                answer = client.sync(cursor, wait, interrupted) if wait else client.sync(cursor)
            except InterleafError as error:
                if error.code is not ErrorCode.RESYNC_REQUIRED or cursor is None:
                    raise
                answer, cursor = self._start_over(client), None
            self._answered(result)
            if answer is None:
                return
            self._compare_drafts(client, answer, result, anew=cursor is None)
            self._apply(answer, result, anew=cursor is None)
            wait = 0
            if not answer.has_more:
                return

    def _answered(self, result: RoundResult) -> None:
        self._witness.saw(SYNC, good=True)
        if self._unreachable:
            # The network is back: what waits for time alone need not wait any longer.
            self._unreachable = False
            with self._store.write() as uow:
                result.more = deliveries.make_due(uow, self._clock()) > 0 or result.more

    def _start_over(self, client: OrgClient) -> SyncAnswer:
        """The cursor means nothing to the server any more: heads, snapshots and Drafts anew."""
        answer = client.sync(None)
        if answer is None:
            raise InterleafError(ErrorCode.ORG_SERVER_UNAVAILABLE, "The server answered without an answer.")
        self._snapshots_wanted |= {head.project_id for head in answer.projects}
        return answer

    def _compare_drafts(
        self, client: OrgClient, answer: SyncAnswer, result: RoundResult, *, anew: bool
    ) -> None:
        changed, offered = compare_drafts(self._store, client, answer, self._clock(), anew=anew)
        result.changed |= changed
        result.more = result.more or offered

    def _apply(self, answer: SyncAnswer, result: RoundResult, *, anew: bool) -> None:
        with self._store.write() as uow:
            applied: Applied = apply_answer(uow, answer, self._clock(), anew=anew)
        if applied.restored:
            self._snapshots_wanted |= {head.project_id for head in answer.projects}
        result.changed |= applied.changed
        for project_id in sorted(applied.revoked):
            self._on_revoked(project_id)

    def _feed_failed(self, error: InterleafError, result: RoundResult) -> None:
        result.error = error
        self._witness.saw(SYNC, good=False)
        if judge(error) is Verdict.SIGNED_OUT:
            self._park_signed_out()

    def _park_signed_out(self) -> None:
        with self._store.write() as uow:
            deliveries.park(uow, ParkingCause.SIGNED_OUT, deliveries.SIGNED_OUT, self._clock())
            uow.account.set_signed_out(True)

    def _pull_projects(self, client: OrgClient, result: RoundResult) -> None:
        for project in self._puller.behind():
            if self._stopping.is_set():
                return
            wanted = project.project_id in self._snapshots_wanted
            try:
                if self._puller.pull(client, project, snapshot=wanted, stopping=self._stopping.is_set):
                    result.changed.add(project.project_id)
                self._snapshots_wanted.discard(project.project_id)
            except InterleafError as error:
                # Each Project is isolated: the others go on.
                result.projects_failing[project.project_id] = error
                with self._store.write() as uow:
                    known = uow.projects.get(project.project_id)
                    if known is not None:
                        uow.projects.put(replace(known, last_error=error.message))

    def _rebase(self, result: RoundResult) -> None:
        with self._store.read() as uow:
            projects = [project for project in uow.projects.all() if project.access]
            lost = {row.project_id for row in lost_rows(uow)}
        for project in projects:
            known = self._rebased.get(project.project_id) == project.projection_version
            if known and project.project_id not in lost:
                continue
            with self._store.write() as uow:
                current = uow.projects.get(project.project_id)
                if current is None:
                    continue
                changed, uploads = rebase_drafts(uow, current, self._clock())
                after = uow.projects.get(project.project_id)
            self._rebased[project.project_id] = (after or current).projection_version
            result.more = result.more or uploads
            if changed:
                result.changed.add(project.project_id)

    def _finish(self, result: RoundResult) -> None:
        with self._store.write() as uow:
            state = uow.sync_state.get()
            message = None if result.error is None else result.error.message
            moment = self._clock() if result.complete else state.last_round_at
            uow.sync_state.put(replace(state, last_round_at=moment, last_error=message))
            due = uow.outbox.next_due_at()
            result.due_in = None if due is None else max(due - self._clock(), 0) / 1000
        if result.error is not None or result.failed or result.projects_failing:
            _log.info(
                "sync_round",
                accepted=result.accepted,
                failed=result.failed,
                error=None if result.error is None else result.error.code.value,
                projects_failing=sorted(result.projects_failing),
            )
        for project_id in sorted(result.changed):
            self._on_published(project_id)


def _nobody_answered(error: InterleafError | None) -> bool:
    return error is not None and judge(error) is Verdict.PATIENCE and http_status(error) is None
