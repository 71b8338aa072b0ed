"""Why a resource is in the answer to a query or not: each of its units through every stage.

The query runs through the same search as an activation, and then once more over all units, so that a
unit beyond the best of each list has its ranks too. Nothing is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from client.domain import ranking
from client.domain.analysis import holds_cjk, is_cjk
from client.domain.assembly import Reason, Shares, Signals, floor_of
from client.domain.chunking import Unit, passage_of
from client.domain.embedding import Embedder, QueryVectors
from client.index.lexical import FieldTerms
from client.index.overlay import View
from client.index.recall import (
    Candidates,
    by_meaning,
    by_words,
    positions_of,
    searched_terms,
    union,
    unit_at,
    vectors_at,
)
from client.index.searcher import Searcher, Snapshot
from client.index.trace import Candidate, Trace


class Missed(StrEnum):
    """Why a unit is no candidate at all."""

    NOT_A_CANDIDATE = "not_a_candidate"
    """It is in neither list's best, and the query does not name its resource."""
    NOT_INDEXED = "not_indexed"


@dataclass(frozen=True, slots=True)
class UnitStanding:
    """One unit of the resource. Ranks count from 1 among all units that can be searched."""

    unit: Unit
    outcome: Reason | Missed
    candidate: int | None
    """Its index among the trace's candidates."""
    fused_place: int | None
    found_in: Mapping[str, tuple[str, ...]]
    """Query term → the fields that hold it: path, headings, body (its own text only)."""
    bm25_rank: int | None
    bm25: float
    dense_rank: int | None
    dense: float | None
    """Cosine; none without vectors."""
    rerank: float | None
    """The reranker's raw score; late interaction's also of a unit that it did not look at."""
    shares: Shares | None
    """Towards the relevance floor; of a unit that was not looked at, what they would be."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a resource stands. ``units`` are those that came furthest first; none where all of its text
    waits for the index."""

    trace: Trace
    frequencies: Mapping[str, int]
    """Query term → how many units hold it."""
    searchable: int
    """Units with vectors in all of the memory."""
    matched: int
    """Units with at least one of the query's terms."""
    units: tuple[UnitStanding, ...]
    weakest: int | None
    """The lowest candidate that was returned, by its index; none when nothing was."""
    weakest_shares: Shares | None

    @property
    def looked_at(self) -> int:
        """How many candidates the reranker looked at."""
        return sum(1 for each in self.trace.candidates if each.rerank is not None)

    @property
    def outcome(self) -> Reason | Missed:
        """What became of the unit that came furthest."""
        return self.units[0].outcome if self.units else Missed.NOT_INDEXED


_FURTHEST: Final = (
    Reason.SELECTED,
    Reason.PER_RESOURCE_LIMIT,
    Reason.OVERLAP,
    Reason.FRAGMENT_LIMIT,
    Reason.TOKEN_BUDGET,
    Reason.RETIRED,
    Reason.BELOW_RELEVANCE,
    Reason.NOT_RERANKED,
    Missed.NOT_A_CANDIDATE,
    Missed.NOT_INDEXED,
)


@dataclass(frozen=True, slots=True)
class _Searched:
    """The query against all units of a view."""

    view: View
    query: str
    vectors: QueryVectors
    frequencies: Mapping[str, int]
    bm25: Mapping[int, float]
    bm25_ranks: Mapping[int, int]
    found: Candidates
    trace: Trace


def explain(
    searcher: Searcher, snapshot: Snapshot, query: str, embedder: Embedder, resource_id: str
) -> Standing:
    """Search, and tell how a resource of the snapshot's memory stands.

    Raises:
        InterleafError, IndexCorruptError: as `Searcher.search`.
    """
    trace = searcher.search(snapshot, query, embedder)
    searched = _search_all(searcher.view(snapshot, embedder), query, embedder.embed_query(query), trace)
    view = searched.view
    indexed = len(view.generation.units)
    units = [
        _standing(searched, position)
        for position in positions_of(view, resource_id)
        # What the generation holds of a changed resource is its former text.
        if position >= indexed or view.live[position]
    ]
    units.sort(key=lambda each: (_FURTHEST.index(each.outcome), _place(each), -(each.dense or 0.0)))
    weakest = max(trace.selected, default=None)
    return Standing(
        trace,
        searched.frequencies,
        int(np.isfinite(searched.found.cosines).sum()),
        len(searched.bm25),
        tuple(units),
        weakest,
        None if weakest is None else _shares_of(searched, trace.candidates[weakest]),
    )


