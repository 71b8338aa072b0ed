"""Drafts: the upload, and their author's view of them."""

from __future__ import annotations

from org_server.http.openapi import Call, RouteTable
from org_server.services import accept_draft_operations, drafts
from shared_schema.org_contract import Candidate, Draft, DraftDetail, DraftPage, UploadAnswer, UploadRequest

routes = RouteTable()


@routes.route(
    "POST",
    "/drafts/<draft_id>/operations",
    request=UploadRequest,
    answer=UploadAnswer,
    keyed=False,
    summary="Upload operations of a Draft; idempotent by installation and operation.",
)
def upload(call: Call, draft_id: str, body: UploadRequest) -> UploadAnswer:
    """Accept operations in order."""
    return accept_draft_operations.accept_operations(call.units, call.actor, draft_id, body)


@routes.route("GET", "/drafts", query=drafts.DraftQuery, answer=DraftPage, summary="The caller's Drafts.")
def list_(call: Call, query: drafts.DraftQuery) -> DraftPage:
    """List the caller's Drafts."""
    return drafts.list_drafts(call.units, call.actor, query)


@routes.route(
    "GET",
    "/drafts/<draft_id>",
    answer=DraftDetail,
    tagged=True,
    summary="A Draft with its base and its state.",
)
def read(call: Call, draft_id: str) -> DraftDetail:
    """Read one Draft of the caller."""
    return drafts.read_draft(call.units, call.actor, draft_id)


@routes.route("DELETE", "/drafts/<draft_id>", answer=Draft, summary="Discard a Draft; nothing is published.")
def discard(call: Call, draft_id: str) -> Draft:
    """Discard a Draft of the caller."""
    return drafts.discard_draft(call.units, call.actor, draft_id)


@routes.route(
    "POST",
    "/drafts/<draft_id>/reconciliation",
    answer=Candidate,
    keyed=False,
    summary="What comes of a Draft on the newest commit; changes nothing.",
)
def reconcile(call: Call, draft_id: str) -> Candidate:
    """Merge a Draft of the caller with what was published since."""
    return drafts.reconcile_draft(call.units, call.actor, draft_id)
