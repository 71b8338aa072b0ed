"""Explain: why a resource is in the answer to a query or not. It records nothing."""

from __future__ import annotations

import shlex
import unicodedata
from typing import Final

from client.domain.assembly import Shares
from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.local_draft import BrokenDraft, LocalDraft
from client.domain.query_words import as_written
from client.index.explaining import Standing, UnitStanding, explain
from client.index.manager import IndexManager
from client.index.searcher import Searcher, Snapshot
from client.services.activate_memory import Models
from client.services.bind_directories import find_project
from client.services.explain_advice import advice, sentence
from client.services.load_memory import find_item, missing_details
from client.services.project_memory import ProjectMemory
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.explanations import (
    Advice,
    ExplainCall,
    Explained,
    ExplainedUnit,
    FloorShares,
    QueryTerm,
    WeakestFragment,
)
from shared_schema.memory import Scope

_SHOWN_QUERY: Final = 80
"""Characters of a query that is repeated in a command to copy."""


class ExplainRanking:
    """Runs a query as ``activate`` does, without record or state, and looks at one resource."""

    def __init__(
        self, store: Store, memory: ProjectMemory, index: IndexManager, searcher: Searcher, models: Models
    ) -> None:
        self._store = store
        self._memory = memory
        self._index = index
        self._searcher = searcher
        self._models = models

    def __call__(self, call: ExplainCall) -> Explained:
        """Answer one ``explain``.

        Raises:
            InterleafError: ``memory_resource_not_found`` with near paths for what no Project of this
                machine shows, what `find_project` raises, and for a visible resource what
                ``activate`` raises.
        """
        with self._store.read() as uow:
            project = find_project(uow, call.project)
        memory = self._memory.get(project.project_id)
        resource = find_item(memory, call.resource)
        if resource is None:
            return self._not_visible(project, memory, call)
        embedder = self._models.embedder()
        with self._index.pin(project.project_id) as generation:
            if generation is None:
                raise self._index.preparing(project.project_id)
            snapshot = Snapshot(generation, memory)
            standing = explain(self._searcher, snapshot, call.query, embedder, resource.resource_id)
        return _explained(project, call.query, resource, standing)

    def _not_visible(self, project: ProjectRow, memory: EffectiveMemory, call: ExplainCall) -> Explained:
        asked = unicodedata.normalize("NFC", call.resource)
        found = (
            _hidden(memory, asked, call.query)
            or self._deleted(project, asked)
            or self._elsewhere(project, asked, call.query)
        )
        if found is None:
            raise InterleafError(
                ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
                "The Project shows no resource with this id or path. List them with: interleaf memory list",
                details=missing_details(memory, [call.resource]),
            )
        return found.model_copy(
            update={"project_id": project.project_id, "project_name": project.name, "query": call.query}
        )

    def _deleted(self, project: ProjectRow, asked: str) -> Explained | None:
        with self._store.read() as uow:
            drafts = uow.drafts.overlaying(project.project_id)
        for draft in drafts:
            named = asked in (draft.resource_id, draft.shown_path())
            if named and draft.overlays(project.installed_seq) and _deletes(draft):
                return _by_draft(draft)
        return None

    def _elsewhere(self, project: ProjectRow, asked: str, query: str) -> Explained | None:
        with self._store.read() as uow:
            others = [
                row
                for row in uow.projects.all()
                if row.project_id != project.project_id and row.access and row.snapshot_at is not None
            ]
        for other in others:
            item = find_item(self._memory.get(other.project_id), asked)
            if item is not None:
                return _in_another(project, other, item, query)
        return None


def _verdict(verdict: str, resource_id: str, path: str | None, text: str, *what: Advice) -> Explained:
    return Explained(
        project_id="",
        project_name="",
        query="",
        resource_id=resource_id,
        path=path,
        verdict=verdict,
        sentence=f"Not returned: {text}",
        advice=list(what),
    )


def _hidden(memory: EffectiveMemory, asked: str, query: str) -> Explained | None:
    source = memory.hidden.get(asked) or next(
        (item for item in memory.hidden.values() if item.path == asked), None
    )
    source_id = source.resource_id if source else asked
    adaptation = memory.by_id.get(memory.adapted_by.get(source_id, ""))
    if adaptation is None:
        return None
    name = f"{adaptation.path} ({adaptation.resource_id})"
    return _verdict(
        "hidden_by_adaptation",
        source_id,
        source.path if source else None,
        f"this Project uses an adaptation in its place, {name}.",
        Advice(text="Ask about the adaptation.", command=_explain_command(query, adaptation.resource_id)),
        Advice(
            text="Without the adaptation the Project shows the Organization's text again.",
            command=f"interleaf draft edit {adaptation.resource_id} --delete",
        ),
    )


