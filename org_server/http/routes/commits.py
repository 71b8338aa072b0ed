"""The history of the Organization and of Projects, for clients that follow it."""

from __future__ import annotations

from org_server.http.openapi import Call, RouteTable
from org_server.services.read_commits import CommitQuery, read_org_commits, read_project_commits
from shared_schema.org_contract import CommitPage

routes = RouteTable()


@routes.route(
    "GET",
    "/projects/<project_id>/commits",
    query=CommitQuery,
    answer=CommitPage,
    summary="A Project's commits since one, oldest first.",
)
def of_project(call: Call, project_id: str, query: CommitQuery) -> CommitPage:
    """Read a Project's history."""
    return read_project_commits(call.units, call.actor, project_id, query)


@routes.route(
    "GET",
    "/org/commits",
    query=CommitQuery,
    answer=CommitPage,
    summary="The Organization's commits since one, oldest first.",
)
def of_org(call: Call, query: CommitQuery) -> CommitPage:
    """Read the Organization's history."""
    return read_org_commits(call.units, call.actor, query)
