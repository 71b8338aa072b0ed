"""What ``explain`` answers: why a resource is in the answer to a query or not."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shared_schema import limits
from shared_schema.memory import Contract
from shared_schema.tool_contract import Identifier, Text


class ExplainCall(Contract):
    """``explain``: a query as for ``activate``, and a resource by id or exact path."""

    project: str
    query: Annotated[Text, Field(min_length=1, max_length=limits.QUERY_CHARACTERS)]
    resource: Identifier


class QueryTerm(Contract):
    """A term that is searched for: how it was written, and how many units of the memory hold it."""

    term: str
    written: str
    units: int


class FloorShares(Contract):
    """What each signal gives towards the relevance floor; ``margin`` is their sum less ``needed``."""

    meaning: float
    reranker: float
    words: float
    needed: float
    margin: float


class ExplainedUnit(Contract):
    """One unit through every stage. Ranks and places count from 1; none where there is none."""

    unit_key: str
    heading_path: list[str]
    kind: Literal["description", "body"]
    tokens: int
    outcome: str
    """A reason of the assembly, ``not_a_candidate`` or ``not_indexed``."""
    named: bool
    found_in: dict[str, list[str]]
    """Query term → ``path``, ``headings``, ``body``."""
    bm25_rank: int | None
    bm25: float
    dense_rank: int | None
    dense: float | None
    fused_place: int | None
    reranked: bool
    rerank: float | None
    """Late interaction's score also where it did not look: what it would have been."""
    final_place: int | None
    answer_place: int | None
    floor: FloorShares | None


class WeakestFragment(Contract):
    """The fragment that stood lowest of those returned."""

    resource_id: str
    path: str
    heading_path: list[str]
    unit_key: str
    final_place: int
    named: bool
    dense: float
    rerank: float | None
    floor: FloorShares


class Advice(Contract):
    """One thing that a person could do, and the command for it, if there is one."""

    text: str
    command: str | None = None


class Explained(Contract):
    """``explain``. Where the resource cannot be searched at all, there are no units and no figures."""

    project_id: str
    project_name: str
    query: str
    resource_id: str
    path: str | None
    verdict: str
    """``selected``, a reason of the assembly, ``not_a_candidate``, ``not_indexed``,
    ``hidden_by_adaptation``, ``deleted_by_draft`` or ``not_in_project``."""
    sentence: str
    advice: list[Advice]
    index_revision: str | None = None
    index_lag: bool = False
    reranker: str | None = None
    coverage: float | None = None
    terms: list[QueryTerm] = Field(default_factory=list)
    searchable_units: int = 0
    units_with_words: int = 0
    candidates: int = 0
    looked_at_again: int = 0
    fragments: int = 0
    tokens: int = 0
    units: list[ExplainedUnit] = Field(default_factory=list)
    """Those that came furthest first."""
    weakest: WeakestFragment | None = None
