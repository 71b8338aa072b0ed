"""``interleaf sync``."""

from __future__ import annotations

from typing import Annotated

import typer

from client.cli.local import ask
from client.cli.options import Json
from client.cli.output import busy, count, say, show
from client.cli.taught import verb
from shared_schema.daemon_contract import SyncCall, SyncResult

app = typer.Typer()

_MARGIN_SECONDS = 15
"""Time for the answer itself, on top of what the daemon may wait."""


@verb(app, "sync", "interleaf sync", "interleaf sync --wait --timeout 120")
def sync(
    wait: Annotated[bool, typer.Option("--wait", help="Return when all is sent and fetched.")] = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=0, max=600, help="How long --wait waits.", show_default=True
        ),
    ] = 60,
    as_json: Json = False,
) -> None:
    """Send and fetch changes now instead of at the next round.

    With --wait the exit status is 0 when nothing is left, and 1 with what is left.
    """
    with busy("Sending and fetching …", as_json=as_json or not wait):
        result = ask(
            "sync_now",
            SyncCall(wait=wait, timeout_seconds=timeout),
            SyncResult,
            timeout=timeout + _MARGIN_SECONDS,
        )
    show(result, as_json, lambda: _print_result(result, wait))
    if wait and left_over(result):
        raise typer.Exit(1)


def left_over(result: SyncResult) -> bool:
    """Tell whether anything was not sent or not fetched."""
    return bool(result.pending or result.failed or result.projects_failing or result.error)


def _print_result(result: SyncResult, waited: bool) -> None:
    if not left_over(result):
        say("Everything is sent and fetched." if waited else "The daemon is at it; nothing waits to be sent.")
        return
    if result.pending:
        say(f"{count(result.pending, 'operation')} not sent yet.")
    if result.failed:
        say(f"{count(result.failed, 'operation')} refused by the server.")
    if result.projects_failing:
        say(f"Not fetched: {', '.join(result.projects_failing)}")
    if result.error:
        say(f"Last error: {result.error}")
    if result.pending or result.failed:
        say("See: interleaf outbox list")
