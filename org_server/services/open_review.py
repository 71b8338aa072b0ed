"""Submitting Drafts: an ordered, non-empty set of one author, one Project and one scope."""

from collections.abc import Sequence

from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.services.draft_views import view_drafts
from org_server.services.read_reviews import detail
from org_server.services.review_content import result_hash_of
from org_server.store.drafts import get_drafts, owner_of
from org_server.store.tables import DraftRow, ReviewDraftRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import ids
from shared_schema.drafts import DraftStatus
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import FeedEventType, ReviewCreate, ReviewDetail


def open_review(units: UnitOfWorkFactory, actor: Actor, request: ReviewCreate) -> ReviewDetail:
    """POST /reviews: the Drafts become ``submitted``, in the order given.

    Raises ``draft_not_found`` for Drafts that are unknown or another author's, ``draft_not_open``,
    ``draft_empty``, and ``invalid_arguments`` for Drafts of another Project or scope, for two
    Drafts of one resource, and for an Org contribution, which this server does not carry out.
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
            created_at=uow.now,
            updated_at=uow.now,
        )
        uow.add(review)
        for position, draft in enumerate(drafts):
            uow.add(ReviewDraftRow(review_id=review.id, draft_id=draft.id, position=position))
            _submit(uow, draft, review)
        uow.emit(FeedEventType.REVIEW_OPENED, project_id=review.project_id, review_id=review.id)
        uow.audit(actor.user_id, "review.opened", review.id, {"draft_ids": request.draft_ids})
        uow.session.flush()
        return detail(uow, review, seen.project)


def _submit(uow: UnitOfWork, draft: DraftRow, review: ReviewRow) -> None:
    draft.status = DraftStatus.SUBMITTED.value
    draft.review_id = review.id
    draft.updated_at = uow.now
    uow.session.add(draft)
    uow.emit(
        FeedEventType.DRAFT_SUBMITTED,
        project_id=draft.project_id,
        user_id=draft.author_id,
        draft_id=draft.id,
        review_id=review.id,
        resource_id=draft.resource_id,
    )


def _check_request(request: ReviewCreate) -> None:
    if request.org_contribution:
        raise _invalid("org_contribution", "is not supported by this server; open an Org Review instead")
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
