"""What agents were shown: retrieval runs for people, activation states for the next delta."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from client.store.tables import metadata

_RUN = metadata.tables["retrieval_run"]
_STATE = metadata.tables["activation_state"]
KEPT_RUNS: Final = 500
"""Unpinned runs kept for each Project."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One activation: what was asked, how long it took, and how every candidate fared."""

    run_id: str
    project_id: str
    created_at: int
    query: str
    index_revision: str
    fragments: int
    latency_ms: float
    pinned: bool
    trace: Mapping[str, Any]
    """JSON-able; empty in a list."""


class RunRepository:
    """Retrieval runs; diagnostics, the first thing to go when room is short."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, run: RunRow) -> None:
        """Insert a run and drop the oldest unpinned ones of its Project beyond `KEPT_RUNS`."""
        values = {name: getattr(run, name) for name in RunRow.__slots__}
        self._connection.execute(insert(_RUN).values(**values | {"trace": _pack(run.trace)}))
        unpinned = (_RUN.c.project_id == run.project_id, ~_RUN.c.pinned)
        surplus = (
            select(_RUN.c.run_id)
            .where(*unpinned)
            .order_by(_RUN.c.created_at.desc(), _RUN.c.run_id.desc())
            .offset(KEPT_RUNS)
        )
        self._connection.execute(delete(_RUN).where(_RUN.c.run_id.in_(surplus)))

    def get(self, run_id: str) -> RunRow | None:
        """Return one run with its trace, or None."""
        row = self._connection.execute(select(_RUN).where(_RUN.c.run_id == run_id)).first()
        return None if row is None else _run(row, _unpack(row.trace))

    def list(self, project_id: str | None, limit: int) -> tuple[RunRow, ...]:
        """Return the newest runs first, without their traces."""
        columns = [column for column in _RUN.c if column.name != "trace"]
        statement = select(*columns).order_by(_RUN.c.created_at.desc(), _RUN.c.run_id.desc()).limit(limit)
        if project_id is not None:
            statement = statement.where(_RUN.c.project_id == project_id)
        return tuple(_run(row, {}) for row in self._connection.execute(statement))

    def set_pinned(self, run_id: str, pinned: bool) -> bool:
        """Keep a run beyond the bound, or no longer; return whether there is such a run."""
        statement = update(_RUN).where(_RUN.c.run_id == run_id).values(pinned=pinned)
        return self._connection.execute(statement).rowcount == 1

    def delete_project(self, project_id: str) -> int:
        """Delete every run of a Project, pinned ones too; return how many."""
        return self._connection.execute(delete(_RUN).where(_RUN.c.project_id == project_id)).rowcount


@dataclass(frozen=True, slots=True)
class ActivationStateRow:
    """The units that one agent's context holds: unit key → (content hash, resource id)."""

    state_id: str
    project_id: str
    units: Mapping[str, tuple[str, str]]
    created_at: int
    last_used_at: int


class ActivationStateRepository:
    """Known units by the id that an agent's token names."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, state_id: str) -> ActivationStateRow | None:
        """Return one state, or None."""
        row = self._connection.execute(select(_STATE).where(_STATE.c.state_id == state_id)).first()
        if row is None:
            return None
        units = {key: (found[0], found[1]) for key, found in _unpack(row.units).items()}
        return ActivationStateRow(row.state_id, row.project_id, units, row.created_at, row.last_used_at)

    def put(self, state: ActivationStateRow) -> None:
        """Store a state; a former one with its id is replaced."""
        values = {
            "project_id": state.project_id,
            "units": _pack(state.units),
            "created_at": state.created_at,
            "last_used_at": state.last_used_at,
        }
        statement = insert(_STATE).values(state_id=state.state_id, **values)
        self._connection.execute(statement.on_conflict_do_update(set_=values))

    def touch(self, state_id: str, now: int) -> None:
        """Note that a state was used."""
        self._connection.execute(update(_STATE).where(_STATE.c.state_id == state_id).values(last_used_at=now))

    def delete_expired(self, unused_since: int) -> int:
        """Delete the states last used before this time (ms); return how many."""
        return self._connection.execute(delete(_STATE).where(_STATE.c.last_used_at < unused_since)).rowcount

    def delete_project(self, project_id: str) -> int:
        """Delete every state of a Project; return how many."""
        return self._connection.execute(delete(_STATE).where(_STATE.c.project_id == project_id)).rowcount

    def count(self) -> int:
        """Return how many states are kept."""
        return int(self._connection.execute(select(func.count()).select_from(_STATE)).scalar_one())


def _pack(value: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _unpack(packed: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(zlib.decompress(packed))
    return value


def _run(row: Row[Any], trace: Mapping[str, Any]) -> RunRow:
    fields = {name: row._mapping[name] for name in RunRow.__slots__ if name != "trace"}
    return RunRow(**fields, trace=trace)
