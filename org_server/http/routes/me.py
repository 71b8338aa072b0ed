"""The caller itself."""

from __future__ import annotations

from org_server.http.openapi import Call, RouteTable
from org_server.services.users import read_me
from shared_schema.org_contract import Me

routes = RouteTable()


@routes.route("GET", "/me", answer=Me, tagged=True, summary="Who the caller is, and what it may do.")
def read(call: Call) -> Me:
    """Answer identity, roles, capabilities and Projects."""
    return read_me(call.units, call.actor)
