"""Commands whose ``--help`` teaches: what it does, arguments, options, and an example to copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

_Function = TypeVar("_Function", bound=Callable[..., Any])


def example(*lines: str, more: str = "") -> str:
    """Return an epilog that shows ``lines`` as they are typed, and ``more`` as text below."""
    title = "Example:" if len(lines) == 1 else "Examples:"
    # The backspace character keeps a paragraph's lines as they are.
    shown = "\n".join(["\b", title, *(f"  {line}" for line in lines)])
    return f"{shown}\n\n{more}" if more else shown


def _format_options(command: Any, context: Any, formatter: Any) -> None:
    """Write arguments by their names alone; the types that stand there otherwise are Python's."""
    arguments, options = [], []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append((parameter.display_name_raw, parameter.help or ""))
        else:
            options.append(record)
    for title, records in (("Arguments", arguments), ("Options", options)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def _usage(command: Any, context: Any) -> list[str]:
    pieces = [command.options_metavar] if command.options_metavar else []
    for parameter in command.get_params(context):
        if parameter.param_type_name == "argument":
            name = parameter.display_name_raw + ("..." if parameter.nargs != 1 else "")
            pieces.append(name if parameter.required else f"[{name}]")
    return pieces


class TaughtCommand(TyperCommand):
    """One command."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        _format_options(self, ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line's parts: ``NAME``, ``[NAME]`` where optional, ``NAME...`` for many."""
        return _usage(self, ctx)


class TaughtGroup(TyperGroup):
    """A noun and its verbs: the verbs first, they are what a reader looks for."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write commands, then options."""
        self.format_commands(ctx, formatter)
        _format_options(self, ctx, formatter)


def noun(*examples: str) -> typer.Typer:
    """Return an empty group; without a verb it shows its help."""
    return typer.Typer(
        cls=TaughtGroup,
        no_args_is_help=True,
        epilog=example(*examples) if examples else None,
        rich_markup_mode=None,
    )


def verb(
    app: typer.Typer, name: str, *examples: str, more: str = "", hidden: bool = False
) -> Callable[[_Function], _Function]:
    """Register a function as a command; its docstring is the help, ``examples`` stand below."""

    def register(function: _Function) -> _Function:
        app.command(name, cls=TaughtCommand, epilog=example(*examples, more=more), hidden=hidden)(function)
        return function

    return register
