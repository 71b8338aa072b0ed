"""Which Project a directory of this machine means."""

from __future__ import annotations

from pathlib import Path

from client.clock import Clock, system_clock
from client.store.projects import BindingRow, ProjectRow
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.daemon_contract import (
    AgentScope,
    BindCall,
    Binding,
    Bindings,
    Count,
    UnbindCall,
    WorkingDirectory,
)
from shared_schema.errors import ErrorCode, InterleafError


class BindDirectories:
    """Binds, resolves and verifies directories. A directory means one Project at most."""

    def __init__(self, store: Store, clock: Clock = system_clock) -> None:
        self._store = store
        self._clock = clock

    def bind(self, call: BindCall) -> Binding:
        """Bind a directory in place of a former binding of it.

        Raises ``invalid_arguments`` for what is no directory here, and `find_project`'s errors.
        """
        directory = _canonical(call.directory)
        if not Path(directory).is_dir():
            raise _no_directory("is no directory on this machine")
        with self._store.write() as uow:
            project = find_project(uow, call.project)
            row = BindingRow(directory, project.project_id, self._clock())
            uow.bindings.put(row)
            return _binding(row, project)

    def unbind(self, call: UnbindCall) -> Count:
        """Remove the binding of exactly this directory; it may be gone from the disk."""
        with self._store.write() as uow:
            return Count(count=int(uow.bindings.remove(_canonical(call.directory))))

    def list(self) -> Bindings:
        """Return every binding, by directory."""
        with self._store.read() as uow:
            projects = {project.project_id: project for project in uow.projects.all()}
            rows = uow.bindings.all()
        return Bindings(bindings=[_binding(row, projects.get(row.project_id)) for row in rows])

    def resolve(self, directory: WorkingDirectory) -> Binding:
        """Return the binding of the longest bound ancestor of the directory, else of its main
        checkout. Raises ``project_binding_not_found``.
        """
        with self._store.read() as uow:
            for start in (directory.path, directory.main_checkout):
                if start is not None and (row := uow.bindings.nearest(_with_parents(start))) is not None:
                    return _binding(row, uow.projects.get(row.project_id))
        raise InterleafError(
            ErrorCode.PROJECT_BINDING_NOT_FOUND,
            "This directory is bound to no Project. Bind it with: interleaf project bind PROJECT",
            details={"directory": directory.path},
        )

    def verify(self, scope: AgentScope) -> None:
        """Check that the agent's directory still means the Project that it was started for.

        Raises ``project_binding_changed`` or ``project_binding_not_found``.
        """
        if self.resolve(scope.directory).project_id != scope.project_id:
            raise InterleafError(
                ErrorCode.PROJECT_BINDING_CHANGED,
                "This directory is bound to another Project by now. "
                "Reconnect the agent's integration to use it.",
                details={"directory": scope.directory.path},
            )


def find_project(uow: UnitOfWork, text: str) -> ProjectRow:
    """Return the Project with this id, else the only one with this name.

    Raises ``not_found``, or ``invalid_arguments`` when several have the name.
    """
    by_id = uow.projects.get(text)
    if by_id is not None:
        return by_id
    named = [project for project in uow.projects.all() if project.name == text]
    if not named:
        raise InterleafError(
            ErrorCode.NOT_FOUND,
            "This machine knows no Project with this id or name. See yours with: interleaf project list",
            details={"project": text},
        )
    if len(named) > 1:
        problem = "is the name of several Projects; give the id"
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"project: {problem}.",
            details={"fields": [{"field": "project", "problem": problem}]},
        )
    return named[0]


def _binding(row: BindingRow, project: ProjectRow | None) -> Binding:
    return Binding(
        directory=row.directory,
        project_id=row.project_id,
        project_name=project.name if project else None,
        guide_path=project.guide_path if project else None,
    )


def _canonical(directory: str) -> str:
    path = Path(directory)
    if not path.is_absolute() or "\0" in directory:
        raise _no_directory("must be an absolute path")
    return str(path.resolve())


def _with_parents(directory: str) -> list[str]:
    path = Path(directory)
    return [str(path), *map(str, path.parents)]


def _no_directory(problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"directory: {problem}.",
        details={"fields": [{"field": "directory", "problem": problem}]},
    )
