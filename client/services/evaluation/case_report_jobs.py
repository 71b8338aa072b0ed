"""Reports in the background, one at a time, and how far they are.

::

    start ──▶ waiting ──▶ indexing ⇄ searching ──▶ finished, or the error that ended it
                                └── nobody asked for a while, access lost, or the daemon stops: given up
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any, Final, Literal

import structlog

from client.disk import is_full
from client.frugal import give_back
from client.index.files import IndexCorruptError
from client.services.bind_directories import find_project
from client.services.evaluation.case_report import case_report
from client.services.evaluation.replay import ReplayCases
from client.services.evaluation.run_set import INDEXING
from client.services.project_memory import readable_project
from client.store.unit_of_work import Store
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import ReportCall, ReportState, ReportStateCall
from shared_schema.ids import Prefix

ASKED_FOR_SECONDS: Final = 60.0
"""After this long without a question a report is given up."""
_ANSWER_SECONDS: Final = 0.5
"""How long a question waits for the end."""
_KEPT: Final = 8

_LOG: Final = structlog.get_logger(__name__)


class ReportGivenUp(Exception):  # noqa: N818 - an outcome that was asked for, not an error
    """Nobody waits for the report any more, or it may not be made any more."""


@dataclass(slots=True)
class _Job:
    report_id: str
    project_id: str
    asked_at: float
    stage: Literal["waiting", "indexing", "searching", "finished"] = "waiting"
    done: int = 0
    total: int = 0
    report: dict[str, Any] | None = None
    error: InterleafError | None = None
    given_up: bool = False
    ended: bool = False

    def state(self) -> ReportState:
        return ReportState(
            report_id=self.report_id, stage=self.stage, done=self.done, total=self.total, report=self.report
        )


class CaseReports:
    """Makes reports; the latest few are kept until they are asked for. Thread-safe."""

    def __init__(
        self,
        store: Store,
        replay: ReplayCases,
        new_id: Callable[[Prefix], str],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._replay = replay
        self._new_id = new_id
        self._monotonic = monotonic
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._jobs: OrderedDict[str, _Job] = OrderedDict()
        self._changed = Condition()

    def start(self, call: ReportCall) -> ReportState:
        """Begin a report, behind those that were begun before, and return at once.

        Raises:
            InterleafError: as `find_project`, and `readable_project` but for a Project without memory.
        """
        with self._store.read() as uow:
            project = readable_project(uow, find_project(uow, call.project).project_id)
        job = _Job(self._new_id("evr"), project.project_id, self._monotonic())
        with self._changed:
            self._jobs[job.report_id] = job
            while len(self._jobs) > _KEPT:
                self._jobs.popitem(last=False)[1].given_up = True
            if self._thread is None:
                self._thread = Thread(target=self._work, name="evaluation", daemon=True)
                self._thread.start()
        self._queue.put(job)
        return job.state()

    def state(self, call: ReportStateCall) -> ReportState:
        """Return how far a report is, with the report when it is done; waits a moment for that.

        Raises:
            InterleafError: ``not_found`` for one that is not kept, and what ended it.
        """
        with self._changed:
            job = self._jobs.get(call.report_id)
            if job is None:
                raise _gone()
            job.asked_at = self._monotonic()
            self._changed.wait_for(lambda: job.ended, timeout=_ANSWER_SECONDS)
            if job.error is not None:
                raise job.error
            return job.state()

    def forget(self, project_id: str) -> None:
        """Give up and drop the reports of a Project whose access was lost."""
        with self._changed:
            for job in [job for job in self._jobs.values() if job.project_id == project_id]:
                job.given_up = True
                del self._jobs[job.report_id]

    def tidy(self) -> None:
        """Delete what a report left that was interrupted with its process."""
        self._replay.tidy()

    def stop(self, timeout: float = 5.0) -> None:
        """Give up all reports and wait for the thread, ``timeout`` seconds at most."""
        with self._changed:
            for job in self._jobs.values():
                job.given_up = True
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(timeout)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            self._run(job)

    def _run(self, job: _Job) -> None:
        try:
            report = self._report(job)
        except ReportGivenUp:
            self._end(job, None, _gone())
        except InterleafError as error:
            self._end(job, None, error)
        except (OSError, IndexCorruptError) as error:
            self._end(job, None, _not_built(error))
        except Exception as error:  # noqa: BLE001 - one report must not end the thread for all
            _LOG.error("evaluation_report", exc_info=error)
            message = f"The report failed: {type(error).__name__}; the daemon's log has more."
            self._end(job, None, InterleafError(ErrorCode.INTERNAL_ERROR, message))
        else:
            self._end(job, report, None)
        give_back()

    def _report(self, job: _Job) -> dict[str, Any]:
        def progress(stage: str, done: int, total: int) -> None:
            job.stage = "indexing" if stage == INDEXING else "searching"
            job.done, job.total = done, total
            if job.given_up or self._monotonic() - job.asked_at > ASKED_FOR_SECONDS:
                raise ReportGivenUp

        progress(INDEXING, 0, 0)
        found = self._replay(job.project_id, progress)
        with self._store.read() as uow:
            project = readable_project(uow, job.project_id)
        return case_report(project, found)

    def _end(self, job: _Job, report: dict[str, Any] | None, error: InterleafError | None) -> None:
        with self._changed:
            job.report, job.error, job.ended, job.stage = report, error, True, "finished"
            self._changed.notify_all()


def _gone() -> InterleafError:
    return InterleafError(
        ErrorCode.NOT_FOUND, "There is no such report any more. Start one with: interleaf eval report"
    )


def _not_built(error: OSError | IndexCorruptError) -> InterleafError:
    if isinstance(error, IndexCorruptError):
        return InterleafError(
            ErrorCode.INTERNAL_ERROR, "The index of a frozen corpus could not be read back. Try once more."
        )
    said = f"The index of a frozen corpus cannot be written: {error.strerror}."
    if is_full(error):
        return InterleafError(ErrorCode.STORAGE_FULL, f"{said} Free some room, then try again.")
    return InterleafError(ErrorCode.INTERNAL_ERROR, f"{said} Check the permissions, then try again.")
