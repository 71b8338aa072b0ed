"""A Project's selection of Org Memory."""

from __future__ import annotations

from org_server.http.openapi import Answer, Call, RouteTable
from org_server.services.select_references import put_selections, read_selections
from shared_schema.org_contract import Selections, SelectionsPut

routes = RouteTable()


@routes.route(
    "GET",
    "/projects/<project_id>/org-selections",
    answer=Selections,
    tagged=True,
    summary="The Org resources that a Project selects.",
)
def read(call: Call, project_id: str) -> Answer:
    """Answer the whole set and its revision."""
    return _tagged(read_selections(call.units, call.actor, project_id))


@routes.route(
    "PUT",
    "/projects/<project_id>/org-selections",
    request=SelectionsPut,
    answer=Selections,
    tagged=True,
    precondition="version",
    summary="Replace the set; If-Match names the revision that was read.",
)
def put(call: Call, project_id: str, body: SelectionsPut) -> Answer:
    """Answer the new set."""
    return _tagged(put_selections(call.units, call.actor, project_id, body, call.if_match_version()))


def _tagged(selections: Selections) -> Answer:
    return Answer(selections, version=selections.revision)
