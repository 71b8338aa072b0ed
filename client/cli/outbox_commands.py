"""``interleaf outbox``: operations between this machine and the server."""

from __future__ import annotations

from typing import Annotated

import typer

from client.cli.local import ask
from client.cli.options import Json
from client.cli.output import count, moment, say, show, styled, table
from client.cli.taught import noun, verb
from shared_schema.daemon_contract import Count, Outbox, OutboxItem, OutboxListCall, OutboxRetryCall

app = noun("interleaf outbox list", "interleaf outbox retry")


@verb(app, "list", "interleaf outbox list", "interleaf outbox list --all")
def list_outbox(
    every: Annotated[bool, typer.Option("--all", help="Those that the server has, too.")] = False,
    as_json: Json = False,
) -> None:
    """List operations that the server does not have yet, and why."""
    found = ask("list_outbox", OutboxListCall(all=every), Outbox)
    show(
        found,
        as_json,
        lambda: table(
            ["Operation", "What and state"],
            [
                [item.local_operation_id, styled(_what(item), "bold", _state(item))]
                for item in found.operations
            ],
            empty="Nothing is on its way.",
        ),
    )


@verb(app, "retry", "interleaf outbox retry", "interleaf outbox retry lop_…")
def retry(
    operation: Annotated[
        str | None,
        typer.Argument(metavar="OPERATION", help="Operation id; default: all that failed or wait."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try refused and waiting operations again, now."""
    answer = ask("retry_outbox", OutboxRetryCall(local_operation_id=operation), Count)
    show(answer, as_json, lambda: say(f"{count(answer.count, 'operation')} will be tried again now."))


def _what(item: OutboxItem) -> str:
    return f"{item.kind} {item.path or item.draft_id}"


def _state(item: OutboxItem) -> str:
    words = [item.sync_status.value]
    if item.attempts:
        words.append(count(item.attempts, "attempt"))
    if item.cause:
        words.append(item.cause.value.replace("_", " "))
    if item.next_attempt_at is not None and item.sync_status == "retrying":
        words.append(f"next {moment(item.next_attempt_at)}")
    state = ", ".join(words)
    if item.error_code:
        state += f"; {item.error_code}: {item.error_message or ''}"
    if item.retry_can_help is False:
        state += " (a retry cannot help)"
    return state