def _search_all(view: View, query: str, vectors: QueryVectors, trace: Trace) -> _Searched:
    frequencies = {term: view.frequency(term) for term in trace.query_terms}
    terms = searched_terms(frequencies)
    every = len(view.generation.units) + len(view.overlay)
    bm25 = by_words(view, terms, view.bm25(terms), max(every, 1))
    cosines = by_meaning(view, vectors)
    bm25 = {position: score for position, score in bm25.items() if np.isfinite(cosines[position])}
    ranks = {position: rank for rank, position in enumerate(bm25, 1)}
    found, _ = union(view, query, bm25, cosines, frequencies)
    return _Searched(view, query, vectors, frequencies, bm25, ranks, found, trace)


def _standing(searched: _Searched, position: int) -> UnitStanding:
    trace = searched.trace
    unit, _ = unit_at(searched.view, position)
    cosine = float(searched.found.cosines[position])
    index = next((n for n, each in enumerate(trace.candidates) if each.unit_key == unit.unit_key), None)
    if not np.isfinite(cosine):
        fields = _found_in(unit, trace.query_terms)
        return UnitStanding(unit, Missed.NOT_INDEXED, None, None, fields, None, 0.0, None, None, None, None)
    candidate = None if index is None else trace.candidates[index]
    rerank = _rerank(searched, position, candidate)
    signals = Signals(
        cosine,
        rerank or 0.0,
        candidate.bm25_share if candidate else 0.0,
        bool(searched.found.both_cjk[position]),
    )
    floor = floor_of(searched.view.generation.manifest.versions.embedder, trace.reranker)
    scores = searched.found.dense
    ahead = (scores > scores[position]).sum() + (scores[:position] == scores[position]).sum()
    return UnitStanding(
        unit,
        candidate.reason if candidate else Missed.NOT_A_CANDIDATE,
        index,
        None if candidate is None else 1 + sum(each.fused > candidate.fused for each in trace.candidates),
        _found_in(unit, trace.query_terms),
        searched.bm25_ranks.get(position),
        searched.bm25.get(position, 0.0),
        1 + int(ahead),
        cosine,
        rerank,
        floor.shares(signals),
    )


def _rerank(searched: _Searched, position: int, candidate: Candidate | None) -> float | None:
    """Return the reranker's score; late interaction is cheap enough to be asked for any unit."""
    if candidate is not None and candidate.rerank is not None:
        return candidate.rerank
    if searched.trace.reranker != ranking.LATE_INTERACTION:
        return None
    stored = vectors_at(searched.view, position)
    return float(ranking.maxsim(searched.vectors.tokens, [stored.tokens], [stored.scales])[0])


def _shares_of(searched: _Searched, candidate: Candidate) -> Shares:
    both_cjk = is_cjk(searched.query) and holds_cjk(passage_of(candidate.unit))
    signals = Signals(candidate.dense, candidate.rerank or 0.0, candidate.bm25_share, both_cjk)
    embedder = searched.view.generation.manifest.versions.embedder
    return floor_of(embedder, searched.trace.reranker).shares(signals)


def _found_in(unit: Unit, terms: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    fields = FieldTerms.of(unit)
    # The body field holds path and headings too; here it is the unit's own text.
    own = fields.body[len(fields.path) + len(fields.headings) :]
    holders = {"path": set(fields.path), "headings": set(fields.headings), "body": set(own)}
    found = {term: tuple(name for name, held in holders.items() if term in held) for term in terms}
    return {term: names for term, names in found.items() if names}


def _place(unit: UnitStanding) -> int:
    return sys.maxsize if unit.candidate is None else unit.candidate
