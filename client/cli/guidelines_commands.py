"""``interleaf guidelines``: the document that tells agents how a Project keeps its memory."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Annotated

import typer

from client.cli.drafts_commands import create_draft
from client.cli.local import wake
from client.cli.options import InProject, Json
from client.cli.organization import find_project, server
from client.cli.output import say, show
from client.cli.selection_commands import select
from client.cli.taught import noun, verb
from shared_schema import org_contract as api
from shared_schema.memory import Scope

if TYPE_CHECKING:
    from client.sync.org_client import OrgClient

app = noun("interleaf guidelines set-up", "interleaf guidelines path")

_DESCRIPTION = "How this Project's memory is organised, written and maintained"


@verb(app, "set-up", "interleaf guidelines set-up")
def set_up(project: InProject = None, as_json: Json = False) -> None:
    """Write a template as a Draft at the guide path.

    Edit it, then submit it for review. Agents load the guide before they change memory; without
    one they tell their user that it is missing.
    """
    with server() as org:
        found = find_project(org, project)
    changed = create_draft(found.project_id, Scope.PROJECT, found.guide_path, template(), _DESCRIPTION)

    def human() -> None:
        say(f"Draft {changed.draft_id}: {changed.path}")
        say(f"Make it yours with: interleaf draft edit {changed.path}")
        say(f"Then submit it with: interleaf draft submit {changed.draft_id}")

    show(changed, as_json, human)


@verb(app, "use", "interleaf guidelines use guides/memory.md")
def use(
    resource: Annotated[
        str, typer.Argument(metavar="RESOURCE", help="Organization resource id or exact path.")
    ],
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Use an Organization document as the guide.

    It is selected for the Project, and the guide path is set to its path.
    """
    with server() as org:
        found = find_project(org, project)
        selected = select(org, found, resource)
        changed = _set_path(org, found, selected.path)
    wake()
    answer = {**_answer(changed), "resource_id": selected.resource_id}
    show(answer, as_json, lambda: say(f"The guide of {changed.name} is {changed.guide_path} now."))


@verb(app, "path", "interleaf guidelines path", "interleaf guidelines path handbook/memory.md")
def path(
    new: Annotated[
        str | None, typer.Argument(metavar="NEW", help="Another path; without it the present one is shown.")
    ] = None,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Show or change where the Project's guide lies. The document itself does not move."""
    with server() as org:
        found = find_project(org, project)
        if new is not None:
            found = _set_path(org, found, new)
    if new is None:
        show(_answer(found), as_json, lambda: say(found.guide_path))
        return
    wake()
    show(_answer(found), as_json, lambda: say(f"The guide of {found.name} is {found.guide_path} now."))


def template() -> str:
    """Return the bundled guide."""
    return files("client.cli").joinpath("templates", "guidelines.md").read_text(encoding="utf-8")


def _set_path(org: OrgClient, project: api.Project, path: str) -> api.Project:
    if project.guide_path == path:
        return project
    return org.change_project(project.project_id, api.ProjectChange(guide_path=path), project.version)


def _answer(project: api.Project) -> dict[str, object]:
    return {"project_id": project.project_id, "guide_path": project.guide_path}
