from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from client.domain.case_judgment import Evidence, Judgment, JudgmentKind
from client.domain.case_measures import (
    CaseResult,
    Faults,
    Hit,
    answer_result,
    faults_of,
    items_of,
    ranking_result,
    summarise,
)
from client.domain.chunking import Unit, text_hash
from client.domain.effective_memory import EffectiveResource
from client.domain.evaluation import Measures
from shared_schema.memory import Provenance, Scope
from shared_schema.rules.hashing import content_hash


def resource(resource_id: str, body: str = "one two", description: str = "three") -> EffectiveResource:
    return EffectiveResource(
        resource_id=resource_id,
        scope=Scope.PROJECT,
        path=f"{resource_id}.md",
        title="",
        description=description,
        body=body,
        content_hash=content_hash(body),
        provenance=Provenance.AUTHORITY,
    )


def unit(
    resource_id: str,
    part: int = 0,
    text: str = "one",
    kind: Literal["body", "description"] = "body",
    chars: tuple[int, int] = (0, 3),
) -> Unit:
    return Unit(
        f"{resource_id}/s/0/{part}", resource_id, f"{resource_id}.md", "", (), kind, text, chars, chars,
        text_hash(text), 1,
    )  # fmt: skip


def hits(*units: Unit) -> list[Hit]:
    return [Hit(each, Scope.PROJECT) for each in units]


CORPUS = {f"mem_{letter}": resource(f"mem_{letter}") for letter in "abcdefghijkl"}


@pytest.mark.requirement("eval.report.measures")
def test_a_graded_unit_is_an_item_and_other_units_stand_for_their_resource() -> None:
    judgment = Judgment((Evidence("mem_a", "mem_a/s/0/1", 3), Evidence("mem_b", None, 1)))
    ranked = [unit("mem_a", 0), unit("mem_b", 1), unit("mem_a", 1), unit("mem_b", 0), unit("mem_a", 2)]
    assert items_of(ranked, judgment) == ["mem_a", "mem_b", "mem_a/s/0/1"]
    found = ranking_result(hits(*ranked), judgment, CORPUS)
    assert found.measures.mrr == 1 / 2
    assert found.measures.recall == 1.0
    assert ranking_result(hits(*ranked[:2]), judgment, CORPUS).measures.recall == 1 / 2


@pytest.mark.requirement("eval.report.faults")
def test_faults_are_counted_against_the_frozen_corpus() -> None:
    good, other = unit("mem_a"), unit("mem_b")
    assert faults_of(hits(good, other), CORPUS, []) == Faults()
    assert faults_of(hits(unit("mem_z")), CORPUS, []) == Faults(scope_violations=1)
    assert faults_of([Hit(good, Scope.ORG), Hit(other, None)], CORPUS, []) == Faults(scope_violations=2)
    assert faults_of(hits(unit("mem_a", text="old")), CORPUS, []) == Faults(stale_results=1)
    forged = replace(unit("mem_a", text="old"), content_hash=text_hash("one"))
    assert faults_of(hits(forged), CORPUS, []) == Faults(stale_results=1)
    assert faults_of(hits(good, unit("mem_a", 1), other), CORPUS, ["mem_a"]) == Faults(forbidden_hits=1)


@pytest.mark.requirement("eval.report.faults")
def test_a_description_is_held_against_the_description() -> None:
    described = unit("mem_a", text="three", kind="description", chars=(0, 5))
    assert faults_of(hits(described), CORPUS, []) == Faults()
    assert faults_of(hits(replace(described, kind="body")), CORPUS, []) == Faults(stale_results=1)


@pytest.mark.requirement("eval.report.faults")
def test_a_ranking_is_looked_at_in_its_first_ten_resources() -> None:
    ranked = [unit(f"mem_{letter}", part) for letter in "abcdefghijkl" for part in range(2)]
    judgment = Judgment((), ("mem_j", "mem_k"))
    found = ranking_result(hits(*ranked), judgment, CORPUS)
    assert found.faults == Faults(forbidden_hits=1), "mem_j is the tenth, mem_k the eleventh"
    assert found.diversity == 1 / 2
    assert ranking_result([], judgment, CORPUS).diversity is None


@pytest.mark.requirement("eval.report.measures")
def test_an_answer_is_measured_by_the_evidence_that_it_holds() -> None:
    judgment = Judgment((Evidence("mem_a", "mem_a/s/0/1", 3), Evidence("mem_b", None, 1)), ("mem_c",))
    found = answer_result(
        hits(unit("mem_a"), unit("mem_b"), unit("mem_c"), unit("mem_c", 1)), judgment, CORPUS
    )
    assert (found.fragments, found.resources, found.diversity) == (4, 3, 3 / 4)
    assert found.evidence == 1 / 2
    assert found.faults == Faults(forbidden_hits=1)
    nothing = answer_result([], Judgment((), (), True), CORPUS)
    assert (nothing.evidence, nothing.diversity) == (None, None)


def result(
    kind: JudgmentKind, ndcg: float, answer: list[Hit], judgment: Judgment, before: float = 0.0
) -> CaseResult:
    last = replace(ranking_result(answer, judgment, CORPUS), measures=Measures(1.0, ndcg, 1.0))
    first = replace(last, measures=Measures(0.0, before, 0.0))
    return CaseResult(
        "evc_1", 1, "q", kind, {"first": first, "last": last}, answer_result(answer, judgment, CORPUS), 5.0
    )


@pytest.mark.requirement("eval.report.measures")
def test_means_are_over_the_graded_cases_and_faults_over_all() -> None:
    graded, empty = Judgment((Evidence("mem_a", None, 3),)), Judgment((), ("mem_b",), True)
    results = [
        result(JudgmentKind.GRADED, 1.0, hits(unit("mem_a")), graded, before=0.5),
        result(JudgmentKind.GRADED, 0.0, hits(unit("mem_c")), graded),
        result(JudgmentKind.NONE_MATCHED, 0.9, [], empty),
        result(JudgmentKind.NONE_MATCHED, 0.9, hits(unit("mem_b"), unit("mem_b", 1)), empty),
    ]
    found = summarise(results, ("first", "last"))
    assert found.graded == 2
    assert found.rankings["last"].measures.ndcg == 0.5
    assert found.rankings["last"].faults == Faults(forbidden_hits=1)
    assert found.rankings["last"].diversity == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert (found.differences["first"].mean, found.differences["first"].wins) == (0.25, 1)
    assert "last" not in found.differences
    answers = found.answers
    assert answers is not None
    assert (answers.with_evidence, answers.evidence) == (0.5, 0.5)
    assert (answers.none_matched, answers.left_empty) == (2, 1)
    assert answers.fragments == 1.0
    assert answers.faults == Faults(forbidden_hits=1)


def test_nothing_is_summed_up_of_nothing() -> None:
    found = summarise([], ("first", "last"))
    assert (found.graded, found.answers, found.differences) == (0, None, {})
    only = summarise([result(JudgmentKind.NONE_MATCHED, 0, [], Judgment())], ("first", "last"))
    assert only.differences == {}
    assert only.answers is not None
    assert only.answers.with_evidence is None
