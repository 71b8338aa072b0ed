"""``interleaf memory``: what agents see in a Project on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from client.cli import export_commands, history_commands, import_commands
from client.cli.local import ask, chosen
from client.cli.options import InProject, Json
from client.cli.output import count, facts, say, show, styled, table
from client.cli.taught import noun, verb
from shared_schema.daemon_contract import MemoryCall, MemoryItem, MemoryList, ProjectCall
from shared_schema.tool_contract import LoadedResource

app = noun("interleaf memory list", "interleaf memory show guides/code-review.md")

ResourceArgument = Annotated[str, typer.Argument(metavar="RESOURCE", help="Resource id or exact path.")]


@verb(app, "list", "interleaf memory list", "interleaf memory list --project Rocket --json")
def list_memory(project: InProject = None, as_json: Json = False) -> None:
    """List all documents of a Project.

    Your own Drafts are laid over what is published, as your agents see it.
    """
    found = ask("list_memory", ProjectCall(project=chosen(project)), MemoryList)

    def human() -> None:
        table(
            ["Resource", "Path, title and origin"],
            [[item.resource_id, styled(item.path, "bold", _origin(item))] for item in found.resources],
            empty="The Project has no documents yet. Write one with: interleaf draft create",
        )
        if found.resources:
            say(f"\n{count(len(found.resources), 'document')}.")

    show(found, as_json, human)


@verb(
    app, "show", "interleaf memory show guides/code-review.md", "interleaf memory show README.md --raw > r.md"
)
def show_memory(
    resource: ResourceArgument,
    raw: Annotated[bool, typer.Option("--raw", help="Print the text alone, byte for byte.")] = False,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Show one complete document as agents see it."""
    found = read_memory(chosen(project), resource)
    if raw and not as_json:
        sys.stdout.flush()
        sys.stdout.buffer.write((found.content or "").encode())
        return
    show(found, as_json, lambda: _print(found))


verb(app, "history", *history_commands.HISTORY_EXAMPLES)(history_commands.history)
verb(app, "blame", *history_commands.BLAME_EXAMPLES)(history_commands.blame)
verb(app, "import", *import_commands.EXAMPLES)(import_commands.import_memory)
verb(app, "export", *export_commands.EXAMPLES)(export_commands.export_memory)


def read_memory(project: str, resource: str) -> LoadedResource:
    """Return one resource with its text; raises ``memory_resource_not_found``."""
    return ask("show_memory", MemoryCall(project=project, resource=resource), LoadedResource)


def _origin(item: MemoryItem) -> str:
    origin = "Organization" if item.scope == "org" else "Project"
    if item.org_source is not None and item.scope == "project":
        origin = "adaptation"
    return "; ".join(filter(None, [item.title, origin, "own Draft" if item.draft_id else ""]))


def _print(found: LoadedResource) -> None:
    draft = found.draft
    source = found.org_source
    adapts = (
        f"{source.resource_id} at {source.commit_id[:12]}" if source and found.scope == "project" else None
    )
    state = f"{draft.draft_id} ({draft.freshness.value}, {draft.reconciliation.value})" if draft else None
    facts(
        [
            ("Path", found.path),
            ("Id", found.resource_id),
            ("Scope", found.scope.value),
            ("Description", found.description or None),
            ("Adapts", adapts),
            ("Draft", state),
        ]
    )
    say()
    # Line ends are no content to look at here; a diff shows when they differ.
    say((found.content or "").replace("\r\n", "\n").removesuffix("\n"))
