from __future__ import annotations

import numpy as np
import pytest

from client.domain import ranking


def floats(*values: float) -> ranking.Floats:
    return np.array(values, dtype=np.float32)


@pytest.mark.requirement("retrieval.fusion.z-score")
def test_fusion_is_the_weighted_sum_of_z_scores() -> None:
    fused = ranking.fuse(floats(0, 2, 4), floats(3, 2, 1), 0.5)
    assert fused.tolist() == pytest.approx([0, 0, 0], abs=1e-6)
    tilted = ranking.fuse(floats(0, 2, 4), floats(3, 2, 1), 0.8)
    assert tilted[0] > tilted[1] > tilted[2]


@pytest.mark.parametrize(
    ("coverage", "alpha", "weight", "depth"), [(1.0, 0.5, 0.4, 24), (0.0, 0.8, 0.9, 200)]
)
def test_weights_follow_the_coverage(coverage: float, alpha: float, weight: float, depth: int) -> None:
    assert ranking.fusion_weight(coverage) == pytest.approx(alpha)
    assert ranking.rerank_weight(coverage) == pytest.approx(weight)
    assert ranking.rerank_depth(coverage) == depth


def test_half_coverage_is_not_yet_low() -> None:
    assert (ranking.rerank_depth(0.5), ranking.rerank_depth(0.49)) == (24, 200)


@pytest.mark.parametrize("values", [floats(), floats(3), floats(2, 2, 2)])
def test_equal_scores_say_nothing(values: ranking.Floats) -> None:
    assert ranking.z_scores(values).tolist() == [0.0] * len(values)
    assert ranking.min_max(values).tolist() == [0.0] * len(values)


@pytest.mark.requirement("retrieval.fusion.rrf")
def test_rrf_adds_reciprocal_ranks_and_an_absent_one_adds_nothing() -> None:
    assert ranking.rrf([1, None], [2, 1]) == pytest.approx([1 / 61 + 1 / 62, 1 / 61])


def test_the_mix_stretches_both_scores_first() -> None:
    mixed = ranking.mix(floats(10, 20), floats(0.9, 0.8), 0.4)
    assert mixed.tolist() == pytest.approx([0.4, 0.6])


@pytest.mark.requirement("retrieval.rerank.maxsim")
def test_maxsim_is_the_mean_of_the_best_cosines() -> None:
    query = np.array([[1, 0], [0, 1]], dtype=np.float32)
    tokens = [
        np.array([[127, 0], [0, 127]], dtype=np.int8),
        np.array([[127, 0]], dtype=np.int8),
        np.zeros((0, 2), dtype=np.int8),
        np.array([[0, -127], [0, 64]], dtype=np.int8),
    ]
    scales = [np.full(len(each), 1 / 127, dtype=np.float16) for each in tokens]
    scores = ranking.maxsim(query, tokens, scales)
    assert scores.tolist() == pytest.approx([1.0, 0.5, 0.0, 64 / 127 / 2], abs=2e-3)


def test_maxsim_of_many_passages_is_that_of_each() -> None:
    drawn = np.random.default_rng(1)
    query = drawn.standard_normal((3, 4)).astype(np.float32)
    tokens = [drawn.integers(-127, 128, (number % 4, 4), dtype=np.int8) for number in range(21)]
    scales = [drawn.random(len(each)).astype(np.float16) for each in tokens]
    scores = ranking.maxsim(query, tokens, scales)
    alone = [
        ranking.maxsim(query, [each], [scale]).item() for each, scale in zip(tokens, scales, strict=True)
    ]
    assert scores.tolist() == pytest.approx(alone, rel=1e-5)
    assert scores[::4].tolist() == [0.0] * 6
    assert len(set(scores.tolist())) == 16


def test_maxsim_of_nothing_is_nothing() -> None:
    assert ranking.maxsim(np.zeros((0, 2), dtype=np.float32), [], []).tolist() == []


def test_bm25_rises_with_the_count_and_falls_with_the_length() -> None:
    def score(count: int, length: int) -> float:
        return ranking.bm25_field({"a": count}, length, 10.0, {"a": 1.5})

    assert score(2, 10) > score(1, 10) > score(1, 20) > score(0, 10) == 0


def test_the_defaults_are_the_measured_ones() -> None:
    assert dict(ranking.FIELD_BOOSTS) == {"path": 0.2, "headings": 0.3, "body": 1.0}
    assert (ranking.LIST_SIZE, ranking.RRF_K, ranking.RERANK, ranking.RERANK_UNCOVERED) == (100, 60, 24, 200)
    assert ranking.same_script("multilingual-e5-small:abc") == ranking.ScriptExcess(0.05, 0.10)
    assert ranking.same_script("all-MiniLM-L6-v2:abc") == ranking.ScriptExcess(0.0, 0.0)


@pytest.mark.requirement("retrieval.search.bilingual")
def test_coverage_counts_by_side() -> None:
    foreign = np.array([False, True])
    both = ranking.Coverage(0.8, 0.1)
    assert both.of(foreign).tolist() == pytest.approx([0.8, 0.1])
    assert both.least == pytest.approx(0.1)
    one = ranking.Coverage(0.8)
    assert one.of(foreign).tolist() == pytest.approx([0.8, 0.8])
    assert one.least == pytest.approx(0.8)
    assert (ranking.dense_list_size(0.5), ranking.dense_list_size(0.49)) == (100, 300)


def test_each_candidate_may_have_its_own_weight() -> None:
    fused = ranking.fuse(floats(0, 2, 4), floats(3, 2, 1), floats(0.5, 0.5, 1.0))
    assert fused.tolist() == pytest.approx([0, 0, -np.sqrt(1.5)], abs=1e-6)
    mixed = ranking.mix(floats(0, 1), floats(1, 0), floats(0.9, 0.25))
    assert mixed.tolist() == pytest.approx([0.9, 0.75])
