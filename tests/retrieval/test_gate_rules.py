"""The gate's rules on small made-up runs: each guard is seen to fail, and says which question and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from client.services.evaluation.run_set import QueryResult, SetResult
from client.services.evaluation.sets import read_set
from client.services.evaluation.variants import B1_BM25, B4_RERANKED, VARIANTS
from tests.retrieval import gate
from tests.retrieval.figures import SET, Figures, Kind, hash_of

GOOD = ("right", "other", "third")
BAD = ("other", "third", "fourth")


def query(
    query_id: str,
    ranking: Sequence[str] = GOOD,
    answer: Sequence[str] = ("right", "other"),
    judgments: Mapping[str, int] | None = None,
    **variants: Sequence[str],
) -> QueryResult:
    rankings = {variant: list(variants.get(variant, ranking)) for variant in VARIANTS}
    graded = {"right": 3, "helps": 1, "wrong": -1} if judgments is None else judgments
    return QueryResult(query_id, f"what is {query_id}?", graded, rankings, list(answer), 1.0, {})


def result_of(*queries: QueryResult) -> SetResult:
    return SetResult("set", 5, 5, queries, "model:1", "late_interaction", 1.0)


def ten(**changed: QueryResult) -> SetResult:
    names = [f"{kind}-{number}" for kind in ("para", "zh") for number in range(5)]
    return result_of(*(changed.get(name.replace("-", "_"), query(name)) for name in names))


STORED = Figures.of(ten())


def test_a_run_like_the_stored_one_passes_every_rule() -> None:
    same = ten()
    assert [gate.fell(STORED, same, variant) for variant in VARIANTS] == [[]] * 4
    assert gate.below_best(same) == gate.lost_answers(STORED, same) == gate.forbidden(STORED, same) == []


@pytest.mark.requirement("retrieval.gate.ndcg")
def test_a_worse_ranking_is_told_with_both_orders() -> None:
    worse = ten(zh_3=query("zh-3", b1_bm25=BAD))
    told = "\n".join(gate.fell(STORED, worse, B1_BM25))
    assert "b1_bm25: nDCG@10 is 0.8256, stored 0.9173" in told
    assert "zh-3 “what is zh-3?”: 0.92 → 0.00" in told
    assert "right: right\n    then: right, other, third\n    now: other, third, fourth" in told
    assert "zh-2" not in told
    assert gate.fell(STORED, worse, B4_RERANKED) == []


@pytest.mark.requirement("retrieval.gate.ndcg")
def test_a_fall_of_two_hundredths_is_let_pass_and_no_more() -> None:
    stored = replace(STORED, ndcg={B1_BM25: STORED.ndcg[B1_BM25] + 0.0199})
    assert gate.fell(stored, ten(), B1_BM25) == []
    stored = replace(STORED, ndcg={B1_BM25: STORED.ndcg[B1_BM25] + 0.0201})
    assert gate.fell(stored, ten(), B1_BM25) != []


@pytest.mark.requirement("retrieval.gate.best")
def test_a_whole_ranking_below_one_of_its_lists_is_told_with_both() -> None:
    told = "\n".join(gate.below_best(ten(para_1=query("para-1", b4_reranked=("other", "right")))))
    assert "b4_reranked: nDCG@10 is 0.8835, more than 0.01 below b1_bm25 (0.9173)." in told
    assert "b1_bm25: right, other, third\n    b4_reranked: other, right" in told


@pytest.mark.requirement("retrieval.gate.answers")
def test_one_lost_answer_of_a_kind_is_let_pass_two_are_told() -> None:
    empty = {f"para_{number}": query(f"para-{number}", answer=()) for number in range(2)}
    assert gate.lost_answers(STORED, ten(para_0=empty["para_0"])) == []
    told = "\n".join(gate.lost_answers(STORED, ten(**empty)))
    assert "para: 3 of 5 questions are answered, stored 5." in told
    assert "para-1 “what is para-1?”\n    right: right\n    then: right, other\n    now: nothing" in told


@pytest.mark.requirement("retrieval.gate.answers")
def test_an_answer_that_only_helps_is_none() -> None:
    helping = {f"zh_{number}": query(f"zh-{number}", answer=("helps",)) for number in range(2)}
    assert "zh: 3 of 5" in gate.lost_answers(STORED, ten(**helping))[0]


@pytest.mark.requirement("retrieval.gate.answers")
def test_one_lost_answer_in_each_of_three_kinds_is_told() -> None:
    before = [query(f"{kind}-{number}") for kind in ("a", "b", "c") for number in range(2)]
    after = [replace(each, answer=[]) if each.query_id.endswith("0") else each for each in before]
    told = gate.lost_answers(Figures.of(result_of(*before)), result_of(*after))
    assert told[0] == "3 questions fewer than stored are answered."
    assert [line.split()[0] for line in told if "“" in line] == ["a-0", "b-0", "c-0"]


@pytest.mark.requirement("retrieval.gate.forbidden")
def test_a_new_forbidden_document_is_told() -> None:
    told = "\n".join(gate.forbidden(STORED, ten(zh_0=query("zh-0", answer=("right", "wrong")))))
    assert told == (
        "zh: 1 forbidden documents returned, not 0.\n  zh-0 “what is zh-0?”\n    new and forbidden: wrong"
    )


@pytest.mark.requirement("retrieval.gate.forbidden")
def test_more_documents_where_nothing_is_right_are_told() -> None:
    nothing = {"judgments": {"wrong": -1}}
    stored = Figures.of(result_of(query("para-1"), query("none-1", answer=("other",), **nothing)))
    more = result_of(query("para-1"), query("none-1", answer=("other", "third"), **nothing))
    assert gate.forbidden(stored, more)[0] == "none: 2 documents returned where nothing is right, not 1."
    assert gate.forbidden(Figures.of(more), more) == []


def test_stored_figures_are_read_back_as_they_were(tmp_path: Path) -> None:
    STORED.write(tmp_path / "figures.json")
    assert Figures.read(tmp_path / "figures.json") == STORED


@pytest.mark.requirement("retrieval.gate.ndcg")
def test_the_stored_figures_belong_to_the_set_and_follow_from_their_own_rankings() -> None:
    stored, evaluated = Figures.read(), read_set(SET)
    wanted = "Run: python -m tests.retrieval.store_figures"
    assert stored.judged == hash_of(), f"The set changed. {wanted}"
    assert stored.rankings.keys() == evaluated.queries.keys()
    again = [
        QueryResult(query_id, text, evaluated.judgments[query_id], found, found["answer"], 0.0, {})
        for query_id, text in evaluated.queries.items()
        if (found := stored.rankings[query_id])
    ]
    same = Figures.of(SetResult("", 0, 0, tuple(again), stored.embedder, stored.reranker, 0.0), hash_of())
    assert same == stored, f"The figures were not computed from these rankings. {wanted}"


def test_every_kind_of_the_set_has_enough_questions_and_grades_are_in_range() -> None:
    evaluated = read_set(SET)
    kinds = Figures.read().kinds
    assert {"para", "zh", "xl", "ident", "path", "date", "num", "neg", "dup", "sup"} < kinds.keys()
    assert {"scope", "none", "mix", "conv"} < kinds.keys()
    assert all(isinstance(kind, Kind) and kind.questions >= 6 for kind in kinds.values())
    assert all(1 <= abs(grade) <= 3 for graded in evaluated.judgments.values() for grade in graded.values())
