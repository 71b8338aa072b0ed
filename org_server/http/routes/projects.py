"""Projects."""

from __future__ import annotations

from pydantic import Field

from org_server.http.openapi import Answer, Call, RouteTable
from org_server.services import projects
from org_server.services.pages import PageQuery
from shared_schema import limits
from shared_schema.org_contract import Project, ProjectChange, ProjectCreate, ProjectPage

routes = RouteTable()


class ProjectQuery(PageQuery):
    """The query of GET /projects."""

    name: str | None = Field(default=None, min_length=1, max_length=limits.NAME_CHARACTERS)


@routes.route(
    "GET", "/projects", query=ProjectQuery, answer=ProjectPage, summary="The caller's Projects, by name."
)
def find(call: Call, query: ProjectQuery) -> ProjectPage:
    """Answer a page of Projects."""
    return projects.list_projects(call.units, call.actor, query, query.name)


@routes.route(
    "POST",
    "/projects",
    request=ProjectCreate,
    answer=Project,
    status=201,
    summary="Create a Project; the caller becomes its owner.",
)
def create(call: Call, body: ProjectCreate) -> Answer:
    """Answer the new Project."""
    return _tagged(projects.create_project(call.units, call.actor, body))


@routes.route("GET", "/projects/<project_id>", answer=Project, tagged=True, summary="One Project.")
def read(call: Call, project_id: str) -> Answer:
    """Answer the Project."""
    return _tagged(projects.read_project(call.units, call.actor, project_id))


@routes.route(
    "PATCH",
    "/projects/<project_id>",
    request=ProjectChange,
    answer=Project,
    tagged=True,
    precondition="version",
    summary="Change a Project's name, guide path or policy.",
)
def change(call: Call, project_id: str, body: ProjectChange) -> Answer:
    """Answer the changed Project."""
    return _tagged(projects.update_project(call.units, call.actor, project_id, body, call.if_match_version()))


@routes.route("DELETE", "/projects/<project_id>", precondition="version", summary="Delete a Project.")
def remove(call: Call, project_id: str) -> None:
    """Answer nothing."""
    projects.delete_project(call.units, call.actor, project_id, call.if_match_version())


def _tagged(project: Project) -> Answer:
    return Answer(project, version=project.version)
