"""Retrieval runs as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from client.services.bind_directories import find_project
from client.store.activations import RunRow
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.daemon_contract import RunCall, RunDetail, RunItem, RunList, RunListCall, RunPinCall
from shared_schema.errors import ErrorCode, InterleafError


class ReadRuns:
    """Lists, shows and keeps the local records of what agents were shown, and why."""

    def __init__(self, store: Store, flush: Callable[[], None] = lambda: None) -> None:
        """``flush`` waits for the records that are still being written."""
        self._store = store
        self._flush = flush

    def list(self, call: RunListCall) -> RunList:
        """Return the newest runs first, of one Project or of all."""
        self._flush()
        with self._store.read() as uow:
            project_id = find_project(uow, call.project).project_id if call.project else None
            names = _names(uow)
            return RunList(runs=[_item(row, names) for row in uow.runs.list(project_id, call.limit)])

    def show(self, call: RunCall) -> RunDetail:
        """Return one run with its whole trace; ``run_not_found`` when it was dropped or never was."""
        self._flush()
        with self._store.read() as uow:
            row, names = uow.runs.get(call.run_id), _names(uow)
        if row is None:
            raise no_run(call.run_id)
        return RunDetail(run=_item(row, names), trace=dict(row.trace))

    def pin(self, call: RunPinCall) -> RunItem:
        """Keep a run whatever follows it, or no longer; ``run_not_found`` as in `show`."""
        self._flush()
        with self._store.write() as uow:
            if not uow.runs.set_pinned(call.run_id, call.pinned):
                raise no_run(call.run_id)
            row, names = uow.runs.get(call.run_id), _names(uow)
        assert row is not None  # noqa: S101 - it was pinned just now, in this transaction
        return _item(row, names)


def no_run(run_id: str) -> InterleafError:
    """Return the error for a run that was dropped or never was."""
    return InterleafError(
        ErrorCode.RUN_NOT_FOUND,
        "There is no such retrieval run; old ones are dropped. List them with: interleaf runs list",
        details={"run_id": run_id},
    )


def _names(uow: UnitOfWork) -> dict[str, str]:
    return {project.project_id: project.name for project in uow.projects.all()}


def _item(row: RunRow, names: Mapping[str, str]) -> RunItem:
    return RunItem(
        run_id=row.run_id,
        project_id=row.project_id,
        created_at=row.created_at,
        query=row.query,
        index_revision=row.index_revision,
        fragments=row.fragments,
        latency_ms=row.latency_ms,
        pinned=row.pinned,
        project_name=names.get(row.project_id),
    )
