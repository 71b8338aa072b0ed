"""What activations leave behind, written after the answers: their records and the agents' next states.

Building and compressing a record takes longer than all of an answer that is not the model's, so one
thread does it afterwards. A state is found here from the moment its token is given away. What cannot be
written is told in the status; such states are held as long as the process lives, the latest ones.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, fields
from typing import Any, Final

from client.domain.activation_state import EXPIRES_AFTER
from client.domain.ranking import fusion_weight, rerank_weight
from client.index.trace import Candidate, Trace
from client.store.activations import ActivationStateRow, RunRow
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError

WAITING: Final = 256
"""Records that may wait; more are dropped and told."""
_TIDY_EVERY: Final = 3_600_000
"""Milliseconds between two deletions of expired states."""
_SCORES: Final = tuple(field.name for field in fields(Candidate) if field.name not in ("unit", "reason"))


@dataclass(frozen=True, slots=True)
class _Waiting:
    run_id: str
    project_id: str
    query: str
    trace: Trace
    latency_ms: float
    state: ActivationStateRow
    former: str | None


class RunLog:
    """Keeps record and state of each activation. ``error`` tells why the latest was lost, or is None."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(WAITING)
        self._thread: threading.Thread | None = None
        self._held: dict[str, ActivationStateRow] = {}
        self._next_tidying = 0
        self.error: str | None = None

    def start(self) -> None:
        """Start the writing thread, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="retrieval-runs", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Write what waits and end the thread."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(timeout)
            self._thread = None

    def add(
        self,
        run_id: str,
        query: str,
        trace: Trace,
        latency_ms: float,
        state: ActivationStateRow,
        former: str | None,
    ) -> None:
        """Hand over one activation; never waits, never fails.

        ``former`` is the id of the state that the call came with, which was used now.
        """
        waiting = _Waiting(run_id, state.project_id, query, trace, latency_ms, state, former)
        self._hold(state)
        if self._thread is None:
            self._write(waiting)
            return
        try:
            self._waiting.put_nowait(waiting)
        except queue.Full:
            self.error = f"{ErrorCode.INTERNAL_ERROR.value}: more activations than records could be written"

    def held(self, state_id: str) -> ActivationStateRow | None:
        """Return a state that is not stored yet."""
        return self._held.get(state_id)

    def forget(self, project_id: str) -> None:
        """Drop the held states of a Project whose access was lost."""
        for state in list(self._held.values()):
            if state.project_id == project_id:
                self._held.pop(state.state_id, None)

    def _hold(self, state: ActivationStateRow) -> None:
        self._held[state.state_id] = state
        for state_id in list(self._held)[:-WAITING]:
            self._held.pop(state_id, None)

    def flush(self) -> None:
        """Wait until what was handed over before is written."""
        if self._thread is not None:
            self._waiting.join()

    def _write_all(self) -> None:
        while True:
            waiting = self._waiting.get()
            try:
                if waiting is None:
                    return
                self._write(waiting)
            finally:
                self._waiting.task_done()

    def _write(self, waiting: _Waiting) -> None:
        try:
            row = self._row(waiting)
            with self._store.write() as uow:
                project = uow.projects.get(waiting.project_id)
                # Access may have been lost since: then nothing of the Project is kept.
                if project is not None and project.access:
                    uow.runs.add(row)
                    uow.activation_states.put(waiting.state)
                self._tidy(uow, waiting)
            self._held.pop(waiting.state.state_id, None)
        except InterleafError as error:
            self.error = f"{error.code.value}: {error.message}"
        except Exception as error:  # noqa: BLE001 - a record must not end the thread for all others
            self.error = f"{ErrorCode.INTERNAL_ERROR.value}: {type(error).__name__}"
        else:
            self.error = None

    def _row(self, waiting: _Waiting) -> RunRow:
        return RunRow(
            run_id=waiting.run_id,
            project_id=waiting.project_id,
            created_at=waiting.state.created_at,
            query=waiting.query,
            index_revision=waiting.trace.index_revision,
            fragments=len(waiting.trace.selected),
            latency_ms=waiting.latency_ms,
            pinned=False,
            trace=trace_record(waiting.trace),
        )

    def _tidy(self, uow: UnitOfWork, waiting: _Waiting) -> None:
        """Note which state was used, and now and then drop those that are expired."""
        now = waiting.state.created_at
        if waiting.former is not None:
            uow.activation_states.touch(waiting.former, now)
        if now >= self._next_tidying:
            uow.activation_states.delete_expired(now - EXPIRES_AFTER)
            self._next_tidying = now + _TIDY_EVERY


def trace_record(trace: Trace) -> dict[str, Any]:
    """Return a trace as JSON-able values, without any text of a resource."""
    return {
        "generation": trace.generation,
        "memory_hash": trace.memory_hash,
        "query_terms": list(trace.query_terms),
        "missing_terms": list(trace.missing_terms),
        "coverage": trace.coverage,
        "foreign_coverage": trace.foreign_coverage,
        "alpha": trace.alpha,
        "rerank_weight": trace.rerank_weight,
        "foreign_weights": _foreign_weights(trace),
        "reranker": trace.reranker,
        "tokens": trace.tokens,
        "index_lag": trace.index_lag,
        "latencies_ms": dict(trace.latencies),
        "selected": [trace.candidates[index].unit_key for index in trace.selected],
        "candidates": [_candidate_record(trace, candidate) for candidate in trace.candidates],
    }


def _foreign_weights(trace: Trace) -> list[float] | None:
    """Return ``alpha`` and ``rerank_weight`` of passages in another script than the query's."""
    if trace.foreign_coverage is None:
        return None
    return [fusion_weight(trace.foreign_coverage), rerank_weight(trace.foreign_coverage)]


def _candidate_record(trace: Trace, candidate: Candidate) -> dict[str, Any]:
    unit = candidate.unit
    return {
        "unit_key": unit.unit_key,
        "resource_id": unit.resource_id,
        "path": unit.path,
        "heading_path": list(unit.heading_path),
        "tokens": unit.tokens,
        "draft": trace.is_draft(unit.resource_id),
        "reason": candidate.reason.value,
        **{name: getattr(candidate, name) for name in _SCORES},
    }
