"""Histories and blame, for people."""

from __future__ import annotations

from org_server.http.openapi import Call, RouteTable
from org_server.services import blame_memory, read_history
from org_server.services.blame_memory import BlameQuery
from org_server.services.pages import PageQuery
from shared_schema.org_contract import Blame, CommitLog, HistoryPage

routes = RouteTable()


@routes.route(
    "GET",
    "/projects/<project_id>/history",
    query=PageQuery,
    answer=CommitLog,
    summary="A Project's commits to read, newest first.",
)
def log_of_project(call: Call, project_id: str, query: PageQuery) -> CommitLog:
    """Answer a page of commits."""
    return read_history.read_project_log(call.units, call.actor, project_id, query)


@routes.route(
    "GET",
    "/org/history",
    query=PageQuery,
    answer=CommitLog,
    summary="The Organization's commits to read, newest first.",
)
def log_of_org(call: Call, query: PageQuery) -> CommitLog:
    """Answer a page of commits."""
    return read_history.read_org_log(call.units, call.actor, query)


@routes.route(
    "GET",
    "/projects/<project_id>/memories/<resource_id>/history",
    query=PageQuery,
    answer=HistoryPage,
    summary="What happened to one resource of a Project's view, newest first.",
)
def in_project(call: Call, project_id: str, resource_id: str, query: PageQuery) -> HistoryPage:
    """Answer a page of changes."""
    return read_history.read_project_history(call.units, call.actor, project_id, resource_id, query)


@routes.route(
    "GET",
    "/org/memories/<resource_id>/history",
    query=PageQuery,
    answer=HistoryPage,
    summary="What happened to one Org resource, newest first.",
)
def in_org(call: Call, resource_id: str, query: PageQuery) -> HistoryPage:
    """Answer a page of changes."""
    return read_history.read_org_history(call.units, call.actor, resource_id, query)


@routes.route(
    "GET",
    "/projects/<project_id>/memories/<resource_id>/blame",
    query=BlameQuery,
    answer=Blame,
    tagged=True,
    summary="A resource of a Project's view with the commit that last changed each line.",
)
def blame_in_project(call: Call, project_id: str, resource_id: str, query: BlameQuery) -> Blame:
    """Answer the content and its ranges."""
    return blame_memory.blame_in_project(call.units, call.actor, project_id, resource_id, query)


@routes.route(
    "GET",
    "/org/memories/<resource_id>/blame",
    query=BlameQuery,
    answer=Blame,
    tagged=True,
    summary="An Org resource with the commit that last changed each line.",
)
def blame_in_org(call: Call, resource_id: str, query: BlameQuery) -> Blame:
    """Answer the content and its ranges."""
    return blame_memory.blame_in_org(call.units, call.actor, resource_id, query)
