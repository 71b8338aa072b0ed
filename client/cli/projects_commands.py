"""``interleaf project``: Projects on the server, and directories bound to them on this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from client.cli.local import ask, binding, wake, where
from client.cli.options import Directory, Json, ProjectArgument
from client.cli.organization import find_project, server
from client.cli.output import count, facts, say, show, styled, table
from client.cli.taught import noun, verb
from shared_schema import org_contract as api
from shared_schema.daemon_contract import (
    BindCall,
    Binding,
    Bindings,
    Count,
    Empty,
    SyncCall,
    SyncResult,
    UnbindCall,
)
from shared_schema.errors import ErrorCode, InterleafError

app = noun("interleaf project create Rocket", "interleaf project bind Rocket")

FETCH_SECONDS = 30.0


@verb(app, "create", "interleaf project create Rocket")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for people, unique in the team.")],
    as_json: Json = False,
) -> None:
    """Create a Project on the server; you become its owner."""
    with server() as org:
        project = org.create_project(api.ProjectCreate(name=name))
    wake()

    def human() -> None:
        say(f"Created {project.name} ({project.project_id}).")
        say(f"Connect a directory with: interleaf project bind {shlex.quote(project.name)}")

    show(_as_json(project), as_json, human)


@verb(app, "list", "interleaf project list")
def list_projects(as_json: Json = False) -> None:
    """List the Projects that you may see on the server."""
    with server() as org:
        projects = list(org.projects())
    show(
        {"projects": [_as_json(project) for project in projects]},
        as_json,
        lambda: table(
            ["Project", "Name and role"],
            [
                [item.project_id, styled(item.name, "bold", item.role.value if item.role else "no member")]
                for item in projects
            ],
            empty="No Project yet. Create one with: interleaf project create NAME",
        ),
    )


@verb(app, "show", "interleaf project show Rocket")
def show_project(
    project: Annotated[
        str | None,
        typer.Argument(metavar="PROJECT", help="Project id or name; default: that of this directory."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show role, guide, policy and commit of a Project."""
    with server() as org:
        found = find_project(org, project)
    policy = found.policy
    rows = [
        ("Project", found.name),
        ("Id", found.project_id),
        ("Your role", found.role.value if found.role else "no member"),
        ("Guide", found.guide_path),
        ("Reviews need", count(policy.required_approvals, "approval")),
        ("Own approval", "counts" if policy.allow_self_approval else "does not count"),
        (
            "Commit",
            f"{found.ref.commit_id[:12]} (number {found.ref.seq})" if found.ref.commit_id else "none yet",
        ),
    ]
    show(_as_json(found), as_json, lambda: facts(rows))


@verb(app, "bind", "interleaf project bind Rocket", "interleaf project bind Rocket --directory ~/src/rocket")
def bind(project: ProjectArgument, directory: Directory = Path(), as_json: Json = False) -> None:
    """Let a directory, and all below it, use a Project.

    Agents that work there see this Project's memory and no other. An existing binding of the
    directory is replaced; running integrations must be reconnected then.
    """
    if not directory.is_dir():
        raise typer.BadParameter(f"{directory} is no directory", param_hint="--directory")
    call = BindCall(directory=where(directory).path, project=project)
    try:
        bound = ask("bind", call, Binding)
    except InterleafError as error:
        if error.code is not ErrorCode.NOT_FOUND:
            raise
        # A Project that is newer than the last round of sync is not known here yet.
        ask("sync_now", SyncCall(wait=True, timeout_seconds=FETCH_SECONDS), SyncResult)
        bound = ask("bind", call, Binding)

    def human() -> None:
        say(f"{bound.directory} now uses {bound.project_name or bound.project_id}.")
        say("Connect an agent with: interleaf mcp config")

    show(bound, as_json, human)


@verb(app, "unbind", "interleaf project unbind")
def unbind(directory: Directory = Path(), as_json: Json = False) -> None:
    """End a directory's binding; memory and Drafts of the Project stay."""
    place = where(directory).path
    answer = ask("unbind", UnbindCall(directory=place), Count)
    text = f"{place} is bound no more." if answer.count else f"{place} itself was not bound."
    show(answer, as_json, lambda: say(text))


@verb(app, "bindings", "interleaf project bindings")
def bindings(as_json: Json = False) -> None:
    """List which directories use which Project on this machine."""
    found = ask("list_bindings", Empty(), Bindings)
    show(
        found,
        as_json,
        lambda: table(
            ["Directory", "Project"],
            [[styled(item.directory), item.project_name or item.project_id] for item in found.bindings],
            empty="No directory is bound. Bind one with: interleaf project bind PROJECT",
        ),
    )


@verb(app, "current", "interleaf project current")
def current(as_json: Json = False) -> None:
    """Show which Project this directory uses, and by which binding."""
    found = binding()
    rows = [
        ("Project", found.project_name),
        ("Id", found.project_id),
        ("Directory", found.directory),
        ("Guide", found.guide_path),
    ]
    show(found, as_json, lambda: facts(rows))


def _as_json(project: api.Project) -> dict[str, object]:
    return {"id": project.project_id, **project.model_dump(mode="json")}
