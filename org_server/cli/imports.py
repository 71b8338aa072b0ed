"""``interleaf-server import``: a folder or file becomes published memory of a Project."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Final

import typer

from org_server.cli.common import Data, DatabaseUrl, Json, opened, print_json
from org_server.services.import_documents import check_target, import_documents
from shared_schema.transfer.documents import Outcome, ReportItem, counted
from shared_schema.transfer.reading import ReadOptions, prefix
from shared_schema.transfer.sources import Format, Source, Split, open_source

_SECOND: Final = 1.0


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_memory)


def import_memory(
    source: Annotated[
        str, typer.Argument(metavar="DIR|FILE|-", help="A folder, a file, or - for standard input.")
    ],
    project: Annotated[str, typer.Option(metavar="NAME", help="The Project that gets the documents.")],
    user: Annotated[
        str, typer.Option(metavar="USER", help="The Org owner or admin in whose name it is published.")
    ],
    into: Annotated[str, typer.Option(metavar="PATH", help="Put all documents below this path.")] = "",
    kind: Annotated[Format, typer.Option("--format", help="What the source is.")] = Format.AUTO,
    split: Annotated[Split, typer.Option(help="One document for each heading of one file.")] = Split.NONE,
    rename_paths: Annotated[
        bool, typer.Option("--rename-paths", help="Give unfit paths the nearest fit one.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report only; change nothing.")] = False,
    data: Data = None,
    url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Publish the Markdown documents of a folder or file in a Project, without a Review.

    Bodies are kept byte for byte. What cannot be a document is refused, with the reason, and holds
    nothing else up; then the exit code is 1. The same import again changes nothing.
    """
    options = ReadOptions(into=prefix(into), rename_paths=rename_paths)
    with opened(data, url) as units:
        check_target(units, project, user)
        opened_source = open_source(source, options, sys.stdin.buffer, kind, split)
        found = import_documents(units, project, user, opened_source.entries, dry_run=dry_run)
        items: list[ReportItem] = []
        told = time.monotonic()
        for item in found:
            items.append(item)
            if not as_json and time.monotonic() - told >= _SECOND:
                told = time.monotonic()
                of = "" if opened_source.total is None else f" of {opened_source.total}"
                typer.echo(f"{len(items)}{of} entries ...", err=True)
    _report(opened_source, items, dry_run=dry_run, as_json=as_json)
    if any(item.outcome is Outcome.REFUSED for item in items):
        raise typer.Exit(1)


def _report(source: Source, items: list[ReportItem], *, dry_run: bool, as_json: bool) -> None:
    counts = counted(items)
    if as_json:
        print_json(
            {
                "source": source.name,
                "dry_run": dry_run,
                "counts": counts.model_dump(mode="json"),
                "others": source.others,
                "items": [item.model_dump(mode="json") for item in items],
            }
        )
        return
    for item in items:
        if item.outcome in {Outcome.REFUSED, Outcome.SKIPPED}:
            typer.echo(f"{item.outcome.value} {item.source}: {item.reason} ({item.code})")
        elif item.note is not None:
            typer.echo(f"{item.outcome.value} {item.path}: {item.note}")
    parts = ", ".join(f"{count} {name}" for name, count in counts.model_dump().items())
    typer.echo(f"{'Would be: ' if dry_run else ''}{parts}.")
    if source.others:
        typer.echo(f"{source.others} files are no Markdown and were left alone.")
