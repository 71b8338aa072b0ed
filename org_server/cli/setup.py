"""Commands for the server as a whole: init, run, migrate, check, openapi."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from org_server import logs, wiring
from org_server.cli.common import Data, DatabaseUrl, Json, opened, print_json, settings_from, url_of
from org_server.config import DATABASE_FILE
from org_server.http.openapi import document
from org_server.http.serving import serve
from org_server.services.check_database import check_database
from org_server.services.organization import found_organization
from org_server.store import schema
from shared_schema.errors import ErrorCode, InterleafError


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (init, run, migrate, check, openapi):
        app.command()(command)


def init(
    org: Annotated[str, typer.Option("--org", metavar="NAME", help="The Organization's name.")],
    owner: Annotated[str, typer.Option("--owner", metavar="EMAIL", help="Its first owner.")],
    data: Data = None,
    url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Make a database with an Organization and its owner, and print the owner's token once."""
    target = url_of(data, url)
    if data is not None:
        _make_private(data)
    units = wiring.build_units(target)
    try:
        schema.migrate(units.engine)
        founded = found_organization(units, org, owner)
    finally:
        units.engine.dispose()
    if as_json:
        print_json({"token": founded.token, "org_id": founded.org_id, "user_id": founded.user_id})
        return
    where = f"--data {data}" if data is not None else "(with the same INTERLEAF_DATABASE_URL)"
    typer.echo(f"Organization {org} is ready ({founded.org_id}).")
    typer.echo(f"Its owner is {owner} ({founded.user_id}).")
    typer.echo("\nThe owner's token, which is not shown again:\n")
    typer.echo(f"  {founded.token}\n")
    typer.echo(f"Start the server:  interleaf-server run {where}")
    typer.echo("Sign in:           interleaf login --server http://127.0.0.1:8787 --token-stdin")


def run(
    data: Data = None,
    url: DatabaseUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8787,
) -> None:
    """Serve the HTTP API until SIGTERM or SIGINT."""
    settings = settings_from(url)
    logs.configure(settings.log_level)
    with opened(data, url) as units:
        with units.read() as uow:
            _ = uow.org  # without an Organization there is nothing to serve
        app = wiring.build_app(units, settings)
        serve(app, host, port, settings.threads, lambda at: typer.echo(f"listening on {at}", err=True))


def migrate(data: Data = None, url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Bring the database's schema up to this release. Back it up before."""
    with opened(data, url, current=False) as units:
        before = schema.migrate(units.engine)
    if as_json:
        print_json({"from": before.current, "to": before.newest})
    elif before.current == before.newest:
        typer.echo(f"The schema is current ({before.newest}).")
    else:
        typer.echo(f"The schema went from {before.current or 'nothing'} to {before.newest}.")


def check(data: Data = None, url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Verify the schema, every hash chain, every text and the refs."""
    with opened(data, url) as units:
        report = check_database(units)
    if report.problems:
        raise InterleafError(
            ErrorCode.CHAIN_BROKEN,
            "\n".join(["The database is damaged. Restore a backup.", *report.problems[:20]]),
            details=report.model_dump(),
        )
    if as_json:
        print_json(report.model_dump())
        return
    typer.echo(
        f"Good: {report.authorities} histories, {report.commits} commits, {report.texts} texts verified."
    )


def openapi() -> None:
    """Print the API's OpenAPI 3.1 document."""
    typer.echo(json.dumps(document(wiring.ROUTES, wiring.server_version()), indent=2, sort_keys=True))


def _make_private(data: Path) -> None:
    """Make the directory (0700) and the database file (0600), or leave existing ones as they are."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        (data / DATABASE_FILE).touch(mode=0o600)
    except OSError as error:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"{data} cannot be used: {error.strerror}. Choose another directory with --data.",
        ) from None
