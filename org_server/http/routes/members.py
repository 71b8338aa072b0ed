"""Members of a Project."""

from __future__ import annotations

from org_server.http.openapi import Call, RouteTable
from org_server.services import members
from org_server.services.pages import PageQuery
from shared_schema.org_contract import Member, MemberAdd, MemberChange, MemberPage

routes = RouteTable()


@routes.route(
    "GET",
    "/projects/<project_id>/members",
    query=PageQuery,
    answer=MemberPage,
    summary="A Project's members, by e-mail address.",
)
def find(call: Call, project_id: str, query: PageQuery) -> MemberPage:
    """Answer a page of members."""
    return members.list_members(call.units, call.actor, project_id, query)


@routes.route(
    "POST",
    "/projects/<project_id>/members",
    request=MemberAdd,
    answer=Member,
    status=201,
    summary="Add a user of the Organization to a Project.",
)
def add(call: Call, project_id: str, body: MemberAdd) -> Member:
    """Answer the new member."""
    return members.add_member(call.units, call.actor, project_id, body)


@routes.route(
    "PATCH",
    "/projects/<project_id>/members/<user_id>",
    request=MemberChange,
    answer=Member,
    summary="Change a member's role.",
)
def change(call: Call, project_id: str, user_id: str, body: MemberChange) -> Member:
    """Answer the changed member."""
    return members.change_member(call.units, call.actor, project_id, user_id, body.role)


@routes.route("DELETE", "/projects/<project_id>/members/<user_id>", summary="Remove a member.")
def remove(call: Call, project_id: str, user_id: str) -> None:
    """Answer nothing."""
    members.remove_member(call.units, call.actor, project_id, user_id)
