"""What all commands share: the database, output, and errors as people and programs read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel, SecretStr, ValidationError
from rich.console import Console
from rich.table import Table

from org_server import wiring
from org_server.config import DATABASE_FILE, Settings, database_url
from org_server.services.validation import invalid
from org_server.store.schema import require_current
from org_server.store.unit_of_work import UnitOfWorkFactory
from shared_schema.errors import ErrorCode, InterleafError

_M = TypeVar("_M", bound=BaseModel)

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="The server's directory; its SQLite file lies there."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        envvar="INTERLEAF_DATABASE_URL",
        show_envvar=True,
        help="PostgreSQL instead, e.g. postgresql://interleaf@db/interleaf.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]


def settings_from(url: str | None) -> Settings:
    """Return the settings, with the URL of the command line before all else."""
    try:
        return Settings() if url is None else Settings(database_url=SecretStr(url))
    except ValidationError as error:
        raise invalid(error) from None


def url_of(data: Path | None, url: str | None) -> str:
    """Return the database to use; ``--data`` and a URL together are refused."""
    settings = settings_from(url)
    if data is not None and settings.database_url.get_secret_value():
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "Both --data and a database URL are given. Give one (INTERLEAF_DATABASE_URL counts).",
        )
    return database_url(settings, data)


@contextmanager
def opened(data: Path | None, url: str | None, *, current: bool = True) -> Iterator[UnitOfWorkFactory]:
    """Open an existing database; with ``current``, only at this release's schema."""
    target = url_of(data, url)
    if data is not None and not (data / DATABASE_FILE).is_file():
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"There is no server in {data}. "
            f"Run: interleaf-server init --data {data} --org NAME --owner EMAIL",
        )
    units = wiring.build_units(target)
    try:
        if current:
            require_current(units.engine)
        yield units
    finally:
        units.engine.dispose()


def build(model: type[_M], values: Mapping[str, Any]) -> _M:
    """Return a contract model of what was typed; ``invalid_arguments`` names what is wrong."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise invalid(error) from None


def print_json(value: Any) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(value, ensure_ascii=False))


def print_table(columns: Iterable[str], rows: Iterable[Iterable[str]], empty: str) -> None:
    """Print rows under their headings, as wide as they are; ``empty`` where there are none."""
    listed = [tuple(row) for row in rows]
    if not listed:
        typer.echo(empty)
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ignore")
    for row in listed:
        table.add_row(*row)
    # Ids are copied from here, so nothing is cut to the terminal's width.
    unbounded = Console(markup=False, highlight=False, width=10_000)
    width = unbounded.measure(table).maximum
    Console(markup=False, highlight=False, width=width).print(table)


def when(milliseconds: int | None) -> str:
    """Return a time for people, in UTC; a dash for none."""
    if milliseconds is None:
        return "-"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")
