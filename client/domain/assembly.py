"""From a ranking to the fragments of one answer: what is relevant, varied, and fits.

Candidates are taken best first. One that does not fit is skipped, and a later smaller one may enter.
Every candidate gets a reason, so that an answer can be explained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from client.domain.chunking import Unit
from client.domain.ranking import LATE_INTERACTION
from shared_schema import limits

PER_RESOURCE: Final = 2
PER_RESOURCE_ALONE: Final = 3
"""Units of one resource when no other resource is relevant."""


class Reason(StrEnum):
    """Why a candidate is in the answer or not."""

    SELECTED = "selected"
    NOT_RERANKED = "not_reranked"
    BELOW_RELEVANCE = "below_relevance"
    PER_RESOURCE_LIMIT = "per_resource_limit"
    TOKEN_BUDGET = "token_budget"  # noqa: S105 - a count of words, no secret
    FRAGMENT_LIMIT = "fragment_limit"
    OVERLAP = "overlap"
    RETIRED = "retired"
    """Its document says of itself that it no longer holds, and the query does not name it."""


@dataclass(frozen=True, slots=True)
class Signals:
    """Absolute signals of one candidate, comparable between queries (ranks and mixed scores are not)."""

    cosine: float
    """Raw cosine of the pooled vectors."""
    rerank: float
    """The reranker's raw score."""
    bm25: float
    """BM25 as a share of what a passage full of all the query's terms would reach, about [0, 1]."""
    both_cjk: bool
    """The query is Chinese, Japanese or Korean and the passage holds such letters: their vectors are
    nearer by that alone."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What each signal gives towards the floor. ``needed`` is what they must reach together: more for a
    passage whose script alone brings it nearer."""

    cosine: float
    rerank: float
    bm25: float
    needed: float

    @property
    def margin(self) -> float:
        """How far above the floor; negative: below it."""
        return self.cosine + self.rerank + self.bm25 - self.needed


@dataclass(frozen=True, slots=True)
class Floor:
    """What a candidate must reach to be relevant at all: a weighted sum of its signals, at least 0."""

    cosine: float
    rerank: float
    bm25: float
    both_cjk: float
    bias: float

    def shares(self, signals: Signals) -> Shares:
        """Return the weighted sum in its parts; a candidate may be returned when its margin is not
        negative."""
        return Shares(
            self.cosine * signals.cosine,
            self.rerank * signals.rerank,
            self.bm25 * min(signals.bm25, _BM25_ENOUGH),
            -self.bias - self.both_cjk * signals.both_cjk,
        )


_BM25_ENOUGH: Final = 0.5

# Logistic regression on four sets (project documents and alerts in English, documents in Chinese, and
# Chinese questions on English documents): judged passages against the candidates of queries from other
# sets, each pair of sets weighing the same. At these constants 90 to 100 % of the judged passages pass,
# and 0 to 10 % of the others, up to 30 % where both sets are about the same software.
FLOORS: Final[Mapping[tuple[str, bool], Floor]] = {
    ("multilingual-e5-small", False): Floor(cosine=80.0, rerank=23.0, bm25=9.0, both_cjk=-6.4, bias=-77.3),
    ("multilingual-e5-small", True): Floor(cosine=128.6, rerank=0.0, bm25=14.6, both_cjk=-4.0, bias=-109.4),
}
"""By embedding model, and whether a cross-encoder reranks (its scores have no fixed range)."""

_UNCALIBRATED: Final[Mapping[bool, Floor]] = {
    False: Floor(cosine=1.0, rerank=2.0, bm25=4.0, both_cjk=0.0, bias=-1.0),
    True: Floor(cosine=1.0, rerank=0.0, bm25=4.0, both_cjk=0.0, bias=-0.4),
}


def floor_of(embedder: str, reranker: str) -> Floor:
    """Return the floor for an embedder's fingerprint (its model's name up to ``:``) and a reranker."""
    pairs = reranker != LATE_INTERACTION
    return FLOORS.get((embedder.partition(":")[0], pairs), _UNCALIBRATED[pairs])


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate of a ranking, best first. ``ordinal`` is its place among its resource's units."""

    unit: Unit
    ordinal: int
    reranked: bool
    relevant: bool
    retired: bool = False
    """Its document no longer holds; never returned."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """``selected`` are indexes into the candidates, in the order of the answer; ``reasons`` are theirs."""

    selected: tuple[int, ...]
    reasons: tuple[Reason, ...]
    tokens: int


def assemble(
    ranking: Sequence[Ranked],
    fragment_limit: int = limits.FRAGMENTS,
    token_limit: int = limits.FRAGMENT_TOKENS,
) -> Assembly:
    """Choose the fragments of an answer from a ranking, best first."""
    relevant = {
        each.unit.resource_id for each in ranking if each.relevant and each.reranked and not each.retired
    }
    per_resource = PER_RESOURCE_ALONE if len(relevant) == 1 else PER_RESOURCE
    chosen: list[int] = []
    reasons: list[Reason] = []
    taken: Counter[str] = Counter()
    tokens = 0
    for index, candidate in enumerate(ranking):
        unit = candidate.unit
        if not candidate.reranked:
            reason = Reason.NOT_RERANKED
        elif candidate.retired:
            reason = Reason.RETIRED
        elif not candidate.relevant:
            reason = Reason.BELOW_RELEVANCE
        elif any(_repeats(unit, ranking[other].unit) for other in chosen):
            reason = Reason.OVERLAP
        elif taken[unit.resource_id] >= per_resource:
            reason = Reason.PER_RESOURCE_LIMIT
        elif len(chosen) >= fragment_limit:
            reason = Reason.FRAGMENT_LIMIT
        elif tokens + unit.tokens > token_limit:
            reason = Reason.TOKEN_BUDGET
        else:
            reason = Reason.SELECTED
            chosen.append(index)
            taken[unit.resource_id] += 1
            tokens += unit.tokens
        reasons.append(reason)
    return Assembly(tuple(_neighbours_in_order(ranking, chosen)), tuple(reasons), tokens)


def _repeats(unit: Unit, other: Unit) -> bool:
    """Tell whether a unit holds text that another one already gives."""
    if unit.content_hash == other.content_hash:
        return True
    return (
        unit.resource_id == other.resource_id
        and unit.kind == other.kind
        and unit.chars[0] < other.chars[1]
        and other.chars[0] < unit.chars[1]
    )


def _neighbours_in_order(ranking: Sequence[Ranked], chosen: Sequence[int]) -> list[int]:
    """Put chosen neighbours of one resource together, in document order, at the better one's place."""
    by_place = {(ranking[i].unit.resource_id, ranking[i].ordinal): i for i in chosen}
    order: list[int] = []
    placed: set[int] = set()
    for index in chosen:
        if index in placed:
            continue
        resource, first = ranking[index].unit.resource_id, ranking[index].ordinal
        while (resource, first - 1) in by_place:
            first -= 1
        while (found := by_place.get((resource, first))) is not None:
            order.append(found)
            placed.add(found)
            first += 1
    return order
