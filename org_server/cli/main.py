"""The entry point of ``interleaf-server``."""

from __future__ import annotations

import os
import sys

import typer

from org_server.cli import imports, setup, tokens, users
from org_server.cli.common import print_json
from shared_schema.errors import ErrorCode, InterleafError

app = typer.Typer(
    name="interleaf-server",
    help="The Organization server of Interleaf: it keeps a team's published memory, Drafts and Reviews.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
setup.add_to(app)
imports.add_to(app)
app.add_typer(users.app, name="user")
app.add_typer(tokens.app, name="token")


def run() -> None:
    """Run the command line; an expected failure exits 1, a wrong use 2."""
    # Databases and what belongs to them are for their owner alone.
    os.umask(0o077)
    try:
        app()
    except InterleafError as error:
        _report(error, as_json="--json" in sys.argv[1:])
        sys.exit(1)


def _report(error: InterleafError, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": error.as_wire()})
        return
    typer.echo(f"error: {error.message}", err=True)
    typer.echo(f"code: {error.code.value}", err=True)
    # The general advice of a code that covers everything would only repeat the message.
    if error.code is not ErrorCode.INVALID_ARGUMENTS and error.remedy not in error.message:
        typer.echo(f"next: {error.remedy}", err=True)
