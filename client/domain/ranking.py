"""Arithmetic of ranking: fusion of two lists, late interaction, mixing, BM25 of a few texts.

Scores are fused by z-score over the union of both lists' candidates; reciprocal rank fusion (Cormack
et al. 2009) is computed beside it. Late interaction is MaxSim over token vectors (Khattab and Zaharia
2020, "ColBERT"). How far meaning counts against words follows the query's coverage: the share of its
terms that occur in the index at all, near 0 for a question in another language than the documents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

LIST_SIZE: Final = 100
"""Candidates taken from each list."""
RRF_K: Final = 60
RERANK: Final = 24
RERANK_UNCOVERED: Final = 48
"""Candidates looked at again when fewer than half of the query's terms occur in the index."""
LOW_COVERAGE: Final = 0.5

FIELD_BOOSTS: Final[Mapping[str, float]] = {"path": 0.2, "headings": 0.3, "body": 1.0}
BM25_K1: Final = 1.2
BM25_B: Final = 0.75

SAME_SCRIPT_COSINE: Final[Mapping[str, float]] = {"multilingual-e5-small": 0.05}
"""By embedding model: how much nearer a passage with Chinese, Japanese or Korean letters in it is to a
query in such a script, by the script alone.

Taken off its cosine, else a Chinese question never reaches an English answer where there are Chinese
documents too. Measured on a corpus of four sets in both languages (2,089 units): such questions gain
0.19 nDCG@10 (0.615 to 0.807), Chinese ones about Chinese documents lose nothing (0.899, 0.913), and in
a corpus of one language no order changes."""

LATE_INTERACTION: Final = "late_interaction"

Floats = NDArray[np.float32]


class PairReranker(Protocol):
    """Scores passages by reading each together with the query. Higher is better; no fixed range."""

    @property
    def name(self) -> str:
        """What ran, for run records and status."""

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """Return one score a passage, in the order given."""


def fusion_weight(coverage: float) -> float:
    """Return α, the weight of the dense score in the fused one, for a coverage in [0, 1]."""
    return 0.5 + 0.3 * (1.0 - coverage)


def rerank_weight(coverage: float) -> float:
    """Return a, the weight of the reranker's score in the final one, for a coverage in [0, 1]."""
    return 0.4 + 0.5 * (1.0 - coverage)


def rerank_depth(coverage: float) -> int:
    """Return how many of the best fused candidates are looked at again."""
    return RERANK_UNCOVERED if coverage < LOW_COVERAGE else RERANK


def same_script_cosine(embedder: str) -> float:
    """Return what to take off for an embedder's fingerprint (its model's name up to ``:``)."""
    return SAME_SCRIPT_COSINE.get(embedder.partition(":")[0], 0.0)


def z_scores(values: Floats) -> Floats:
    """Return the values with mean 0 and deviation 1; all 0 when they are all the same."""
    if not len(values):
        return values
    deviation = float(values.std())
    centred = values - values.mean()
    return centred / np.float32(deviation) if deviation > 1e-9 else np.zeros_like(centred)


def min_max(values: Floats) -> Floats:
    """Return the values stretched to [0, 1]; all 0 when they are all the same."""
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-9:
        return np.zeros_like(values)
    return (values - np.float32(low)) / np.float32(high - low)


def fuse(bm25: Floats, dense: Floats, alpha: float) -> Floats:
    """Return (1-α)·z(bm25) + α·z(dense) over the union's candidates; a missing BM25 score is 0."""
    return np.float32(1.0 - alpha) * z_scores(bm25) + np.float32(alpha) * z_scores(dense)


def mix(fused: Floats, reranked: Floats, weight: float) -> Floats:
    """Return (1-a)·fused + a·reranked, both stretched to [0, 1] first."""
    return np.float32(1.0 - weight) * min_max(fused) + np.float32(weight) * min_max(reranked)


def rrf(*ranks: Sequence[int | None]) -> list[float]:
    """Return reciprocal rank fusion of several lists' ranks (from 1; ``None`` is absent)."""
    return [
        sum(1.0 / (RRF_K + rank) for rank in candidate if rank is not None)
        for candidate in zip(*ranks, strict=True)
    ]


def maxsim(
    query: Floats, tokens: Sequence[NDArray[np.int8]], scales: Sequence[NDArray[np.float16]]
) -> Floats:
    """Return float32 [n]: for each passage the mean over query tokens of the best cosine to its tokens.

    ``query`` is float32 [q, p] of unit rows; passage i has ``tokens[i]`` int8 [t, p] and ``scales[i]``
    float16 [t]. A passage without tokens, or any under a query without tokens, scores 0.
    """
    scores = np.zeros(len(tokens), dtype=np.float32)
    lengths = np.array([len(matrix) for matrix in tokens], dtype=np.intp)
    present = np.flatnonzero(lengths).tolist()
    if not present or not len(query):
        return scores
    # One product over all passages' tokens laid end to end, then a maximum per passage.
    joined = np.concatenate([tokens[i] for i in present]).astype(np.float32)
    factors = np.concatenate([scales[i] for i in present]).astype(np.float32)
    cosines = (query @ joined.T) * factors
    starts = np.concatenate([[0], np.cumsum(lengths[present])[:-1]])
    scores[present] = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=0)
    return scores


def inverse_document_frequency(documents: int, containing: int) -> float:
    """Return BM25's weight of a term, as Tantivy computes it."""
    return math.log(1.0 + (documents - containing + 0.5) / (containing + 0.5))


def bm25_field(
    counts: Mapping[str, int], length: int, average_length: float, weights: Mapping[str, float]
) -> float:
    """Return the BM25 score of one field of one text.

    ``counts`` are the field's terms, ``weights`` the query's terms with their inverse document
    frequency. The formula and its constants are Tantivy's, so that both kinds of scores compare.
    """
    norm = BM25_K1 * (1.0 - BM25_B + BM25_B * length / max(average_length, 1e-9))
    return sum(
        weight * (1.0 + BM25_K1) * count / (count + norm)
        for term, weight in weights.items()
        if (count := counts.get(term, 0))
    )
