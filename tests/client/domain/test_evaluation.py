from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.evaluation import Measures, difference, mean_of, measure, ndcg, recall, reciprocal_rank

DOCUMENTS = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), unique=True, min_size=1, max_size=26)
JUDGED = st.dictionaries(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), st.integers(-1, 3), max_size=12)


@pytest.mark.requirement("retrieval.eval.measures")
@pytest.mark.parametrize(
    ("ranking", "judgments", "expected"),
    [
        ("a", {"a": 1}, 1.0),
        ("ba", {"a": 1}, 1 / math.log2(3)),
        ("ab", {"a": 1, "b": 2}, (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))),
        ("x" * 0, {"a": 1}, 0.0),
        ("a", {}, 0.0),
        ("a", {"a": 0}, 0.0),
        ("ab", {"a": -1, "b": 1}, 1 / math.log2(3)),
        ("bcdefghijka", {"a": 2}, 0.0),
    ],
)
def test_ndcg_is_that_of_the_definition(ranking: str, judgments: dict[str, int], expected: float) -> None:
    assert ndcg(list(ranking), judgments) == pytest.approx(expected)


@pytest.mark.requirement("retrieval.eval.measures")
def test_recall_and_reciprocal_rank() -> None:
    ranking = [f"d{number}" for number in range(1, 31)]
    judgments = {"d2": 1, "d20": 2, "d21": 1, "d99": 3, "d1": 0, "d3": -1}
    assert recall(ranking, judgments) == pytest.approx(2 / 4)
    assert reciprocal_rank(ranking, judgments) == pytest.approx(1 / 2)
    assert reciprocal_rank(ranking, {"d11": 1}) == 0.0
    assert recall(ranking, {}) == 0.0


@pytest.mark.requirement("retrieval.eval.measures")
@given(DOCUMENTS, JUDGED)
def test_measures_stay_between_0_and_1_and_the_best_order_gets_1(
    ranking: list[str], judgments: dict[str, int]
) -> None:
    found = measure(ranking, judgments)
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in (found.recall, found.ndcg, found.mrr))
    best = sorted(judgments, key=lambda document: -judgments[document])
    if any(grade > 0 for grade in judgments.values()):
        assert ndcg(best, judgments) == pytest.approx(1.0)
        assert found.ndcg <= ndcg(best, judgments) + 1e-12


@pytest.mark.requirement("retrieval.eval.measures")
@given(DOCUMENTS, JUDGED)
def test_a_better_document_one_place_higher_is_never_worse(
    ranking: list[str], judgments: dict[str, int]
) -> None:
    for place in range(1, len(ranking)):
        above, below = ranking[place - 1], ranking[place]
        if max(judgments.get(below, 0), 0) >= max(judgments.get(above, 0), 0):
            swapped = [*ranking[: place - 1], below, above, *ranking[place + 1 :]]
            assert ndcg(swapped, judgments) >= ndcg(ranking, judgments) - 1e-12


@pytest.mark.requirement("retrieval.eval.bootstrap")
def test_a_difference_is_paired_and_deterministic() -> None:
    before = [0.1, 0.5, 0.9, 0.3] * 10
    after = [value + 0.05 for value in before]
    found = difference(before, after, 500)
    # Every query gains the same, so the interval is a point although the levels differ widely.
    assert (found.mean, found.low, found.high) == pytest.approx((0.05, 0.05, 0.05))
    assert (found.wins, found.losses) == (40, 0)
    assert difference(before, after, 500) == found


@pytest.mark.requirement("retrieval.eval.bootstrap")
def test_an_interval_covers_nothing_where_nothing_differs_and_zero_where_it_is_chance() -> None:
    same = difference([0.4, 0.2], [0.4, 0.2], 100)
    assert (same.mean, same.low, same.high, same.wins, same.losses) == (0, 0, 0, 0, 0)
    chance = difference([0.0, 1.0] * 30, [1.0, 0.0] * 30, 1_000)
    assert chance.low < 0 < chance.high
    assert (chance.wins, chance.losses) == (30, 30)


@pytest.mark.requirement("retrieval.eval.bootstrap")
@pytest.mark.parametrize(("before", "after"), [([], []), ([0.1], [0.1, 0.2])])
def test_what_is_not_paired_is_refused(before: list[float], after: list[float]) -> None:
    with pytest.raises(ValueError, match="same queries"):
        difference(before, after)


@pytest.mark.requirement("retrieval.eval.measures")
def test_means_of_nothing_are_zeros() -> None:
    assert mean_of([]) == Measures(0.0, 0.0, 0.0)
    assert mean_of([Measures(1.0, 0.5, 0.0), Measures(0.0, 0.5, 1.0)]) == Measures(0.5, 0.5, 0.5)
