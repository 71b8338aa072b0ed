"""What a Review holds: its Drafts' results, frozen once it is final."""

from collections.abc import Sequence
from typing import Any

from sqlmodel import col, delete

from org_server.domain.contributions import Contribution
from org_server.domain.reviews import ReviewEvent, transition
from org_server.services.draft_views import DraftView, texts_of, view_drafts
from org_server.store.drafts import state_of_draft
from org_server.store.reviews import drafts_of_review, get_review
from org_server.store.tables import DraftRow, ReviewDraftRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.drafts import DraftStatus
from shared_schema.org_contract import FeedEventType, SubmitRule
from shared_schema.reviews import ReviewStatus
from shared_schema.rules.chain import review_result_hash


def result_hash_of(uow: UnitOfWork, drafts: Sequence[DraftRow]) -> str:
    """Return the hash of the ordered final states that approvals are bound to."""
    states = [state_of_draft(draft) for draft in drafts]
    texts = texts_of(uow, states)
    return review_result_hash(
        (draft.resource_id, state.with_body(texts)) for draft, state in zip(drafts, states, strict=True)
    )


def begin(uow: UnitOfWork, review: ReviewRow, drafts: Sequence[DraftRow], actor_id: str | None) -> None:
    """Insert a Review of these open Drafts, which are submitted from now on."""
    uow.add(review)
    for position, draft in enumerate(drafts):
        uow.add(ReviewDraftRow(review_id=review.id, draft_id=draft.id, position=position))
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
    uow.emit(FeedEventType.REVIEW_OPENED, project_id=review.project_id, review_id=review.id)
    uow.audit(actor_id, "review.opened", review.id, {"draft_ids": [draft.id for draft in drafts]})
    uow.session.flush()


def content_changed(uow: UnitOfWork, review_id: str, actor_id: str) -> None:
    """Note that a Draft of the Review got another operation.

    The version rises in any case. Another result hash drops the approvals, so an approved Review
    is open again; ``review.opened`` tells its readers that there is something to judge.
    """
    review = get_review(uow, review_id)
    before = review.result_hash
    review.result_hash = result_hash_of(uow, drafts_of_review(uow, review_id))
    if review.result_hash != before:
        was = ReviewStatus(review.status)
        review.status = transition(was, ReviewEvent.CONTENT_CHANGED).value
        if was is ReviewStatus.APPROVED:
            data = {"former_result": before, "result": review.result_hash}
            uow.audit(actor_id, "review.approval_dropped", review.id, data)
        uow.emit(FeedEventType.REVIEW_OPENED, project_id=review.project_id, review_id=review.id)
    touch(uow, review)


def drop_draft(uow: UnitOfWork, draft: DraftRow) -> None:
    """Take a Draft that its author discarded out of its Review; without any left it is withdrawn."""
    if draft.review_id is None:
        return
    review = get_review(uow, draft.review_id)
    remaining = [row for row in drafts_of_review(uow, review.id) if row.id != draft.id]
    if remaining:
        uow.session.execute(
            delete(ReviewDraftRow).where(
                col(ReviewDraftRow.review_id) == review.id, col(ReviewDraftRow.draft_id) == draft.id
            )
        )
        if review.contribution is not None:
            left = Contribution.from_json(review.contribution).without(draft.id)
            review.contribution = None if left is None else left.as_json()
        content_changed(uow, review.id, draft.author_id)
    else:
        close(uow, review, ReviewEvent.WITHDRAW, draft.author_id, [])
    draft.review_id = None
    uow.session.add(draft)


def close(
    uow: UnitOfWork, review: ReviewRow, event: ReviewEvent, actor_id: str, rules: Sequence[SubmitRule]
) -> None:
    """Reject or withdraw a Review: freeze what was judged and give its Drafts back to their author."""
    drafts = drafts_of_review(uow, review.id)
    review.status = transition(ReviewStatus(review.status), event).value
    review.frozen = freeze(view_drafts(uow, drafts), rules)
    for draft in drafts:
        if draft.status != DraftStatus.SUBMITTED.value:
            continue
        draft.status = DraftStatus.OPEN.value
        draft.review_id = None
        draft.updated_at = uow.now
        uow.session.add(draft)
        uow.emit(
            FeedEventType.DRAFT_REOPENED,
            project_id=draft.project_id,
            user_id=draft.author_id,
            draft_id=draft.id,
            review_id=review.id,
            resource_id=draft.resource_id,
        )
    touch(uow, review)
    told = FeedEventType.REVIEW_REJECTED if event is ReviewEvent.REJECT else FeedEventType.REVIEW_WITHDRAWN
    uow.emit(told, project_id=review.project_id, review_id=review.id)
    uow.audit(actor_id, told.value, review.id, {"version": review.version})


def freeze(views: Sequence[DraftView], rules: Sequence[SubmitRule]) -> dict[str, Any]:
    """Return the copy of what was judged that a final Review keeps."""
    return {
        "entries": [
            {
                "draft_id": view.row.id,
                "resource_id": view.row.resource_id,
                "freshness": view.standing.freshness.value,
                "reconciliation": view.standing.reconciliation.value,
                "before": view.base.as_json(),
                "after": view.state.as_json(),
            }
            for view in views
        ],
        "rules": [rule.model_dump(mode="json") for rule in rules],
    }


def touch(uow: UnitOfWork, review: ReviewRow) -> None:
    """Raise the Review's version."""
    review.version += 1
    review.updated_at = uow.now
    uow.session.add(review)
    uow.session.flush()
