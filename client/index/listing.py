"""From scores to an answer: what is chosen, and how every candidate stood, described when asked.

An answer needs the few candidates that were looked at again; its record needs all of them. So texts
and descriptions of the others are made afterwards, by whoever reads the trace first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from client.domain import ranking
from client.domain.assembly import Assembly, Ranked, Reason, Signals, assemble, floor_of
from client.index.overlay import View
from client.index.recall import Candidates, unit_at
from client.index.trace import Candidate

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Scores:
    """Scores by place among the candidates; ``order`` is the places, best first, those that were looked
    at again before all others."""

    order: list[int]
    fused: Floats
    reranked: dict[int, float] = field(default_factory=dict)
    finals: dict[int, float] = field(default_factory=dict)
    retired: frozenset[int] = frozenset()
    """Those of documents that no longer hold and are not named."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All candidates of a search. Nothing it holds changes any more, so it can be read at any time."""

    view: View
    positions: Sequence[int]
    """By place, as all that follows."""
    identity: frozenset[int]
    """Positions."""
    bm25: Mapping[int, float]
    """By position, best first."""
    dense: Sequence[int]
    """Positions of the dense list, best first."""
    cosines: Floats
    full_bm25: float
    scores: Scores
    ranked: Sequence[Ranked]
    """Those that were looked at again, in final order."""
    margins: Sequence[float]
    reasons: Sequence[Reason]
    """Theirs."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Describe every candidate, in final order."""
        bm25_ranks = {position: rank for rank, position in enumerate(self.bm25, 1)}
        dense_ranks = {position: rank for rank, position in enumerate(self.dense, 1)}
        found = []
        for index, place in enumerate(self.scores.order):
            position = self.positions[place]
            again = index < len(self.ranked)
            bm25_rank, dense_rank = bm25_ranks.get(position), dense_ranks.get(position)
            bm25 = self.bm25.get(position, 0.0)
            unit, ordinal = unit_at(self.view, position)
            found.append(
                Candidate(
                    unit=unit,
                    ordinal=ordinal,
                    identity=position in self.identity,
                    overlay=position >= len(self.view.generation.units),
                    bm25_rank=bm25_rank,
                    bm25=bm25,
                    bm25_share=bm25 / self.full_bm25,
                    dense_rank=dense_rank,
                    dense=float(self.cosines[place]),
                    rrf=ranking.rrf([bm25_rank], [dense_rank])[0],
                    fused=float(self.scores.fused[place]),
                    rerank=self.scores.reranked.get(place),
                    final=self.scores.finals.get(place),
                    margin=self.margins[index] if again else None,
                    relevant=again and self.ranked[index].relevant,
                    reason=self.reasons[index] if again else Reason.NOT_RERANKED,
                )
            )
        return tuple(found)


def assembled(
    view: View, reranker: str, found: Candidates, full_bm25: float, scores: Scores
) -> tuple[Assembly, Listing]:
    """Choose what is returned among those that were looked at again; the others never are."""
    floor = floor_of(view.generation.manifest.versions.embedder, reranker)
    cosines = found.cosines[found.positions] if found.positions else scores.fused
    ranked, margins = [], []
    for place in scores.order[: len(scores.reranked)]:
        position = found.positions[place]
        share = found.bm25.get(position, 0.0) / full_bm25
        both_cjk = bool(found.both_cjk[position])
        signals = Signals(float(cosines[place]), scores.reranked[place], share, both_cjk)
        margins.append(floor.shares(signals).margin)
        unit, ordinal = unit_at(view, position)
        relevant = position in found.identity or margins[-1] >= 0.0
        ranked.append(Ranked(unit, ordinal, True, relevant, place in scores.retired))
    assembly = assemble(ranked)
    listing = Listing(
        view=view,
        positions=found.positions,
        identity=frozenset(found.identity),
        bm25=found.bm25,
        dense=found.dense_list,
        cosines=cosines,
        full_bm25=full_bm25,
        scores=scores,
        ranked=ranked,
        margins=margins,
        reasons=assembly.reasons,
    )
    return assembly, listing
