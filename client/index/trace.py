"""The record of one search: every candidate with its ranks, scores and reason, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from client.domain.assembly import Reason
from client.domain.chunking import Unit


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate. Ranks count from 1; a rank is none where the unit is not in that list's best."""

    unit: Unit
    ordinal: int
    """Place among its resource's units."""
    identity: bool
    """The query names its resource: by id, path or title."""
    overlay: bool
    """Changed since the generation was built."""
    bm25_rank: int | None
    bm25: float
    bm25_share: float
    """BM25 as a share of what a passage full of all the query's terms would reach."""
    dense_rank: int | None
    dense: float
    """Cosine of query and passage, as it is; the rank leaves out nearness that is the script's alone."""
    rrf: float
    fused: float
    rerank: float | None
    """The reranker's raw score; none when it did not look at this one."""
    final: float | None
    """Mixed score; none when not reranked."""
    margin: float | None
    """How far its signals are above the relevance floor, negative below; none when not reranked."""
    relevant: bool
    reason: Reason

    @property
    def unit_key(self) -> str:
        """The unit's key."""
        return self.unit.unit_key

    @property
    def resource_id(self) -> str:
        """The unit's resource."""
        return self.unit.resource_id


class Listing(Protocol):
    """All candidates of a search, not described yet."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Describe every candidate, in final order."""


@dataclass(frozen=True)
class Trace:
    """One search. ``selected`` are indexes of candidates and ``units`` theirs, in the answer's order."""

    index_revision: str
    generation: str
    memory_hash: str
    query_terms: tuple[str, ...]
    missing_terms: tuple[str, ...]
    """Those that no unit holds."""
    coverage: float
    foreign_coverage: float | None
    """What counts for passages in another script than a Chinese, Japanese or Korean query's; none
    where there are no such two sides. Both weights below are those of ``coverage``."""
    alpha: float
    rerank_weight: float
    reranker: str
    listing: Listing = field(repr=False)
    units: tuple[Unit, ...]
    selected: tuple[int, ...]
    tokens: int
    """Tokens of the selected units."""
    index_lag: bool
    """Changed text that could not be searched yet."""
    latencies: Mapping[str, float]
    """Milliseconds by stage: view, lexical, embed_query, embed_overlay, dense, fusion, rerank, assembly.
    The second and the third run at the same time."""
    is_live: Callable[[str, str], bool] = field(repr=False)
    """Tells whether a unit (key, resource id) exists in the Effective Memory that was searched."""
    is_draft: Callable[[str], bool] = field(repr=False)
    """Tells whether a resource's text there is that of a Draft of this machine."""

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every candidate, in final order; described when they are asked for first."""
        return self.listing.candidates()
