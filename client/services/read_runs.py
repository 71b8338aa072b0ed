"""Retrieval runs as people read them."""

from __future__ import annotations

from collections.abc import Callable

from client.services.bind_directories import find_project
from client.store.activations import RunRow
from client.store.unit_of_work import Store
from shared_schema.daemon_contract import RunCall, RunDetail, RunItem, RunList, RunListCall
from shared_schema.errors import ErrorCode, InterleafError


class ReadRuns:
    """Lists and shows the local records of what agents were shown, and why."""

    def __init__(self, store: Store, flush: Callable[[], None] = lambda: None) -> None:
        """``flush`` waits for the records that are still being written."""
        self._store = store
        self._flush = flush

    def list(self, call: RunListCall) -> RunList:
        """Return the newest runs first, of one Project or of all."""
        self._flush()
        with self._store.read() as uow:
            project_id = find_project(uow, call.project).project_id if call.project else None
            return RunList(runs=[_item(row) for row in uow.runs.list(project_id, call.limit)])

    def show(self, call: RunCall) -> RunDetail:
        """Return one run with its whole trace; ``run_not_found`` when it was dropped or never was."""
        self._flush()
        with self._store.read() as uow:
            row = uow.runs.get(call.run_id)
        if row is None:
            raise InterleafError(
                ErrorCode.RUN_NOT_FOUND,
                "There is no such retrieval run; old ones are dropped. List them with: interleaf runs list",
                details={"run_id": call.run_id},
            )
        return RunDetail(run=_item(row), trace=dict(row.trace))


def _item(row: RunRow) -> RunItem:
    return RunItem(
        run_id=row.run_id,
        project_id=row.project_id,
        created_at=row.created_at,
        query=row.query,
        index_revision=row.index_revision,
        fragments=row.fragments,
        latency_ms=row.latency_ms,
        pinned=row.pinned,
    )
