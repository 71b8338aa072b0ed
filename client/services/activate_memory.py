"""Activate: the fragments that matter for a task, as a delta to what the agent already has."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from client.clock import Clock
from client.domain import delta
from client.domain.activation_state import EXPIRES_AFTER, StateName, invalid_state, read, sign
from client.domain.delta import Action, Delta, KnownUnit
from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder
from client.index.manager import IndexManager
from client.index.searcher import Searcher, Snapshot
from client.index.trace import Trace
from client.services.project_memory import ProjectMemory
from client.services.run_log import RunLog
from client.store.activations import ActivationStateRow
from client.store.unit_of_work import Store
from shared_schema.ids import Prefix
from shared_schema.tool_contract import Activate, ActivateAnswer, Fragment, RemovedUnit


class Models(Protocol):
    """Where the resident embedder comes from; raises while it is being prepared."""

    def embedder(self) -> Embedder:
        """Return the embedder, or raise ``search_model_preparing`` or ``search_model_unavailable``."""


class ActivateMemory:
    """One pass: one consistent cut, one search, one delta, one record.

    Record and next state are written behind the answer and never fail the call.
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
        runs: RunLog,
    ) -> None:
        self._store = store
        self._memory = memory
        self._index = index
        self._searcher = searcher
        self._models = models
        self._clock = clock
        self._new_id = new_id
        self._key = signing_key
        self._runs = runs

    def __call__(self, project_id: str, activate: Activate) -> ActivateAnswer:
        """Answer one ``activate`` of an agent bound to ``project_id``.

        Raises:
            InterleafError: ``project_access_lost``, ``project_not_synced``,
                ``invalid_activation_state``, ``search_model_preparing``,
                ``search_model_unavailable``, ``search_index_preparing``.
        """
        began = time.perf_counter()
        memory = self._memory.get(project_id)
        former, known = self._known(project_id, activate.state)
        embedder = self._models.embedder()
        with self._index.pin(project_id) as generation:
            if generation is None:
                raise self._index.preparing(project_id)
            trace = self._searcher.search(Snapshot(generation, memory), activate.query, embedder)
            change = delta.compute(known, trace.units, trace.is_live)
        state = self._state(project_id, change)
        run_id = self._new_id("run")
        answer = ActivateAnswer(
            index_revision=trace.index_revision,
            next_state=sign(StateName(state.state_id, project_id), self._key),
            fragments=_fragments(memory, trace, change),
            removed=[RemovedUnit(unit_key=k, resource_id=known[k].resource_id) for k in change.removed],
            run_id=run_id,
            index_lag=True if trace.index_lag else None,
        )
        # Last, so that the thread that it wakes does not compete with the rest of the answer.
        took = (time.perf_counter() - began) * 1_000
        self._runs.add(run_id, activate.query, trace, took, state, former)
        return answer

    def _known(self, project_id: str, token: str | None) -> tuple[str | None, Mapping[str, KnownUnit]]:
        """Return the state that the agent's token names and its units; none without a token."""
        if token is None:
            return None, {}
        name = read(token, self._key, project_id)
        row = self._runs.held(name.state_id)
        if row is None:
            with self._store.read() as uow:
                row = uow.activation_states.get(name.state_id)
        if row is None or row.project_id != project_id:
            raise invalid_state("unknown")
        if self._clock() - row.last_used_at > EXPIRES_AFTER:
            raise invalid_state("expired")
        return name.state_id, {key: KnownUnit(*unit) for key, unit in row.units.items()}

    def _state(self, project_id: str, change: Delta) -> ActivationStateRow:
        now = self._clock()
        units = {key: (unit.content_hash, unit.resource_id) for key, unit in change.known.items()}
        return ActivationStateRow(self._new_id("sta"), project_id, units, now, now)

    def forget(self, project_id: str) -> None:
        """Drop what is held of a Project whose access was lost."""
        self._searcher.forget(project_id)
        self._runs.forget(project_id)


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
                # What the agent still has is named, not described again.
                provenance=None if action is Action.REUSE else resource.provenance,
                description=None if action is Action.REUSE else resource.description or None,
                content=None if action is Action.REUSE else unit.text,
            )
        )
    return fragments
