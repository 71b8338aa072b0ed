"""Arithmetic of ranking: fusion of two lists, late interaction, mixing, BM25 of a few texts.

Scores are fused by z-score over the union of both lists' candidates; reciprocal rank fusion (Cormack
et al. 2009) is computed beside it. Late interaction is MaxSim over token vectors (Khattab and Zaharia
2020, "ColBERT"). How far meaning counts against words follows the query's coverage: the share of its
terms that occur in the index at all, near 0 for a question in another language than the documents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_Share = TypeVar("_Share", float, Floats)

LIST_SIZE: Final = 100
"""Candidates taken from each list."""
RRF_K: Final = 60
RERANK: Final = 24
LIST_SIZE_UNCOVERED: Final = 300
RERANK_UNCOVERED: Final = 200
"""Candidates by meaning, and of all those that are looked at again, when words cannot lead to what is
asked for: fewer than half of the query's terms occur where it could be found."""
LOW_COVERAGE: Final = 0.5

FIELD_BOOSTS: Final[Mapping[str, float]] = {"path": 0.2, "headings": 0.3, "body": 1.0}
BM25_K1: Final = 1.2
BM25_B: Final = 0.75


@dataclass(frozen=True, slots=True)
class ScriptExcess:
    """How much nearer a passage with Chinese, Japanese or Korean letters in it is to a query in such a
    script, by the script alone: in cosine, and in late interaction."""

    cosine: float
    late_interaction: float


SAME_SCRIPT: Final[Mapping[str, ScriptExcess]] = {"multilingual-e5-small": ScriptExcess(0.05, 0.10)}
"""By embedding model; taken off before ranking, never before the relevance floor.

Else a Chinese question hardly ever reaches an English answer where there are Chinese documents too.
docs/retrieval.md has the measurement; in a corpus of one language no order changes."""
_NO_EXCESS: Final = ScriptExcess(0.0, 0.0)

_AT_ONCE: Final = 8
"""Passages in one product of late interaction: their vectors as float32 stay in the processor's cache.
200 passages take 7 ms so, and 10 ms all at once."""

LATE_INTERACTION: Final = "late_interaction"


class PairReranker(Protocol):
    """Scores passages by reading each together with the query. Higher is better; no fixed range."""

    @property
    def name(self) -> str:
        """What ran, for run records and status."""

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """Return one score a passage, in the order given."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of the query's terms that words can be found by, from 0 to 1.

    ``own``: of all terms, those that occur in the index. ``foreign``: the same for passages without
    Chinese, Japanese or Korean letters under a query that has them: there only its other terms can
    occur, whatever the rest of the index holds. None where the query or the memory has no such two
    sides.
    """

    own: float
    foreign: float | None = None

    @property
    def least(self) -> float:
        """Of the side that words lead to least."""
        return self.own if self.foreign is None else min(self.own, self.foreign)

    def of(self, foreign: NDArray[np.bool_]) -> Floats:
        """Return the coverage that counts for each candidate, float32."""
        other = self.own if self.foreign is None else self.foreign
        return np.where(foreign, np.float32(other), np.float32(self.own)).astype(np.float32)


def fusion_weight(coverage: _Share) -> _Share:
    """Return α, the weight of the dense score in the fused one, for a coverage in [0, 1]."""
    return 0.5 + 0.3 * (1.0 - coverage)


def rerank_weight(coverage: _Share) -> _Share:
    """Return a, the weight of the reranker's score in the final one, for a coverage in [0, 1]."""
    return 0.4 + 0.5 * (1.0 - coverage)


def rerank_depth(coverage: float) -> int:
    """Return how many of the best fused candidates are looked at again."""
    return RERANK_UNCOVERED if coverage < LOW_COVERAGE else RERANK


def dense_list_size(coverage: float) -> int:
    """Return how many candidates are taken from the list by meaning."""
    return LIST_SIZE_UNCOVERED if coverage < LOW_COVERAGE else LIST_SIZE


def same_script(embedder: str) -> ScriptExcess:
    """Return what to take off for an embedder's fingerprint (its model's name up to ``:``)."""
    return SAME_SCRIPT.get(embedder.partition(":")[0], _NO_EXCESS)


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


def fuse(bm25: Floats, dense: Floats, alpha: float | Floats) -> Floats:
    """Return (1-α)·z(bm25) + α·z(dense) over the union's candidates; a missing BM25 score is 0.

    ``alpha`` is one weight, or one for each candidate.
    """
    weight = np.asarray(alpha, dtype=np.float32)
    return (np.float32(1.0) - weight) * z_scores(bm25) + weight * z_scores(dense)


def mix(fused: Floats, reranked: Floats, weight: float | Floats) -> Floats:
    """Return (1-a)·fused + a·reranked, both stretched to [0, 1] first; ``weight`` as in `fuse`."""
    share = np.asarray(weight, dtype=np.float32)
    return (np.float32(1.0) - share) * min_max(fused) + share * min_max(reranked)


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
    found = np.zeros(len(tokens), dtype=np.float32)
    present = [i for i, matrix in enumerate(tokens) if len(matrix) and len(query)]
    for first in range(0, len(present), _AT_ONCE):
        some = present[first : first + _AT_ONCE]
        found[some] = _maxsim_at_once(query, [tokens[i] for i in some], [scales[i] for i in some])
    return found


def _maxsim_at_once(
    query: Floats, tokens: Sequence[NDArray[np.int8]], scales: Sequence[NDArray[np.float16]]
) -> Floats:
    # One product over all tokens laid end to end, then a maximum per passage. In a function of its own, so
    # that each call's large arrays are free for the next one's.
    joined = np.concatenate(tokens).astype(np.float32)
    cosines = (query @ joined.T) * np.concatenate(scales).astype(np.float32)
    starts = np.cumsum([0, *(len(matrix) for matrix in tokens[:-1])])
    best: Floats = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=0)
    return best


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
