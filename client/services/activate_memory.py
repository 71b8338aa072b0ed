"""Activate: the fragments that matter for a task, as a delta to what the agent already has."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, Protocol

from client.clock import Clock
from client.domain import delta
from client.domain.activation_state import EXPIRES_AFTER, StateName, invalid_state, read, sign
from client.domain.delta import Action, Delta, KnownUnit
from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder
from client.index.manager import IndexManager
from client.index.searcher import Searcher, Snapshot
from client.index.trace import Candidate, Trace
from client.services.project_memory import ProjectMemory
from client.store.activations import ActivationStateRow, RunRow
from client.store.unit_of_work import Store
from shared_schema.errors import InterleafError
from shared_schema.ids import Prefix
from shared_schema.tool_contract import Activate, ActivateAnswer, Fragment, RemovedUnit


class Models(Protocol):
    """Where the resident embedder comes from; raises while it is being prepared."""

    def embedder(self) -> Embedder:
        """Return the embedder, or raise ``search_model_preparing`` or ``search_model_unavailable``."""


class ActivateMemory:
    """One pass: one consistent cut, one search, one delta, one record.

    ``run_write_error`` tells why the latest run could not be kept, or is None. Such a failure never
    fails the call: the state that the agent gets next is then held in memory until this process ends.
    """

    def __init__(
        self,
        store: Store,
        memory: ProjectMemory,
        index: IndexManager,
        searcher: Searcher,
        models: Models,
        clock: Clock,
        new_id: Callable[[Prefix], str],
        signing_key: bytes,
    ) -> None:
        self._store = store
        self._memory = memory
        self._index = index
        self._searcher = searcher
        self._models = models
        self._clock = clock
        self._new_id = new_id
        self._key = signing_key
        self._unsaved: dict[str, ActivationStateRow] = {}
        self.run_write_error: str | None = None

    def __call__(self, project_id: str, activate: Activate) -> ActivateAnswer:
        """Answer one ``activate`` of an agent bound to ``project_id``.

        Raises:
            InterleafError: ``project_access_lost``, ``project_not_synced``,
                ``invalid_activation_state``, ``search_model_preparing``,
                ``search_model_unavailable``, ``search_index_preparing``.
        """
        began = time.perf_counter()
        memory = self._memory.get(project_id)
        known = self._known(project_id, activate.state)
        embedder = self._models.embedder()
        with self._index.pin(project_id) as generation:
            if generation is None:
                raise self._index.preparing(project_id)
            trace = self._searcher.search(Snapshot(generation, memory), activate.query, embedder)
            change = delta.compute(known, trace.units, trace.is_live)
        run = self._run(project_id, activate.query, trace, began)
        state = self._state(project_id, change)
        self._keep(run, state, activate.state)
        return ActivateAnswer(
            index_revision=trace.index_revision,
            next_state=sign(StateName(state.state_id, project_id), self._key),
            fragments=_fragments(memory, trace, change),
            removed=[RemovedUnit(unit_key=k, resource_id=known[k].resource_id) for k in change.removed],
            run_id=run.run_id,
            index_lag=True if trace.index_lag else None,
        )

    def _known(self, project_id: str, token: str | None) -> Mapping[str, KnownUnit]:
        """Return the units that the agent's token stands for; none without a token."""
        if token is None:
            return {}
        name = read(token, self._key, project_id)
        with self._store.read() as uow:
            row = uow.activation_states.get(name.state_id) or self._unsaved.get(name.state_id)
        if row is None or row.project_id != project_id:
            raise invalid_state("unknown")
        if self._clock() - row.last_used_at > EXPIRES_AFTER:
            raise invalid_state("expired")
        return {key: KnownUnit(*unit) for key, unit in row.units.items()}

    def _state(self, project_id: str, change: Delta) -> ActivationStateRow:
        now = self._clock()
        units = {key: (unit.content_hash, unit.resource_id) for key, unit in change.known.items()}
        return ActivationStateRow(self._new_id("sta"), project_id, units, now, now)

    def _run(self, project_id: str, query: str, trace: Trace, began: float) -> RunRow:
        return RunRow(
            run_id=self._new_id("run"),
            project_id=project_id,
            created_at=self._clock(),
            query=query,
            index_revision=trace.index_revision,
            fragments=len(trace.selected),
            latency_ms=(time.perf_counter() - began) * 1_000,
            pinned=False,
            trace=trace_record(trace),
        )

    def _keep(self, run: RunRow, state: ActivationStateRow, former: str | None) -> None:
        """Store run and state in one transaction; a failure is noted, never raised."""
        try:
            with self._store.write() as uow:
                uow.runs.add(run)
                uow.activation_states.put(state)
                uow.activation_states.delete_expired(state.created_at - EXPIRES_AFTER)
                if former is not None:
                    name = read(former, self._key, state.project_id)
                    uow.activation_states.touch(name.state_id, state.created_at)
        except InterleafError as error:
            self.run_write_error = f"{error.code.value}: {error.message}"
            self._unsaved[state.state_id] = state
            while len(self._unsaved) > _UNSAVED_STATES:
                del self._unsaved[next(iter(self._unsaved))]
        else:
            self.run_write_error = None

    def forget(self, project_id: str) -> None:
        """Drop what is held of a Project whose access was lost."""
        self._searcher.forget(project_id)
        self._unsaved = {key: row for key, row in self._unsaved.items() if row.project_id != project_id}


_UNSAVED_STATES: Final = 256
_SCORES: Final = tuple(field.name for field in fields(Candidate) if field.name not in ("unit", "reason"))


def _fragments(memory: EffectiveMemory, trace: Trace, change: Delta) -> list[Fragment]:
    """Return the selected units as the agent sees them; content only where it has none yet."""
    fragments = []
    for unit, action in zip(trace.units, change.actions, strict=True):
        resource = memory.by_id[unit.resource_id]
        fragments.append(
            Fragment(
                action=action.value,
                unit_key=unit.unit_key,
                content_hash=unit.content_hash,
                resource_id=unit.resource_id,
                scope=resource.scope,
                path=resource.path,
                heading_path=list(unit.heading_path),
                provenance=resource.provenance,
                description=resource.description or None,
                content=None if action is Action.REUSE else unit.text,
            )
        )
    return fragments


def trace_record(trace: Trace) -> dict[str, Any]:
    """Return a trace as JSON-able values, without any text of a resource."""
    return {
        "generation": trace.generation,
        "memory_hash": trace.memory_hash,
        "query_terms": list(trace.query_terms),
        "coverage": trace.coverage,
        "alpha": trace.alpha,
        "rerank_weight": trace.rerank_weight,
        "reranker": trace.reranker,
        "tokens": trace.tokens,
        "index_lag": trace.index_lag,
        "latencies_ms": dict(trace.latencies),
        "selected": [trace.candidates[index].unit_key for index in trace.selected],
        "candidates": [_candidate_record(candidate) for candidate in trace.candidates],
    }


def _candidate_record(candidate: Candidate) -> dict[str, Any]:
    record = {name: getattr(candidate, name) for name in _SCORES}
    unit = candidate.unit
    return {
        "unit_key": unit.unit_key,
        "resource_id": unit.resource_id,
        "path": unit.path,
        "heading_path": list(unit.heading_path),
        "reason": candidate.reason.value,
        **record,
    }
