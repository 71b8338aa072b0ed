"""``interleaf runs``: what agents asked for on this machine, and what they got."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from client.cli.local import ask, chosen_or_all
from client.cli.options import InProject, Json
from client.cli.output import count, facts, moment, say, show, styled, table
from client.cli.taught import noun, verb
from shared_schema import limits
from shared_schema.daemon_contract import RunCall, RunDetail, RunItem, RunList, RunListCall

app = noun("interleaf runs list", "interleaf runs show run_…")


@verb(app, "list", "interleaf runs list --limit 50")
def list_runs(
    project: InProject = None,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, max=limits.PAGE_MAX, help="How many.", show_default=True),
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the latest activations, newest first. They never leave this machine."""
    found = ask("list_runs", RunListCall(project=chosen_or_all(project), limit=limit), RunList)
    show(
        found,
        as_json,
        lambda: table(
            ["Run", "Query, time, fragments"],
            [[item.run_id, styled(item.query, "bold", _summary(item))] for item in found.runs],
            empty="No agent has asked for memory here yet.",
        ),
    )


@verb(app, "show", "interleaf runs show run_… --json")
def show_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run id, as `runs list` shows.")],
    as_json: Json = False,
) -> None:
    """Show one activation and its candidates.

    How each was found and ranked, and why it was returned or left out.
    """
    found = ask("show_run", RunCall(run_id=run), RunDetail)
    show(found, as_json, lambda: _print(found))


def _summary(item: RunItem) -> str:
    pinned = ", pinned" if item.pinned else ""
    fragments = count(item.fragments, "fragment")
    return f"{moment(item.created_at)}, {fragments}, {item.latency_ms:.0f} ms{pinned}"


def _print(found: RunDetail) -> None:
    run = found.run
    facts(
        [
            ("Run", run.run_id),
            ("Time", moment(run.created_at)),
            ("Project", run.project_id),
            ("Query", run.query),
            ("Answer", _summary(run)),
            ("Index", run.index_revision),
        ]
    )
    for name, value in found.trace.items():
        say(f"\n{name}", style="bold")
        rows = value if isinstance(value, list) else [value]
        for row in rows:
            say(f"  {_flat(row)}")


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{key}={_flat(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
