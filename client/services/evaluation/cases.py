"""Evaluation cases: questions that agents really asked, and what a person says of the answers.

A case belongs to the run that it was made from and to a frozen copy of what that run searched. Every
change is a new version; what a change was decided on can be named, and is compared before it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from client.clock import Clock
from client.domain.case_judgment import ContradictionError, Judgment, JudgmentChange, changed
from client.domain.chunking import CountTokens
from client.services.activate_memory import Models
from client.services.bind_directories import find_project
from client.services.evaluation.cases_naming import CorpusNames
from client.services.evaluation.cases_views import detail_of, item_of
from client.services.evaluation.freeze import freeze
from client.services.project_memory import ProjectMemory
from client.services.read_runs import no_run
from client.store.activations import RunRow
from client.store.evaluation_cases import CaseRow, CaseVersion
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.daemon_contract import Count
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import (
    CaseCall,
    CaseCreateCall,
    CaseDeleteCall,
    CaseDetail,
    CaseFreezeCall,
    CaseJudgeCall,
    CaseList,
    CaseListCall,
)
from shared_schema.ids import Prefix


class EvaluationCases:
    """Makes, judges, shows and deletes cases. ``flush`` waits for runs that are still being written."""

    def __init__(
        self,
        store: Store,
        memory: ProjectMemory,
        models: Models,
        clock: Clock,
        new_id: Callable[[Prefix], str],
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._models = models
        self._clock = clock
        self._new_id = new_id
        self._flush = flush

    def create(self, call: CaseCreateCall) -> CaseDetail:
        """Make a case of a run, unjudged; freeze what the run searched, and pin the run.

        Raises:
            InterleafError: ``run_not_found``; ``already_exists`` when a case has this run, named in
                the details; and what `freeze` raises.
        """
        self._flush()
        with self._store.write() as uow:
            run = _free_run(uow, call.run_id)
            now = self._clock()
            first = self._of_run(uow, run, 1, now)
            case = CaseRow(
                self._new_id("evc"), run.project_id, run.query, now, replace(first, note=call.note)
            )
            uow.cases.add(case)
            return detail_of(uow, case)

    def list(self, call: CaseListCall) -> CaseList:
        """Return cases in their newest versions, oldest first; raises as `find_project` does."""
        with self._store.read() as uow:
            project_id = find_project(uow, call.project).project_id if call.project else None
            return CaseList(cases=[item_of(uow, row) for row in uow.cases.list(project_id)])

    def show(self, call: CaseCall) -> CaseDetail:
        """Return a case with all its versions; ``not_found`` when there is none."""
        with self._store.read() as uow:
            return detail_of(uow, _case(uow, call.case_id))

    def judge(self, call: CaseJudgeCall) -> CaseDetail:
        """Say more of a case, or something else; the result is a new version.

        Raises:
            InterleafError: ``not_found``; ``version_conflict`` when it is not the expected version any
                more; ``memory_resource_not_found`` and ``invalid_arguments`` for what cannot be said;
                where a unit is named, ``search_model_preparing`` and ``search_model_unavailable``.
        """
        if not (call.evidence or call.forbid or call.none_matched or call.replace or call.note is not None):
            raise _refused("evidence", "nothing is said; give evidence, forbid or none_matched")
        with self._store.read() as uow:
            before = _expected(_case(uow, call.case_id), call.expect_version)
            names = CorpusNames(uow, before.newest.memory_hash, self._counter)
            change = JudgmentChange(
                names.evidence(call.evidence), names.resources(call.forbid), call.none_matched, call.replace
            )
        with self._store.write() as uow:
            case = _expected(_case(uow, call.case_id), call.expect_version)
            if case.newest.memory_hash != before.newest.memory_hash:
                raise _moved(case)  # What was named, was named in another corpus.
            newest = replace(
                case.newest,
                judgment=_changed(case.newest.judgment, change),
                note=case.newest.note if call.note is None else call.note,
                run_pinned=False,
            )
            if (newest.judgment, newest.note) == (case.newest.judgment, case.newest.note):
                return detail_of(uow, case)  # All of it was said before.
            return self._put(uow, case, newest)

    def freeze(self, call: CaseFreezeCall) -> CaseDetail:
        """Move a case onto the corpus of a newer run of its query; its judgment stays.

        Raises:
            InterleafError: as `create` and `judge` do; ``invalid_arguments`` for a run of another query
                or Project, and when evidence is not in the new corpus.
        """
        self._flush()
        with self._store.write() as uow:
            case = _expected(_case(uow, call.case_id), call.expect_version)
            run = _free_run(uow, call.run_id)
            if (run.project_id, run.query) != (case.project_id, case.query):
                raise _refused("run_id", "the run asked something else; make a case of its own from it")
            newest = self._of_run(uow, run, case.newest.version, self._clock())
            judgment = case.newest.judgment
            known = uow.corpora.paths(newest.memory_hash)
            if gone := sorted({each.resource_id for each in judgment.evidence} - known.keys()):
                problem = f"the new corpus does not hold {', '.join(gone)}; take its evidence back first"
                raise _refused("run_id", problem)
            return self._put(uow, case, replace(newest, judgment=judgment, note=case.newest.note))

    def delete(self, call: CaseDeleteCall) -> Count:
        """Delete a case, what only it had frozen, and the pins that it set; raises as `judge` does."""
        with self._store.write() as uow:
            case = _expected(_case(uow, call.case_id), call.expect_version)
            for version in uow.cases.versions(case.case_id):
                if version.run_pinned:
                    uow.runs.set_pinned(version.run_id, False)
            uow.cases.delete(case.case_id)
            uow.corpora.collect()
        return Count(count=1)

    def _of_run(self, uow: UnitOfWork, run: RunRow, version: int, now: int) -> CaseVersion:
        """Return a version that belongs to a run: what it searched is frozen, and it is pinned."""
        memory_hash = freeze(uow, self._memory, run, now)
        uow.runs.set_pinned(run.run_id, True)
        return CaseVersion(version, now, run.run_id, not run.pinned, memory_hash, Judgment(), "")

    def _put(self, uow: UnitOfWork, case: CaseRow, newest: CaseVersion) -> CaseDetail:
        expected = case.newest.version
        newest = replace(newest, version=expected + 1, created_at=self._clock())
        if not uow.cases.put(case.case_id, expected, newest):
            raise _moved(case)
        return detail_of(uow, replace(case, newest=newest))

    def _counter(self) -> CountTokens:
        return self._models.embedder().count_tokens


def _case(uow: UnitOfWork, case_id: str) -> CaseRow:
    row = uow.cases.get(case_id)
    if row is None:
        raise InterleafError(
            ErrorCode.NOT_FOUND,
            "There is no such evaluation case. List them with: interleaf eval case list",
            details={"case_id": case_id},
        )
    return row


def _expected(case: CaseRow, version: int | None) -> CaseRow:
    if version is not None and case.newest.version != version:
        raise _moved(case)
    return case


def _moved(case: CaseRow) -> InterleafError:
    return InterleafError(
        ErrorCode.VERSION_CONFLICT,
        f"The case has version {case.newest.version} by now; nothing was changed. Look at it with: "
        f"interleaf eval case show {case.case_id}",
        details={"case_id": case.case_id, "version": case.newest.version},
    )


def _free_run(uow: UnitOfWork, run_id: str) -> RunRow:
    run = uow.runs.get(run_id)
    if run is None:
        raise no_run(run_id)
    if (taken := uow.cases.of_run(run_id)) is not None:
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS,
            f"There is a case of this run: {taken}. Judge it with: interleaf eval case judge {taken}",
            details={"case_id": taken, "run_id": run_id},
        )
    return run


def _changed(judgment: Judgment, change: JudgmentChange) -> Judgment:
    try:
        return changed(judgment, change)
    except ContradictionError as error:
        raise _refused("evidence", str(error)) from None


def _refused(field: str, problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"{field}: {problem}.",
        details={"fields": [{"field": field, "problem": problem}]},
    )
