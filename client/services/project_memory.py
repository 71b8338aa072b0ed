"""The Effective Memory of each Project, kept current as far as the tables moved.

Readers and writers ask here; nobody tells this module anything. It compares the projection version
it computed last with the stored one and, when the process saw what changed in between, computes
only that.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from client.domain.effective_memory import EffectiveMemory
from client.domain.projection import Installed, project, update
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Provenance
from shared_schema.rules.paths import PathSet

_FEW: Final = 500
"""Beyond so many changed resources, computing all of them anew is no slower."""


@dataclass(frozen=True, slots=True)
class CurrentMemory:
    """What a writing transaction decides on. ``paths`` belongs to the cache: read it only."""

    project: ProjectRow
    memory: EffectiveMemory
    paths: PathSet


@dataclass(slots=True)
class _Cached:
    version: int
    installed: Installed
    memory: EffectiveMemory
    paths: PathSet | None = None
    """Made for the first writer, then kept; readers never need it."""


class ProjectMemory:
    """Effective Memory by Project; safe to use from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._cache: dict[str, _Cached] = {}

    def get(self, project_id: str) -> EffectiveMemory:
        """Return what the Project shows now: an immutable value, one consistent cut.

        Raises ``not_found`` for a Project that this machine does not know, ``project_access_lost``,
        and ``project_not_synced`` before its first snapshot.
        """
        with self._store.read() as uow:
            row = readable_project(uow, project_id)
            with self._lock:
                return self._caught_up(uow, row).memory

    def current(self, uow: UnitOfWork, project_id: str, *, readable: bool = True) -> CurrentMemory:
        """Return what the Project shows in a writing transaction, before its first change.

        Nobody else can commit until that transaction ends, so what is decided on this still holds
        then. ``readable`` false lets a Project pass whose access was lost.
        """
        if uow.touched(project_id):
            raise RuntimeError("a transaction decides before it changes what the Project shows")
        row = readable_project(uow, project_id) if readable else known_project(uow, project_id)
        with self._lock:
            cached = self._caught_up(uow, row)
            if cached.paths is None:
                visible = cached.memory.by_id.values()
                cached.paths = PathSet((item.path, item.resource_id) for item in visible)
            return CurrentMemory(row, cached.memory, cached.paths)

    def forget(self, project_id: str) -> None:
        """Drop what is cached of a Project, such as the texts of one whose access was lost."""
        with self._lock:
            self._cache.pop(project_id, None)

    def _caught_up(self, uow: UnitOfWork, row: ProjectRow) -> _Cached:
        cached = self._cache.get(row.project_id)
        # Another thread may be ahead of this reader's snapshot; what it computed is only newer.
        if cached is None or cached.version < row.projection_version:
            cached = self._advanced(uow, row, cached)
            self._cache[row.project_id] = cached
        return cached

    def _advanced(self, uow: UnitOfWork, row: ProjectRow, cached: _Cached | None) -> _Cached:
        project_id, version = row.project_id, row.projection_version
        installed = Installed(project_id, row.installed_commit, row.installed_seq)
        changed = None
        if cached is not None:
            changed = self._store.changes.between(project_id, cached.version, version)
        if cached is None or changed is None or len(changed) > _FEW:
            memory = project(installed, uow.published.all(project_id), uow.drafts.overlaying(project_id))
            return _Cached(version, installed, memory)
        if installed != cached.installed:
            changed |= {
                item.resource_id
                for item in cached.memory.by_id.values()
                if item.provenance is Provenance.DRAFT
            }
            changed |= {draft.resource_id for draft in uow.drafts.overlaying(project_id)}
        memory = update(
            cached.memory,
            installed,
            changed,
            uow.published.some(project_id, changed),
            uow.drafts.overlaying(project_id, changed),
        )
        _move_paths(cached, memory, changed)
        return _Cached(version, installed, memory, cached.paths)


def _move_paths(cached: _Cached, memory: EffectiveMemory, changed: frozenset[str]) -> None:
    if cached.paths is None:
        return
    # What is hidden now, or is not any more, may be a resource that did not change itself.
    for resource_id in changed | memory.hidden.differing(cached.memory.hidden):
        former, item = cached.memory.by_id.get(resource_id), memory.by_id.get(resource_id)
        if former is not None and item is not None and former.path == item.path:
            continue
        if former is not None:
            cached.paths.remove(former.path, resource_id)
        if item is not None:
            cached.paths.add(item.path, resource_id)


def known_project(uow: UnitOfWork, project_id: str) -> ProjectRow:
    """Return a Project of this machine; ``not_found`` when there is none with this id."""
    row = uow.projects.get(project_id)
    if row is None:
        raise InterleafError(
            ErrorCode.NOT_FOUND,
            "This machine knows no such Project. See yours with: interleaf project list",
            details={"project_id": project_id},
        )
    return row


def readable_project(uow: UnitOfWork, project_id: str) -> ProjectRow:
    """Return a Project whose memory may be read.

    Raises ``not_found``, ``project_access_lost`` or ``project_not_synced``.
    """
    row = known_project(uow, project_id)
    if not row.access:
        raise InterleafError(
            ErrorCode.PROJECT_ACCESS_LOST,
            f"Your account has no access to the Project {row.name} any more. "
            "Ask a Project owner for access; local Drafts are kept.",
            details={"project_id": project_id},
        )
    if row.snapshot_at is None:
        raise InterleafError(
            ErrorCode.PROJECT_NOT_SYNCED,
            f"The Project {row.name} has not been synced to this machine yet. "
            "Wait for the first sync, or run: interleaf sync --wait",
            details={"project_id": project_id},
        )
    return row
