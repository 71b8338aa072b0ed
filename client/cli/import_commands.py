"""``interleaf memory import``: folders, vaults, files and graphs become Drafts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from client.cli.local import ask, chosen
from client.cli.options import InProject, Json
from client.cli.output import console, count, say, show
from shared_schema import limits
from shared_schema.daemon_contract import SubmitCall, Submitted
from shared_schema.memory import Scope
from shared_schema.transfer.documents import (
    Document,
    Outcome,
    Refused,
    ReportItem,
    counted,
    refusal_item,
    shown,
)
from shared_schema.transfer.reading import ReadOptions, prefix
from shared_schema.transfer.sources import Format, Source, Split, open_source
from shared_schema.transfer_contract import (
    ImportAnswer,
    ImportCall,
    ImportDocument,
    ImportedDocument,
    ImportReport,
    OpenedReview,
)

BATCH_BYTES: Final = 6 * limits.MIB
"""JSON of the documents of one call; a single one may be as large."""
SUBMIT_SECONDS: Final = 300.0
EXAMPLES: Final = (
    "interleaf memory import notes/ --dry-run",
    "interleaf memory import ~/Vault --into handbook/ --submit --title 'Our handbook'",
    "interleaf memory import AGENTS.md --split headings --into agents/",
    "interleaf memory import memory.jsonl --scope org",
)

SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="A folder, a file, or - for standard input.")
]
Into = Annotated[str, typer.Option("--into", metavar="PREFIX/", help="Put everything below this path.")]
SplitOption = Annotated[
    Split,
    typer.Option("--split", help="headings: one file becomes a document for each heading of level 1 and 2."),
]
FormatOption = Annotated[Format, typer.Option("--format", help="What the source is.")]
RenamePaths = Annotated[
    bool,
    typer.Option("--rename-paths", help="Change paths that are not allowed to ones that are, and say so."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the report and change nothing.")]


def import_memory(
    source: SourceArgument,
    into: Into = "",
    split: SplitOption = Split.NONE,
    kind: FormatOption = Format.AUTO,
    scope: Annotated[
        Scope, typer.Option("--scope", help="Whom it shall belong to: the Project, or the whole team.")
    ] = Scope.PROJECT,
    rename_paths: RenamePaths = False,
    dry_run: DryRun = False,
    submit: Annotated[
        bool, typer.Option("--submit", help="Put the Drafts into Reviews, at most 100 in each.")
    ] = False,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="What the Reviews are about.")
    ] = None,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Import documents as Drafts.

    A source is a folder with Markdown files, an Obsidian vault, one Markdown file, or the JSON lines of
    the reference memory server's knowledge graph. Texts stay byte for byte. What is there with the same
    text is left alone, other text becomes an update, and what cannot be a document is refused with the
    reason and holds nothing else up. Running it again continues where it was cut off.

    The status is 1 when something was refused, with --dry-run too.
    """
    if title is not None and not submit:
        raise typer.BadParameter("goes with --submit", param_hint="--title")
    if submit and dry_run:
        raise typer.BadParameter("goes without --dry-run", param_hint="--submit")
    place = chosen(project)
    options = ReadOptions(into=prefix(into), rename_paths=rename_paths)
    opened = open_source(source, options, sys.stdin.buffer, kind, split)
    run = _Import(place, scope, dry_run=dry_run)
    with _progress(opened, as_json) as read:
        for entry in read:
            run.take(entry)
        run.send()
    reviews = _submitted(run, title or f"Import of {opened.name}", as_json) if submit else []
    report = ImportReport(
        project_id=run.project_id or place,
        dry_run=dry_run,
        counts=counted(run.items),
        other_files=opened.others,
        items=run.items,
        reviews=reviews,
    )
    show(report, as_json, lambda: _print(report, submit=submit))
    if report.counts.refused:
        raise typer.Exit(1)


