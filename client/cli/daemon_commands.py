"""``interleaf daemon``: the resident process of this machine."""

from __future__ import annotations

import logging
import os
import sys

from client.cli.local import ask
from client.cli.options import Json
from client.cli.output import count, facts, moment, say, show, size
from client.cli.taught import noun, verb
from shared_schema.daemon_contract import (
    DaemonStatus,
    Empty,
    Hello,
    IndexStatus,
    ModelStatus,
    ProjectStatus,
    runtime_marker,
)
from shared_schema.errors import ErrorCode, InterleafError

app = noun("interleaf daemon start", "interleaf daemon status --json")


@verb(app, "run", "interleaf daemon run")
def run() -> None:
    """Run the daemon in the foreground, for a service manager.

    It ends with Ctrl-C, SIGTERM or `interleaf daemon stop`.
    """
    from client.config import Settings
    from client.daemon.lifecycle import run_daemon

    sys.stderr.write("The daemon runs in the foreground; Ctrl-C stops it.\n")
    status = run_daemon(Settings())
    logging.shutdown()
    sys.stderr.flush()
    # The store is closed; a thread that is still inside a model must not keep the process.
    os._exit(status)


@verb(app, "start", "interleaf daemon start")
def start(as_json: Json = False) -> None:
    """Start the daemon in the background and wait until it answers.

    One that runs already is fine, unless it is of another build.
    """
    from client.config import Settings
    from client.daemon.lifecycle import hello, start_daemon

    settings = Settings()
    running: Hello | None = None
    try:
        running = hello(settings.places)
    except InterleafError:
        start_daemon(settings)
    if running is not None and running.marker != runtime_marker():
        raise InterleafError(
            ErrorCode.AGENT_RUNTIME_MISMATCH,
            f"A daemon of another build runs already (pid {running.pid}, "
            f"{_build(running.marker.release, running.marker.fingerprint)}). "
            "Replace it with: interleaf daemon restart",
            details={"daemon": running.marker.model_dump(), "command": runtime_marker().model_dump()},
        )
    _tell(as_json, "runs already" if running else "runs now")


@verb(app, "stop", "interleaf daemon stop")
def stop(as_json: Json = False) -> None:
    """Stop the daemon and wait until it has ended.

    Nothing that was stored is lost; agents find no memory until it runs again.
    """
    from client.config import Settings
    from client.daemon.lifecycle import stop_daemon

    stopped = stop_daemon(Settings())
    show(
        {"stopped": stopped}, as_json, lambda: say("The daemon has stopped." if stopped else "No daemon ran.")
    )


@verb(app, "restart", "interleaf daemon restart", more="Reconnect the agents' integrations afterwards.")
def restart(as_json: Json = False) -> None:
    """Stop the daemon and start it again, for example after an update."""
    from client.config import Settings
    from client.daemon.lifecycle import start_daemon, stop_daemon

    settings = Settings()
    stop_daemon(settings)
    start_daemon(settings)
    _tell(as_json, "runs now")


@verb(app, "status", "interleaf daemon status", "interleaf daemon status --json")
def status(as_json: Json = False) -> None:
    """Show account, sync, models and Projects of this machine."""
    found = ask("daemon_status", Empty(), DaemonStatus)
    show(found, as_json, lambda: _print_status(found))


def _tell(as_json: bool, what: str) -> None:
    found = ask("daemon_status", Empty(), DaemonStatus)

    def human() -> None:
        say(f"The daemon {what} (pid {found.pid}).")
        if found.account is None:
            say("Sign in with: interleaf login --server URL --token-stdin")

    show(found, as_json, human)


def _build(release: str, fingerprint: str) -> str:
    return f"version {release}, build {fingerprint}"


def _print_status(found: DaemonStatus) -> None:
    account = "not signed in"
    if found.account is not None:
        account = f"{found.account.me.email} at {found.account.server_url} ({found.account.me.org_name})"
    if found.signed_out:
        account += "; signed out by the server: sign in again"
    facts(
        [
            ("Daemon", f"pid {found.pid}, {_build(found.version, found.marker.fingerprint)}"),
            ("Started", moment(found.started_at)),
            ("Home", found.home),
            ("Account", account),
            ("Last sync", moment(found.last_sync_at)),
            ("Sync error", found.last_sync_error),
            ("Run records", found.run_write_error and f"not written: {found.run_write_error}"),
            ("Models", describe_models(found.models)),
            ("Bindings", str(found.bindings)),
        ]
    )
    for project in found.projects:
        say()
        _print_project(project)
    if not found.projects:
        say("\nNo Project yet. See: interleaf project list")


def _print_project(project: ProjectStatus) -> None:
    say(f"{project.name} ({project.project_id})", style="bold")
    waiting = [
        f"{number} {name}" for name, number in project.sync_counts.items() if number and name != "synced"
    ]
    behind, conflicting = project.drafts_behind, project.drafts_conflicting
    commit = f"{project.commit_id[:12]} (number {project.commit_seq})" if project.commit_id else "none yet"
    facts(
        [
            ("  Role", project.role or "none"),
            ("  Access", None if project.access else "lost; local Drafts are kept"),
            ("  Memory", f"{count(project.resources, 'resource')}, commit {commit}"),
            ("  Synced", moment(project.last_success_at)),
            ("  Sync error", project.last_error),
            ("  Operations", ", ".join(waiting) or "nothing on its way"),
            ("  Drafts", f"{behind} behind, {conflicting} with conflicts" if behind or conflicting else None),
            ("  Index", describe_index(project.index)),
        ]
    )


def describe_models(models: ModelStatus) -> str:
    """Return the state of the models in one line."""
    if models.ready:
        memory = "loaded" if models.loaded else "unloaded, loads with the next question"
        return f"ready ({models.profile}; reranker: {models.reranker}; {memory})"
    if models.error:
        return f"{models.stage}: {models.error}"
    if models.total_bytes:
        return f"{models.stage}: {size(models.current_bytes)} of {size(models.total_bytes)}"
    return models.stage


def describe_index(index: IndexStatus) -> str:
    """Return the state of a search index in one line."""
    if index.state == "failed":
        return f"failed: {index.error}"
    # What was found broken, and what a build waits for; the former index may answer meanwhile.
    said = f"; {index.error}" if index.error else ""
    if index.state == "none":
        return f"none yet{said}"
    if index.state == "building":
        return f"building: {index.done} of {index.total} units{said}"
    lag = "; newer text is being indexed" if index.lag else ""
    return f"ready: {count(index.units, 'unit')} of {count(index.resources, 'resource')}{lag}{said}"
