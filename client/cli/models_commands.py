"""``interleaf models``: what search by meaning needs on this machine."""

from __future__ import annotations

import time
from typing import Annotated, Self

import typer

from client.cli.daemon_commands import describe_models
from client.cli.local import ask
from client.cli.options import Json
from client.cli.output import console, facts, moment, say, show, size
from client.cli.taught import noun, verb
from shared_schema.daemon_contract import Empty, ModelStatus
from shared_schema.errors import ErrorCode, InterleafError

app = noun("interleaf models prepare", "interleaf models status")

POLL_SECONDS = 0.5


@verb(app, "prepare", "interleaf models prepare", "interleaf models prepare --no-wait")
def prepare(
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return at once.")] = False,
    as_json: Json = False,
) -> None:
    """Fetch and check the search models; about 100 MB, once a machine.

    The daemon does it; leaving this command with Ctrl-C does not stop it. With --json it returns at
    once: ask `interleaf models status --json` until `ready` is true.
    """
    status = ask("prepare_models", Empty(), ModelStatus)
    if as_json or no_wait:
        show(status, as_json, lambda: _print_status(status))
        return
    status = _wait(status)
    say(f"The models are {describe_models(status)}.")


@verb(app, "status", "interleaf models status --json")
def status(as_json: Json = False) -> None:
    """Show whether the search models are ready.

    And how far their preparation is.
    """
    found = ask("models_status", Empty(), ModelStatus)
    show(found, as_json, lambda: _print_status(found))


def _print_status(found: ModelStatus) -> None:
    facts(
        [
            ("Models", describe_models(found)),
            ("Profile", found.profile),
            ("Folder", found.folder),
            ("Reranker", found.reranker),
            ("Next try", None if found.next_attempt_at is None else moment(found.next_attempt_at)),
        ]
    )
    if not found.ready and found.stage in ("waiting", "failed"):
        say("Prepare them with: interleaf models prepare")


def _wait(status: ModelStatus) -> ModelStatus:
    """Wait until the models are ready, with a bar on a terminal and a line a stage elsewhere."""
    with _Progress() as progress:
        progress.update(status)
        while not status.ready and status.stage != "failed":
            time.sleep(POLL_SECONDS)
            status = ask("models_status", Empty(), ModelStatus)
            progress.update(status)
    if not status.ready:
        raise InterleafError(
            ErrorCode.SEARCH_MODEL_UNAVAILABLE,
            f"The models could not be prepared: {status.error or status.stage}",
            details={"stage": status.stage},
        )
    return status


class _Progress:
    """Shows how far the preparation is, on stderr."""

    def __enter__(self) -> Self:
        from rich.progress import BarColumn, Progress, TextColumn

        screen = console(stderr=True)
        self._on_terminal = screen.is_terminal
        self._stage = ""
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[size]}"),
            console=screen,
            transient=True,
            disable=not self._on_terminal,
        )
        self._task = self._bar.add_task("", total=None, size="")
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def update(self, status: ModelStatus) -> None:
        """Show one more state."""
        total = status.total_bytes or None
        shown = f"{size(status.current_bytes)} of {size(total)}" if total else ""
        self._bar.update(
            self._task, description=status.stage, total=total, completed=status.current_bytes, size=shown
        )
        if not self._on_terminal and status.stage != self._stage:
            say(f"{status.stage} {shown}".rstrip(), stderr=True)
        self._stage = status.stage