class _Import:
    """Sends documents to the daemon in batches and keeps the report."""

    def __init__(self, project: str, scope: Scope, *, dry_run: bool) -> None:
        self.project_id = ""
        self.items: list[ReportItem] = []
        self.submittable: dict[Scope, list[str]] = {}
        self._project = project
        self._scope = scope
        self._dry_run = dry_run
        self._batch: list[tuple[Document, ImportDocument]] = []
        self._bytes = 0

    def take(self, entry: Document | Refused) -> None:
        """Note a refusal, or send a document with others."""
        if isinstance(entry, Refused):
            self.items.append(refusal_item(entry))
            return
        document = ImportDocument(
            path=entry.path, body=entry.body, description=entry.description, resource_id=entry.resource_id
        )
        size = len(document.model_dump_json())
        if len(self._batch) == limits.IMPORT_DOCUMENTS or self._bytes + size > BATCH_BYTES:
            self.send()
        self._batch.append((entry, document))
        self._bytes += size

    def send(self) -> None:
        """Send what was not sent yet."""
        batch, self._batch, self._bytes = self._batch, [], 0
        if not batch:
            return
        call = ImportCall(
            project=self._project,
            scope=self._scope,
            documents=[document for _, document in batch],
            dry_run=self._dry_run,
        )
        answer = ask("import_drafts", call, ImportAnswer)
        self.project_id = answer.project_id
        for (entry, _), found in zip(batch, answer.documents, strict=True):
            self.items.append(_item(entry, found))
            if found.submittable and found.draft_id is not None and found.scope is not None:
                self.submittable.setdefault(found.scope, []).append(found.draft_id)


def _item(entry: Document, found: ImportedDocument) -> ReportItem:
    return ReportItem(
        source=shown(entry.source),
        outcome=found.outcome,
        path=found.path,
        code=found.code,
        reason=found.reason,
        note=entry.note,
        resource_id=found.resource_id,
        draft_id=found.draft_id,
    )


def _submitted(run: _Import, title: str, as_json: bool) -> list[OpenedReview]:
    """Open Reviews of all Drafts of the source that are open, in its order."""
    parts = [
        drafts[start : start + limits.REVIEW_DRAFTS]
        for drafts in run.submittable.values()
        for start in range(0, len(drafts), limits.REVIEW_DRAFTS)
    ]
    reviews: list[OpenedReview] = []
    with _counting("Submitting", len(parts), as_json) as advance:
        for number, drafts in enumerate(parts, 1):
            part = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            named = title[: limits.TITLE_CHARACTERS - len(part)] + part
            call = SubmitCall(drafts=drafts, project=run.project_id, title=named)
            answer = ask("submit_drafts", call, Submitted, timeout=SUBMIT_SECONDS)
            reviews.append(OpenedReview(review_id=answer.review_id, title=answer.title, draft_ids=drafts))
            advance()
    return reviews


@contextmanager
def _progress(source: Source, as_json: bool) -> Iterator[Iterator[Document | Refused]]:
    """Yield the entries, and show on a terminal how many there were."""

    def reading(advance: Callable[[], None]) -> Iterator[Document | Refused]:
        for entry in source.entries:
            yield entry
            advance()

    with _counting("Importing", source.total, as_json) as advance:
        yield reading(advance)


@contextmanager
def _counting(what: str, total: int | None, as_json: bool) -> Iterator[Callable[[], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=screen, transient=True, disable=as_json or not screen.is_terminal
    ) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


_TOLD: Final = {
    Outcome.IMPORTED: "new",
    Outcome.CHANGED: "changed",
    Outcome.UNCHANGED: "unchanged",
    Outcome.REFUSED: "refused",
    Outcome.SKIPPED: "skipped",
}


def _print(report: ImportReport, *, submit: bool) -> None:
    for item in report.items:
        if item.outcome in (Outcome.REFUSED, Outcome.SKIPPED):
            say(f"{_TOLD[item.outcome]:9}  {item.source}: {item.reason} [{item.code}]")
        elif item.note is not None or (report.dry_run and item.outcome is not Outcome.UNCHANGED):
            say(f"{_TOLD[item.outcome]:9}  {item.path}" + (f" ({item.note})" if item.note else ""))
    found = report.counts
    numbers = [
        f"{found.imported} new",
        f"{found.changed} changed",
        f"{found.unchanged} unchanged",
        f"{found.refused} refused",
        *([f"{found.skipped} skipped"] if found.skipped else []),
    ]
    done = "Would import" if report.dry_run else "Imported"
    say(f"{done}: {', '.join(numbers)}.")
    if report.other_files:
        say(f"{count(report.other_files, 'file')} that are no Markdown were left alone.")
    for review in report.reviews:
        say(f"Opened Review {review.review_id} of {count(len(review.draft_ids), 'Draft')}: {review.title}")
    if not report.dry_run and not submit and (found.imported or found.changed):
        say("Nothing is published before a Review. Run it again with --submit, or see: interleaf draft list")
