"""Projects as this machine knows them, and which directories mean them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy.dialects.sqlite import insert

from client.store.prepared import Prepared
from client.store.tables import metadata
from shared_schema.org_contract import DEFAULT_GUIDE_PATH

_PROJECT = metadata.tables["project"]
_BINDING = metadata.tables["binding"]

# Part of every read and every write.
_GET = Prepared(select(_PROJECT).where(_PROJECT.c.project_id == bindparam("project")))
_RAISE_VERSION = Prepared(
    update(_PROJECT)
    .where(_PROJECT.c.project_id == bindparam("project"))
    .values(projection_version=_PROJECT.c.projection_version + 1)
    .returning(_PROJECT.c.projection_version)
)


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """One Project. Times in ms; commit numbers count from 1, 0 is an authority without commits."""

    project_id: str
    name: str
    role: str | None = None
    access: bool = True
    guide_path: str = DEFAULT_GUIDE_PATH
    installed_commit: str | None = None
    """The commit whose state ``published`` holds."""
    installed_seq: int = 0
    head_commit: str | None = None
    """The newest commit that the server told of."""
    head_seq: int = 0
    snapshot_at: int | None = None
    """When published state was installed for the first time since access was given; none: never."""
    last_success_at: int | None = None
    last_error: str | None = None
    projection_version: int = 0
    """Raised with every change of what the Project shows; by ``UnitOfWork.touch`` alone."""


class ProjectRepository:
    """The Projects; ``put`` leaves the projection version as it is."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, project_id: str) -> ProjectRow | None:
        """Return one Project, or None."""
        return next((_project(row) for row in _GET.run(self._connection, {"project": project_id})), None)

    def all(self) -> tuple[ProjectRow, ...]:
        """Return every Project by name, the ones without access too."""
        rows = self._connection.execute(select(_PROJECT).order_by(_PROJECT.c.name, _PROJECT.c.project_id))
        return tuple(map(_project, rows))

    def put(self, project: ProjectRow) -> None:
        """Insert or change one Project, except for its projection version."""
        values = asdict(project)
        version = values.pop("projection_version")
        statement = insert(_PROJECT).values(**values, projection_version=version)
        changes = {name: value for name, value in values.items() if name != "project_id"}
        self._connection.execute(statement.on_conflict_do_update(set_=changes))

    def raise_version(self, project_id: str) -> int:
        """Raise the projection version and return the new one. Use ``UnitOfWork.touch``."""
        [row] = _RAISE_VERSION.run(self._connection, {"project": project_id})
        return int(row.projection_version)


def _project(row: Any) -> ProjectRow:
    fields = row._asdict()
    return ProjectRow(**fields | {"access": bool(row.access)})


@dataclass(frozen=True, slots=True)
class BindingRow:
    """A canonical directory and the Project that it means."""

    directory: str
    project_id: str
    created_at: int


class BindingRepository:
    """Directories of this machine with their Projects."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, directory: str) -> BindingRow | None:
        """Return the binding of exactly this directory, or None."""
        row = self._connection.execute(select(_BINDING).where(_BINDING.c.directory == directory)).first()
        return None if row is None else BindingRow(**row._mapping)

    def nearest(self, directories: list[str]) -> BindingRow | None:
        """Return the binding of the longest of these directories that has one, or None."""
        rows = self._connection.execute(select(_BINDING).where(_BINDING.c.directory.in_(directories)))
        found = [BindingRow(**row._mapping) for row in rows]
        return max(found, key=lambda binding: len(binding.directory), default=None)

    def all(self) -> tuple[BindingRow, ...]:
        """Return every binding by directory."""
        rows = self._connection.execute(select(_BINDING).order_by(_BINDING.c.directory))
        return tuple(BindingRow(**row._mapping) for row in rows)

    def put(self, binding: BindingRow) -> None:
        """Bind the directory; a former binding of it is replaced."""
        values = asdict(binding)
        statement = insert(_BINDING).values(**values)
        self._connection.execute(statement.on_conflict_do_update(set_=values))

    def remove(self, directory: str) -> bool:
        """Remove the directory's binding; return whether there was one."""
        result = self._connection.execute(delete(_BINDING).where(_BINDING.c.directory == directory))
        return result.rowcount > 0
