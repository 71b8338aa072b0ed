"""Measures of a ranking against judgments, and how sure a difference between two rankings is.

A ranking is a sequence of document ids, best first. Grades are whole numbers; above 0 is relevant.
Measures: normalised discounted cumulative gain with gain ``2^grade - 1`` (Järvelin and Kekäläinen
2002; Burges et al. 2005), recall, and reciprocal rank, each at a cutoff. Differences: the paired
bootstrap over queries (Efron and Tibshirani 1993; Sakai 2006).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Judgments = Mapping[str, int]
"""Document id → grade."""

NDCG_AT: Final = 10
MRR_AT: Final = 10
RECALL_AT: Final = 20
RESAMPLES: Final = 10_000
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Measures:
    """Of one query, or the means of many: each from 0 to 1."""

    recall: float
    ndcg: float
    mrr: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of ``after - before`` over the same queries, with its 95 % interval, and how many queries
    are strictly better and strictly worse."""

    mean: float
    low: float
    high: float
    wins: int
    losses: int


def ndcg(ranking: Sequence[str], judgments: Judgments, at: int = NDCG_AT) -> float:
    """Return the discounted gain of the first ``at`` as a share of the best possible one; 0 where
    nothing is relevant."""
    ideal = _gain(sorted(judgments.values(), reverse=True)[:at])
    return _gain([judgments.get(document, 0) for document in ranking[:at]]) / ideal if ideal else 0.0


def recall(ranking: Sequence[str], judgments: Judgments, at: int = RECALL_AT) -> float:
    """Return the share of the relevant documents that is among the first ``at``."""
    relevant = {document for document, grade in judgments.items() if grade > 0}
    return len(relevant.intersection(ranking[:at])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], judgments: Judgments, at: int = MRR_AT) -> float:
    """Return 1 / place of the first relevant document among the first ``at``, else 0."""
    places = (place for place, document in enumerate(ranking[:at], 1) if judgments.get(document, 0) > 0)
    return 1.0 / next(places, math.inf)


def measure(ranking: Sequence[str], judgments: Judgments) -> Measures:
    """Return all measures of one query at their usual cutoffs."""
    return Measures(recall(ranking, judgments), ndcg(ranking, judgments), reciprocal_rank(ranking, judgments))


def mean_of(each: Sequence[Measures]) -> Measures:
    """Return the means; zeros of nothing."""
    if not each:
        return Measures(0.0, 0.0, 0.0)
    return Measures(
        math.fsum(one.recall for one in each) / len(each),
        math.fsum(one.ndcg for one in each) / len(each),
        math.fsum(one.mrr for one in each) / len(each),
    )


def difference(before: Sequence[float], after: Sequence[float], resamples: int = RESAMPLES) -> Difference:
    """Compare two rankings' values of the same queries, in the same order. Deterministic.

    Raises:
        ValueError: the two differ in length, or are empty.
    """
    if len(before) != len(after) or not before:
        raise ValueError("a paired comparison needs the same queries on both sides, at least one")
    change: NDArray[np.float64] = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    drawn = np.random.default_rng(_SEED)
    means = np.array([change[drawn.integers(0, len(change), len(change))].mean() for _ in range(resamples)])
    low, high = np.quantile(means, (0.025, 0.975))
    return Difference(
        float(change.mean()),
        float(low),
        float(high),
        int((change > 1e-12).sum()),
        int((change < -1e-12).sum()),
    )


def _gain(grades: Sequence[int]) -> float:
    return math.fsum(
        (2.0 ** max(grade, 0) - 1) / math.log2(place + 1) for place, grade in enumerate(grades, 1)
    )
