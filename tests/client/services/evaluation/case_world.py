"""One machine whose activations become evaluation cases: real store, services and index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from client.index.searcher import Searcher
from client.services.evaluation.case_report import case_report
from client.services.evaluation.case_report_jobs import CaseReports
from client.services.evaluation.cases import EvaluationCases
from client.services.evaluation.export import ExportCases
from client.services.evaluation.replay import Replay, ReplayCases
from client.services.evaluation.run_set import Progress, no_progress
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import (
    CaseCall,
    CaseCreateCall,
    CaseDeleteCall,
    CaseDetail,
    CaseFreezeCall,
    CaseJudgeCall,
    GradedTarget,
)
from shared_schema.memory import PublishedResource, Scope
from tests.client.local_world import PROJECT, published
from tests.client.services.activating_world import ActivatingWorld

LONG = "Nothing is done in haste, and every step is written down for those who come later. " * 6
RELEASE = f"""# Release

## Tag

Tag the commit of the rocket. {LONG}

## Sign

Sign the package with the key. {LONG}
"""
DOCUMENTS: tuple[PublishedResource, ...] = (
    published("mem_rel", "guides/release.md", RELEASE, description="How a rocket is released"),
    published("mem_old", "guides/old-release.md", "# Old release\n\nTag the rocket by tape.\n"),
    published("mem_tea", "tea.md", "# Tea\n\nHot water, three minutes.\n"),
    published("mem_org", "org/keys.md", "# Keys\n\nWhere the signing key lies.\n", scope=Scope.ORG),
    published("mem_zh", "zh/发布流程.md", "# 发布流程\n\n发布之前请先检查合同编号。\n"),
)
QUERY = "how to tag the rocket"


class CaseWorld(ActivatingWorld):
    """A machine with `DOCUMENTS`, indexed."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.publish(DOCUMENTS, commit="c1", seq=1)
        self.build()
        models: Any = SimpleNamespace(embedder=lambda: self.embedder)
        self.cases = EvaluationCases(
            self.store, self.memory, models, self.clock, self.new_id, self.runs.flush
        )
        self.replay = ReplayCases(
            self.store, models, self.cache, lambda: Searcher(self.cache), home / "index" / "replay"
        )
        self.reports = CaseReports(self.store, self.replay, self.new_id)
        self.export = ExportCases(self.store)

    def run(self, query: str = QUERY) -> str:
        """Activate and return the run's id."""
        run_id = self.ask(query).run_id
        assert run_id is not None
        self.runs.flush()
        return run_id

    def case(self, query: str = QUERY, note: str = "") -> str:
        """Make a case of a new run and return its id."""
        return self.cases.create(CaseCreateCall(run_id=self.run(query), note=note)).case.case_id

    def judge(self, case_id: str, *evidence: str, **more: Any) -> CaseDetail:
        """Judge with evidence written as on the command line, ``target=grade``."""
        graded = [each.rpartition("=") for each in evidence]
        targets = [GradedTarget(target=target, grade=int(grade)) for target, _, grade in graded]
        return self.cases.judge(CaseJudgeCall(case_id=case_id, evidence=targets, **more))

    def judged(self, query: str, *evidence: str, **more: Any) -> str:
        """Make a judged case and return its id."""
        case_id = self.case(query)
        self.judge(case_id, *evidence, **more)
        return case_id

    def show(self, case_id: str) -> CaseDetail:
        return self.cases.show(CaseCall(case_id=case_id))

    def freeze(self, case_id: str, run_id: str, **more: Any) -> CaseDetail:
        return self.cases.freeze(CaseFreezeCall(case_id=case_id, run_id=run_id, **more))

    def delete(self, case_id: str, **more: Any) -> None:
        self.cases.delete(CaseDeleteCall(case_id=case_id, **more))

    def change(self, *resources: PublishedResource, commit: str = "c2", seq: int = 2) -> None:
        """Publish something else in the place of everything, and index it."""
        self.publish(resources, commit=commit, seq=seq)
        self.build()

    def replayed(self, progress: Progress = no_progress) -> Replay:
        return self.replay(PROJECT, progress)

    def report(self) -> dict[str, Any]:
        with self.store.read() as uow:
            project = uow.projects.get(PROJECT)
        assert project is not None
        return case_report(project, self.replayed())

    def pinned(self, run_id: str) -> bool:
        with self.store.read() as uow:
            run = uow.runs.get(run_id)
        assert run is not None
        return run.pinned

    def close(self) -> None:
        self.reports.stop()
        super().close()


def refused(code: ErrorCode, call: Callable[[], Any]) -> InterleafError:
    """Return the error with this code that a call raises."""
    with pytest.raises(InterleafError) as error:
        call()
    assert error.value.code is code, error.value
    return error.value
