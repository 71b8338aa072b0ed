"""``interleaf members``: who belongs to a Project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from client.cli.local import wake
from client.cli.options import Json, ProjectArgument
from client.cli.organization import find_project, server
from client.cli.output import say, show, table
from client.cli.taught import noun, verb
from shared_schema import org_contract as api
from shared_schema.errors import ErrorCode, InterleafError

if TYPE_CHECKING:
    from client.sync.org_client import OrgClient

app = noun("interleaf members add Rocket maya@example.com", "interleaf members list Rocket")

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The member's e-mail address.")]
_ROLES = "owner and admin decide about Reviews, members and the selection; member proposes"


@verb(app, "add", "interleaf members add Rocket maya@example.com --role admin")
def add(
    project: ProjectArgument,
    email: Email,
    role: Annotated[api.Role, typer.Option("--role", help=f"{_ROLES}.")] = api.Role.MEMBER,
    as_json: Json = False,
) -> None:
    """Add a user of the Organization to a Project."""
    with server() as org:
        found = find_project(org, project)
        member = org.add_member(found.project_id, api.MemberAdd(email=email, role=role))
    wake()
    text = f"{member.email} is {member.role.value} of {found.name} now."
    show(member, as_json, lambda: say(text))


@verb(app, "list", "interleaf members list Rocket")
def list_members(
    project: Annotated[
        str | None,
        typer.Argument(metavar="PROJECT", help="Project id or name; default: that of this directory."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the members of a Project with their roles."""
    with server() as org:
        members = list(org.members(find_project(org, project).project_id))
    show(
        {"members": [member.model_dump(mode="json") for member in members]},
        as_json,
        lambda: table(
            ["E-mail", "Role", "Name"],
            [[member.email, member.role.value, member.name] for member in members],
            empty="The Project has no members.",
        ),
    )


@verb(app, "role", "interleaf members role Rocket maya@example.com admin")
def change_role(
    project: ProjectArgument,
    email: Email,
    role: Annotated[api.Role, typer.Argument(metavar="ROLE", help="owner, admin or member.")],
    as_json: Json = False,
) -> None:
    """Give a member another role: owner, admin or member."""
    with server() as org:
        found = find_project(org, project)
        member = _member(org, found, email)
        changed = org.change_member(found.project_id, member.user_id, api.MemberChange(role=role))
    wake()
    show(changed, as_json, lambda: say(f"{changed.email} is {changed.role.value} of {found.name} now."))


@verb(app, "remove", "interleaf members remove Rocket maya@example.com")
def remove(project: ProjectArgument, email: Email, as_json: Json = False) -> None:
    """Remove a member from a Project.

    Their machines forget its memory at the next sync; their own Drafts stay there.
    """
    with server() as org:
        found = find_project(org, project)
        member = _member(org, found, email)
        org.remove_member(found.project_id, member.user_id)
    wake()
    answer = {"removed": member.user_id, "email": member.email, "project_id": found.project_id}
    show(answer, as_json, lambda: say(f"{member.email} is no member of {found.name} any more."))


def _member(org: OrgClient, project: api.Project, email: str) -> api.Member:
    wanted = email.casefold()
    for member in org.members(project.project_id):
        if wanted in (member.email.casefold(), member.user_id):
            return member
    raise InterleafError(
        ErrorCode.NOT_FOUND,
        f"{email} is no member of {project.name}. See: interleaf members list",
        details={"email": email, "project_id": project.project_id},
    )
