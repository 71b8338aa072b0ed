"""Submitting Drafts: an ordered, non-empty set of one author, one Project and one scope."""

from collections.abc import Sequence
from typing import Any

from org_server.domain.contributions import Contribution, record_entries, require_targets
from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.services.draft_views import view_drafts
from org_server.services.read_reviews import detail
from org_server.services.review_content import begin, result_hash_of
from org_server.store.drafts import get_drafts, owner_of, state_of_draft
from org_server.store.tables import DraftRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import current_versions
from shared_schema import ids
from shared_schema.drafts import DraftStatus
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import ReviewCreate, ReviewDetail


def open_review(units: UnitOfWorkFactory, actor: Actor, request: ReviewCreate) -> ReviewDetail:
    """POST /reviews: the Drafts become ``submitted``, in the order given.

    Raises ``draft_not_found`` for Drafts that are unknown or another author's, ``draft_not_open``,
    ``draft_empty``, ``invalid_arguments`` for Drafts of another Project or scope, for two Drafts of
    one resource, and for an Org contribution that cannot be, and ``invalid_path``.
    """
    with units.write() as uow:
        seen = access.require_project(uow, actor, Action.DRAFT_WRITE, request.project_id)
        _check_request(request)
        drafts = _own_drafts(uow, actor, request)
        review = ReviewRow(
            id=ids.new_id("rev"),
            project_id=request.project_id,
            scope=request.scope.value,
            owner=owner_of(uow, request.project_id, request.scope),
            title=request.title,
            description=request.description,
            author_id=actor.user_id,
            result_hash=result_hash_of(uow, drafts),
            contribution=_wish(uow, request, drafts),
            created_at=uow.now,
            updated_at=uow.now,
        )
        begin(uow, review, drafts, actor.user_id)
        return detail(uow, review, seen.project)


def _wish(uow: UnitOfWork, request: ReviewCreate, drafts: Sequence[DraftRow]) -> dict[str, Any] | None:
    states = {draft.id: state_of_draft(draft) for draft in drafts}
    entries = record_entries(request.scope, request.org_contribution, states)
    targets = [entry.target_id for entry in entries if entry.target_id is not None]
    rows = current_versions(uow, uow.org.id, targets)
    require_targets(entries, {each for each, row in rows.items() if not row.removed})
    return Contribution(entries).as_json() if entries else None


def _check_request(request: ReviewCreate) -> None:
    if len(set(request.draft_ids)) != len(request.draft_ids):
        raise _invalid("draft_ids", "names a Draft twice")
    if not request.title.strip():
        raise _invalid("title", "is blank")


def _own_drafts(uow: UnitOfWork, actor: Actor, request: ReviewCreate) -> Sequence[DraftRow]:
    found = get_drafts(uow, request.draft_ids)
    own = {draft_id: row for draft_id, row in found.items() if row.author_id == actor.user_id}
    if missing := [draft_id for draft_id in request.draft_ids if draft_id not in own]:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_FOUND,
            "There is no such Draft, or it is not yours. Has it reached the server yet?",
            details={"draft_ids": missing},
        )
    drafts = [own[draft_id] for draft_id in request.draft_ids]
    if any(row.project_id != request.project_id or row.scope != request.scope.value for row in drafts):
        raise _invalid("draft_ids", "names Drafts of another Project or scope")
    if len({row.resource_id for row in drafts}) != len(drafts):
        raise _invalid("draft_ids", "names two Drafts of one resource")
    if closed := [row.id for row in drafts if row.status != DraftStatus.OPEN.value]:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_OPEN,
            "Only open Drafts can be submitted; these are submitted, merged or discarded.",
            details={"draft_ids": closed},
        )
    if empty := [view.row.id for view in view_drafts(uow, drafts) if view.state == view.base]:
        raise InterleafError(
            ErrorCode.DRAFT_EMPTY,
            "These Drafts change nothing any more; discard them.",
            details={"draft_ids": empty},
        )
    return drafts


def _invalid(field: str, problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"The field {field} {problem}.",
        details={"fields": [{"field": field, "problem": problem}]},
    )
