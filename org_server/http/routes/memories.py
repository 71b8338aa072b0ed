"""What is published, read by people and clients."""

from __future__ import annotations

from pydantic import Field

from org_server.http.openapi import Call, RouteTable
from org_server.services import memories
from org_server.services.pages import PageQuery
from shared_schema import limits
from shared_schema.org_contract import Adaptations, ResourceAnswer, ResourcePage

routes = RouteTable()


class OrgMemoryQuery(PageQuery):
    """The query of GET /org/memories."""

    project_id: str | None = Field(default=None, max_length=limits.IDENTIFIER_CHARACTERS)


@routes.route(
    "GET",
    "/projects/<project_id>/memories",
    query=PageQuery,
    answer=ResourcePage,
    summary="A Project's view, by path: its own resources and its Org references.",
)
def find_in_project(call: Call, project_id: str, query: PageQuery) -> ResourcePage:
    """Answer a page of resources."""
    return memories.list_project_memories(call.units, call.actor, project_id, query)


@routes.route(
    "GET",
    "/projects/<project_id>/memories/<resource_id>",
    answer=ResourceAnswer,
    tagged=True,
    summary="One resource of a Project's view, with its body.",
)
def read_in_project(call: Call, project_id: str, resource_id: str) -> ResourceAnswer:
    """Answer the resource and the Project's ref."""
    return memories.read_project_memory(call.units, call.actor, project_id, resource_id)


@routes.route(
    "GET",
    "/projects/<project_id>/adaptations",
    answer=Adaptations,
    tagged=True,
    summary="A Project's adaptations, and whether their sources are newer.",
)
def find_adaptations(call: Call, project_id: str) -> Adaptations:
    """Answer all adaptations."""
    return memories.list_adaptations(call.units, call.actor, project_id)


@routes.route(
    "GET",
    "/org/memories",
    query=OrgMemoryQuery,
    answer=ResourcePage,
    summary="Org Memory, by path; with project_id, what that Project selects of it.",
)
def find_in_org(call: Call, query: OrgMemoryQuery) -> ResourcePage:
    """Answer a page of resources."""
    return memories.list_org_memories(call.units, call.actor, query, query.project_id)


@routes.route(
    "GET",
    "/org/memories/<resource_id>",
    answer=ResourceAnswer,
    tagged=True,
    summary="One Org resource, with its body.",
)
def read_in_org(call: Call, resource_id: str) -> ResourceAnswer:
    """Answer the resource and the Organization's ref."""
    return memories.read_org_memory(call.units, call.actor, resource_id)
