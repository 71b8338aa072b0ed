"""``interleaf memory export``: a Project's documents as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from client.cli.local import ask, chosen
from client.cli.options import InProject, Json
from client.cli.output import busy, count, say, show
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.transfer.folder import FolderWriter
from shared_schema.transfer.manifest import Manifest
from shared_schema.transfer_contract import ExportCall, ExportedMemory, ExportReport

ATTEMPTS: Final = 5
"""How often an export begins anew because the Project changed meanwhile."""
EXAMPLES: Final = (
    "interleaf memory export handbook/",
    "interleaf memory export handbook/ --force",
    "interleaf memory export mine/ --drafts --project Rocket",
)


def export_memory(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    drafts: Annotated[
        bool, typer.Option("--drafts", help="With your own Drafts, as your agents see it.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Write into a folder with files; what an earlier export left there goes."
        ),
    ] = False,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Export what a Project shows as Markdown files.

    What is published: the Project's own documents and the Organization documents it uses. Every text
    lies at its path, byte for byte, and a hidden list beside them holds ids and descriptions, so that
    importing the folder again finds everything unchanged. Your umask decides about the group; others
    may read nothing.

    The status is 1 when a document could not be written.
    """
    place = chosen(project)
    with busy("Exporting …", as_json=as_json):
        report = _exported(place, folder, drafts=drafts, force=force)

    def human() -> None:
        for item in report.left_out:
            say(f"left out   {item.path}: {item.reason} [{item.code}]")
        say(f"Exported {count(report.documents, 'document')} to {folder}")

    show(report, as_json, human)
    if report.left_out:
        raise typer.Exit(1)


def _exported(project: str, folder: Path, *, drafts: bool, force: bool) -> ExportReport:
    for attempt in range(1, ATTEMPTS + 1):
        writer = FolderWriter(folder, force=force or attempt > 1)
        try:
            last = _write(writer, project, drafts=drafts)
        except InterleafError as error:
            if error.code is not ErrorCode.VERSION_CONFLICT or attempt == ATTEMPTS:
                raise
            writer.clear()
            continue
        break
    manifest = Manifest(project_id=last.project_id, name=last.name, commit_id=last.commit_id, resources=[])
    writer.finish(manifest)
    return ExportReport(
        folder=str(folder),
        project_id=last.project_id,
        commit_id=last.commit_id,
        documents=writer.count,
        left_out=writer.left_out,
    )


def _write(writer: FolderWriter, project: str, *, drafts: bool) -> ExportedMemory:
    """Write every page of one state and return the last one; ``version_conflict`` when it changes."""
    after, state = "", None
    while True:
        call = ExportCall(project=project, drafts=drafts, after=after, state=state)
        page = ask("export_memory", call, ExportedMemory)
        for document in page.documents:
            writer.write(document.resource, document.body)
        if page.complete:
            return page
        after, state = page.documents[-1].resource.resource_id, page.state
