"""The daemon of this machine, and which Project a command means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from shared_schema.daemon_contract import Binding, ResolveCall, SyncCall, SyncResult
from shared_schema.daemon_contract import WorkingDirectory as Where
from shared_schema.directories import canonical_directory
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract
from shared_schema.places import find_places

_Answer = TypeVar("_Answer", bound=Contract)

WAKE_SECONDS = 5.0


def ask(method: str, params: Contract, answer: type[_Answer], *, timeout: float | None = None) -> _Answer:
    """Return the daemon's answer to one call; ``timeout`` in seconds replaces the usual two minutes."""
    # Imported here, like everything that speaks HTTP: --help does not need it.
    from client.daemon.connection import DaemonConnection

    with DaemonConnection(find_places()) as daemon:
        return daemon.call(method, params, answer, timeout=timeout)


def wake() -> None:
    """Let a running daemon fetch what was just changed on the server; without one nothing happens."""
    try:
        ask("sync_now", SyncCall(), SyncResult, timeout=WAKE_SECONDS)
    except InterleafError:
        # The change itself is made; the daemon hears of it at its next round, or when it is started.
        return


def where(directory: Path) -> Where:
    """Return a directory as bindings see it: links resolved, linked worktrees known."""
    found = canonical_directory(directory)
    return Where(path=found.path, main_checkout=found.main_checkout)


def binding(directory: Path | None = None) -> Binding:
    """Return the binding that a directory falls under; raises ``project_binding_not_found``."""
    place = where(directory or Path.cwd())
    try:
        return ask("resolve_binding", ResolveCall(directory=place), Binding)
    except InterleafError as error:
        if error.code is not ErrorCode.PROJECT_BINDING_NOT_FOUND:
            raise
        raise InterleafError(
            ErrorCode.PROJECT_BINDING_NOT_FOUND,
            f"No Project is bound to {place.path}. Bind one with: interleaf project bind PROJECT. "
            "Or name it with --project.",
            details=error.details,
        ) from None


def chosen(project: str | None) -> str:
    """Return what names the Project: what was given, else the id that this directory is bound to."""
    return project or binding().project_id


def chosen_or_all(project: str | None) -> str | None:
    """Return the Project as `chosen` does, or None where the directory belongs to none."""
    try:
        return chosen(project)
    except InterleafError as error:
        if error.code is ErrorCode.PROJECT_BINDING_NOT_FOUND:
            return None
        raise


@contextmanager
def explained(hint: str, *codes: ErrorCode) -> Iterator[None]:
    """Add the next step that fits the command to an error with one of these codes."""
    try:
        yield
    except InterleafError as error:
        if error.code in codes:
            error.details.setdefault("next", hint)
        raise
