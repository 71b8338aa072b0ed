"""The rankings that one search holds: its lists alone, both fused, and both reranked.

All come from the same trace, so that they differ in nothing but the ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from client.index.trace import Candidate, Trace

B1_BM25: Final = "b1_bm25"
B2_DENSE: Final = "b2_dense"
B3_FUSED: Final = "b3_fused"
B4_RERANKED: Final = "b4_reranked"
RRF: Final = "rrf"
VARIANTS: Final = (B1_BM25, B2_DENSE, B3_FUSED, B4_RERANKED)
"""The four that are compared: words, meaning, both fused, the whole ranking."""


def rankings(trace: Trace) -> dict[str, list[str]]:
    """Return resource ids, best first, by variant, and by reciprocal rank fusion beside them.

    A resource stands where its best unit does.
    """
    return {variant: _resources(ranked) for variant, ranked in ranked_units(trace).items()}


def ranked_units(trace: Trace) -> dict[str, list[Candidate]]:
    """Return the candidates of each variant, best first."""
    candidates = trace.candidates
    return {
        B1_BM25: _by(candidates, lambda each: each.bm25_rank),
        B2_DENSE: _by(candidates, lambda each: each.dense_rank),
        B3_FUSED: _by(candidates, lambda each: -each.fused),
        B4_RERANKED: list(candidates),
        RRF: _by(candidates, lambda each: -each.rrf),
    }


def answer(trace: Trace) -> list[str]:
    """Return the resources of which something is returned, in the answer's order."""
    return list(dict.fromkeys(unit.resource_id for unit in trace.units))


def _by(candidates: Iterable[Candidate], key: Callable[[Candidate], float | None]) -> list[Candidate]:
    """Rank by a key, least first; what has none is not in the list."""
    ranked = [(value, each) for each in candidates if (value := key(each)) is not None]
    ranked.sort(key=lambda pair: pair[0])
    return [each for _, each in ranked]


def _resources(candidates: Iterable[Candidate]) -> list[str]:
    return list(dict.fromkeys(each.resource_id for each in candidates))
