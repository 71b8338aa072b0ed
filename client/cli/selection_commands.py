"""``interleaf selection``: which Organization documents a Project uses; nothing is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from client.cli.local import wake
from client.cli.options import InProject, Json
from client.cli.organization import find_project, server
from client.cli.output import count, say, show, styled, table
from client.cli.taught import noun, verb
from shared_schema import org_contract as api
from shared_schema.errors import ErrorCode, InterleafError

if TYPE_CHECKING:
    from client.sync.org_client import OrgClient

app = noun("interleaf selection list --available", "interleaf selection add guides/code-review.md")

Resources = Annotated[
    list[str], typer.Argument(metavar="RESOURCE", help="Organization resource ids or exact paths.")
]
_MOVED = (ErrorCode.PRECONDITION_FAILED, ErrorCode.VERSION_CONFLICT)


@verb(app, "list", "interleaf selection list", "interleaf selection list --available")
def list_selection(
    project: InProject = None,
    available: Annotated[
        bool, typer.Option("--available", help="Everything the Organization has, with what is selected.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the Organization documents that a Project uses."""
    with server() as org:
        found = find_project(org, project)
        if available:
            resources = list(org.org_memories(found.project_id))
            answer: dict[str, object] = {}
        else:
            selections = org.selections(found.project_id)
            resources, answer = selections.resources, {"revision": selections.revision}
    show(
        {**answer, "resources": [item.model_dump(mode="json") for item in resources]},
        as_json,
        lambda: _print(resources, available),
    )


@verb(app, "add", "interleaf selection add guides/code-review.md guides/naming.md")
def add(resources: Resources, project: InProject = None, as_json: Json = False) -> None:
    """Let a Project use Organization documents.

    Its agents see them after the next sync.
    """
    with server() as org:
        found = find_project(org, project)
        ids = _ids(resources, list(org.org_memories()))
        selections = _change(org, found, lambda now: [*now, *(item for item in ids if item not in now)])
    _done(found, selections, as_json)


@verb(app, "remove", "interleaf selection remove guides/naming.md")
def remove(resources: Resources, project: InProject = None, as_json: Json = False) -> None:
    """Stop using Organization documents in a Project.

    The Organization keeps them.
    """
    with server() as org:
        found = find_project(org, project)
        ids = _ids(resources, org.selections(found.project_id).resources)
        selections = _change(org, found, lambda now: [item for item in now if item not in ids])
    _done(found, selections, as_json)


def select(org: OrgClient, project: api.Project, resource: str) -> api.ResourceSummary:
    """Make sure that a Project uses one Organization document, and return it."""
    known = list(org.org_memories())
    (wanted,) = _ids([resource], known)
    _change(org, project, lambda now: now if wanted in now else [*now, wanted])
    return next(item for item in known if item.resource_id == wanted)


def _ids(wanted: list[str], known: list[api.ResourceSummary]) -> list[str]:
    """Return ids for ids and exact paths; raises ``memory_resource_not_found`` with all missing ones."""
    by_name = {item.path: item.resource_id for item in known}
    by_name |= {item.resource_id: item.resource_id for item in known}
    if missing := [name for name in wanted if name not in by_name]:
        raise InterleafError(
            ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
            "These Organization documents are not there. See: interleaf selection list --available",
            details={"missing": missing},
        )
    return list(dict.fromkeys(by_name[name] for name in wanted))


def _change(org: OrgClient, project: api.Project, change: Callable[[list[str]], list[str]]) -> api.Selections:
    """Write the set that ``change`` makes of the present one.

    Adding and removing mean the same on any set, so a set that moved in between is read once more.
    """
    for last in (False, True):
        selections = org.selections(project.project_id)
        now = [item.resource_id for item in selections.resources]
        wanted = change(now)
        if wanted == now:
            return selections
        try:
            body = api.SelectionsPut(resource_ids=wanted)
            return org.put_selections(project.project_id, body, selections.revision)
        except InterleafError as error:
            if last or error.code not in _MOVED:
                raise
    raise AssertionError("the last try returns or raises")


def _done(project: api.Project, selections: api.Selections, as_json: bool) -> None:
    wake()
    text = f"{project.name} uses {count(len(selections.resources), 'Organization document')} now."
    show(selections, as_json, lambda: say(text))


def _print(resources: list[api.ResourceSummary], available: bool) -> None:
    def state(item: api.ResourceSummary) -> str:
        if not available:
            return item.title
        return f"{'selected' if item.selected else 'not selected'}; {item.title}"

    table(
        ["Resource", "Path and title"],
        [[item.resource_id, styled(item.path, "bold", state(item))] for item in resources],
        empty="The Organization has no documents yet."
        if available
        else "The Project uses no Organization documents. See: interleaf selection list --available",
    )
