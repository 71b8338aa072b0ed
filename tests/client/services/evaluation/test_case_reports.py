"""Reports in the background: done, failed, given up."""

from __future__ import annotations

import errno
import os
import threading
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from client.domain.embedding import Embedder
from client.index.searcher import Searcher, Snapshot
from client.index.trace import Trace
from client.services.evaluation.case_report_jobs import CaseReports
from client.services.evaluation.replay import ReplayCases
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import ReportCall, ReportState, ReportStateCall
from tests.client.local_world import PROJECT
from tests.client.services.evaluation.case_world import QUERY, CaseWorld

CALL = ReportCall(project=PROJECT)


def awaited(reports: CaseReports, started: ReportState) -> ReportState:
    """Ask until the report is there; a failed one raises."""
    state = started
    while state.stage != "finished":
        state = reports.state(ReportStateCall(report_id=started.report_id))
    return state


def reports_with(world: CaseWorld, **replaced: Any) -> CaseReports:
    parts = {"models": SimpleNamespace(embedder=lambda: world.embedder), "searcher": Searcher(world.cache)}
    parts |= replaced
    replay = ReplayCases(
        world.store, parts["models"], world.cache, lambda: parts["searcher"], world.home / "replay"
    )
    return CaseReports(world.store, replay, world.new_id)


@pytest.mark.requirement("eval.report.background")
def test_a_report_is_made_in_the_background_and_kept(world: CaseWorld) -> None:
    world.judged(QUERY, "guides/release.md=3")
    started = world.reports.start(CALL)
    assert (started.stage, started.report) == ("waiting", None)
    later = world.reports.start(CALL)
    for state in (awaited(world.reports, later), awaited(world.reports, started)):
        assert state.report is not None
        assert state.report["judged"] == 1
        assert (state.done, state.total) == (1, 1)
    assert world.reports.state(ReportStateCall(report_id=started.report_id)).report is not None


@pytest.mark.requirement("eval.report.background")
def test_what_ended_a_report_is_what_its_reader_gets(world: CaseWorld) -> None:
    def preparing() -> Embedder:
        raise InterleafError(ErrorCode.SEARCH_MODEL_PREPARING)

    world.judged(QUERY, "guides/release.md=3")
    reports = reports_with(world, models=SimpleNamespace(embedder=preparing))
    with pytest.raises(InterleafError) as failed:
        awaited(reports, reports.start(CALL))
    assert failed.value.code is ErrorCode.SEARCH_MODEL_PREPARING
    (world.home / "replay").touch()  # A file stands where the folder should.
    reports = reports_with(world)
    with pytest.raises(InterleafError, match="Not a directory") as unwritten:
        awaited(reports, reports.start(CALL))
    assert unwritten.value.code is ErrorCode.INTERNAL_ERROR

    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    reports = reports_with(world, searcher=SimpleNamespace(search=full))
    (world.home / "replay").unlink()
    with pytest.raises(InterleafError, match="frozen corpus") as full_disk:
        awaited(reports, reports.start(CALL))
    assert full_disk.value.code is ErrorCode.STORAGE_FULL
    with pytest.raises(InterleafError) as unknown:
        reports.start(ReportCall(project="nothing"))
    assert unknown.value.code is ErrorCode.NOT_FOUND


@pytest.mark.requirement("eval.report.background")
def test_an_unforeseen_failure_is_an_error_and_ends_nothing(world: CaseWorld) -> None:
    world.judged(QUERY, "guides/release.md=3")
    broken = SimpleNamespace(search=lambda *_: 1 / 0)
    reports = reports_with(world, searcher=broken)
    with pytest.raises(InterleafError) as failed:
        awaited(reports, reports.start(CALL))
    assert failed.value.code is ErrorCode.INTERNAL_ERROR
    broken.search = Searcher(world.cache).search
    assert awaited(reports, reports.start(CALL)).report is not None
    reports.stop()


@pytest.mark.requirement("eval.report.background")
def test_a_report_that_nobody_asks_for_is_given_up(world: CaseWorld) -> None:
    world.judged(QUERY, "guides/release.md=3")

    def monotonic() -> float:
        # For the thread that makes the report, everybody asked long ago.
        return 100.0 if threading.current_thread().name == "evaluation" else 0.0

    reports = CaseReports(world.store, world.replay, world.new_id, monotonic)
    with pytest.raises(InterleafError) as gone:
        awaited(reports, reports.start(CALL))
    assert gone.value.code is ErrorCode.NOT_FOUND
    reports.stop()


@pytest.mark.requirement("eval.case.revocation")
def test_a_report_ends_when_access_is_lost_and_leaves_nothing(world: CaseWorld) -> None:
    world.judged(QUERY, "guides/release.md=3")
    world.judged("hot water", "tea.md=3")
    asked: list[str] = []

    class Revoking(Searcher):
        def search(self, snapshot: Snapshot, query: str, embedder: Embedder) -> Trace:
            if not asked:
                world.revoke()
                reports.forget(PROJECT)
            asked.append(query)
            return super().search(snapshot, query, embedder)

    reports = reports_with(world, searcher=Revoking(world.cache))
    started = reports.start(CALL)
    with pytest.raises(InterleafError) as gone:
        awaited(reports, started)
    assert gone.value.code in (ErrorCode.NOT_FOUND, ErrorCode.PROJECT_ACCESS_LOST)
    reports.stop()
    assert len(asked) == 2, "the first case, warmed; then it is given up"
    assert not (world.home / "replay").exists()
    with pytest.raises(InterleafError) as lost:
        reports.start(CALL)
    assert lost.value.code is ErrorCode.PROJECT_ACCESS_LOST


@pytest.mark.requirement("eval.report.background")
def test_only_the_latest_reports_are_kept(world: CaseWorld) -> None:
    first = world.reports.start(CALL)
    for _ in range(8):
        newest = world.reports.start(CALL)
    awaited(world.reports, newest)
    with pytest.raises(InterleafError) as gone:
        world.reports.state(ReportStateCall(report_id=first.report_id))
    assert gone.value.code is ErrorCode.NOT_FOUND