def _deletes(draft: LocalDraft) -> bool:
    try:
        return not draft.state().exists
    except BrokenDraft:
        return False


def _by_draft(draft: LocalDraft) -> Explained:
    if draft.active:
        text = f"your Draft {draft.draft_id} deletes it, and your agents see Drafts first."
        undo = f"interleaf draft discard {draft.draft_id}"
        what = [Advice(text="Discarding the Draft brings it back.", command=undo)]
    else:
        text = f"it was deleted with the Draft {draft.draft_id}, which is merged."
        what = []
    return _verdict("deleted_by_draft", draft.resource_id, draft.shown_path() or None, text, *what)


def _in_another(project: ProjectRow, other: ProjectRow, item: EffectiveResource, query: str) -> Explained:
    there = f"{_explain_command(query, item.resource_id)} --project {shlex.quote(other.name)}"
    what = [Advice(text="Ask in that Project.", command=there)]
    if item.scope is Scope.ORG:
        text = "It belongs to the Organization, so this Project can use it too."
        what.append(Advice(text=text, command=f"interleaf selection add {item.resource_id}"))
    text = f"it is not in the Project {project.name}; {other.name} shows it."
    return _verdict("not_in_project", item.resource_id, item.path, text, *what)


def _explain_command(query: str, resource: str) -> str:
    shown = query if len(query) <= _SHOWN_QUERY and query.isprintable() else "…"
    return f"interleaf explain {shlex.quote(shown)} {shlex.quote(resource)}"


def _explained(project: ProjectRow, query: str, resource: EffectiveResource, standing: Standing) -> Explained:
    trace = standing.trace
    terms = zip(trace.query_terms, as_written(query, trace.query_terms), strict=True)
    return Explained(
        project_id=project.project_id,
        project_name=project.name,
        query=query,
        resource_id=resource.resource_id,
        path=resource.path,
        verdict=standing.outcome.value,
        sentence=sentence(standing, resource.path),
        advice=advice(standing, resource, query),
        index_revision=trace.index_revision,
        index_lag=trace.index_lag,
        reranker=trace.reranker,
        coverage=trace.coverage,
        terms=[QueryTerm(term=t, written=w, units=standing.frequencies[t]) for t, w in terms],
        searchable_units=standing.searchable,
        units_with_words=standing.matched,
        candidates=len(trace.candidates),
        looked_at_again=standing.looked_at,
        fragments=len(trace.selected),
        tokens=trace.tokens,
        units=[_unit(standing, each) for each in standing.units],
        weakest=_weakest(standing),
    )


def _unit(standing: Standing, each: UnitStanding) -> ExplainedUnit:
    trace, index = standing.trace, each.candidate
    candidate = None if index is None else trace.candidates[index]
    return ExplainedUnit(
        unit_key=each.unit.unit_key,
        heading_path=list(each.unit.heading_path),
        kind=each.unit.kind,
        tokens=each.unit.tokens,
        outcome=each.outcome.value,
        named=candidate is not None and candidate.identity,
        found_in={term: list(fields) for term, fields in each.found_in.items()},
        bm25_rank=each.bm25_rank,
        bm25=each.bm25,
        dense_rank=each.dense_rank,
        dense=each.dense,
        fused_place=each.fused_place,
        reranked=candidate is not None and candidate.rerank is not None,
        rerank=each.rerank,
        final_place=None if index is None else index + 1,
        answer_place=trace.selected.index(index) + 1 if index in trace.selected else None,
        floor=_floor(each.shares) if each.shares else None,
    )


def _weakest(standing: Standing) -> WeakestFragment | None:
    if standing.weakest is None or standing.weakest_shares is None:
        return None
    candidate = standing.trace.candidates[standing.weakest]
    return WeakestFragment(
        resource_id=candidate.resource_id,
        path=candidate.unit.path,
        heading_path=list(candidate.unit.heading_path),
        unit_key=candidate.unit_key,
        final_place=standing.weakest + 1,
        named=candidate.identity,
        dense=candidate.dense,
        rerank=candidate.rerank,
        floor=_floor(standing.weakest_shares),
    )


def _floor(shares: Shares) -> FloorShares:
    return FloorShares(
        meaning=shares.cosine,
        reranker=shares.rerank,
        words=shares.bm25,
        needed=shares.needed,
        margin=shares.margin,
    )
