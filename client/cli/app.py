"""All commands in one tree, each module imported only when one of its commands is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer

from client.cli.failures import failed, usage_failed
from client.cli.taught import TaughtGroup, example
from shared_schema.release import RELEASE


class Part(NamedTuple):
    """A module of commands: one noun with verbs, or some commands of their own."""

    module: str
    names: dict[str, str]
    """Names on the first level, with what they are for."""
    noun: bool = True


PARTS: Final = (
    Part("daemon", {"daemon": "Start, stop and look at this machine's daemon."}),
    Part(
        "account",
        {"login": "Sign in to an Organization server.", "logout": "Forget the token; keep all Drafts."},
        noun=False,
    ),
    Part("projects", {"project": "Projects, and which directory belongs to which."}),
    Part("members", {"members": "Who belongs to a Project, and as what."}),
    Part("guidelines", {"guidelines": "The document that tells agents how to keep memory."}),
    Part("memory", {"memory": "Read, import and export what agents see in a Project."}),
    Part("selection", {"selection": "Which Organization documents a Project uses."}),
    Part("drafts", {"draft": "Changes that are not published yet."}),
    Part("reviews", {"review": "Look at, decide and publish what was submitted."}),
    Part("sync", {"sync": "Send and fetch changes now."}, noun=False),
    Part("outbox", {"outbox": "Operations on their way to the server."}),
    Part("models", {"models": "The search models of this machine."}),
    Part("search", {"search": "The search index of a Project."}),
    Part("runs", {"runs": "What agents asked for, and what they got."}),
    Part("explain", {"explain": "Why a document is in an answer, or not."}, noun=False),
    Part("eval", {"eval": "How good the ranking is, measured."}),
    Part("mcp", {"mcp": "Connect a coding agent."}),
    Part("about", {"version": "Print the version."}, noun=False),
)

EPILOG: Final = example(
    "interleaf daemon start",
    "interleaf login --server https://memory.example.com --token-stdin",
    "interleaf project bind Rocket",
    "interleaf draft list",
    more="Every command has --help, and --json for scripts.",
)


def build_app(wanted: str | None = None, *, complete: bool = False) -> typer.Typer:
    """Return the tree: whole, or with only the module of the command ``wanted`` filled in."""
    app = typer.Typer(
        name="interleaf",
        cls=TaughtGroup,
        help="The team's memory for coding agents: read, propose, review, publish.",
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    )
    app.callback()(_root)
    for part in PARTS:
        if complete or wanted in part.names:
            module: Any = import_module(f"client.cli.{part.module}_commands")
            if part.noun:
                name, text = next(iter(part.names.items()))
                app.add_typer(module.app, name=name, help=text)
            else:
                app.add_typer(module.app)
        else:
            for name, text in part.names.items():
                app.add_typer(typer.Typer(), name=name, help=text)
    return app


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    del version  # its callback has done the work


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"interleaf {RELEASE}")
        raise typer.Exit


def execute(arguments: Sequence[str]) -> int:
    """Run the command in ``arguments`` and return the exit status; no exception gets through."""
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    app = build_app(wanted)
    return guarded(
        lambda: app(list(arguments), prog_name="interleaf", standalone_mode=False), "--json" in arguments
    )


def guarded(command: Callable[[], Any], as_json: bool) -> int:
    """Call ``command`` and turn whatever it raises into words and an exit status."""
    _write_utf8()
    try:
        status = command()
    except typer.TyperException as error:
        return usage_failed(error, as_json)
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except BrokenPipeError:
        return 1
    except Exception as error:  # noqa: BLE001 - a person gets a sentence, the log gets the rest
        return failed(error, as_json)
    return status if isinstance(status, int) and not isinstance(status, bool) else 0


def _write_utf8() -> None:
    # Memory is UTF-8 whatever the locale says; what a terminal cannot show must not end a command.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
