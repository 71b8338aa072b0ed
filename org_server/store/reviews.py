"""Reviews with their Drafts, decisions and comments."""

from collections.abc import Collection, Iterable

from sqlalchemy import and_, func, or_
from sqlmodel import col, select

from org_server.store.batches import batches
from org_server.store.tables import (
    ApprovalRow,
    DraftRow,
    ReviewCommentRow,
    ReviewDraftRow,
    ReviewRow,
    UserRow,
)
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.reviews import Decision

ReviewKey = tuple[int, str]
"""Time and id: what lists of Reviews and comments are sorted by."""


def get_review(uow: UnitOfWork, review_id: str) -> ReviewRow:
    """Return one Review; ``not_found`` for an unknown id. Whether the caller sees it is asked next."""
    review = uow.session.get(ReviewRow, review_id)
    if review is None:
        raise InterleafError(ErrorCode.NOT_FOUND, "There is no such Review, or it is not yours to see.")
    return review


def get_comment(uow: UnitOfWork, review_id: str, comment_id: str) -> ReviewCommentRow:
    """Return one comment of this Review; ``not_found`` for another's and an unknown one."""
    row = uow.session.get(ReviewCommentRow, comment_id)
    if row is None or row.review_id != review_id:
        raise InterleafError(ErrorCode.NOT_FOUND, "The Review has no such comment.")
    return row


def drafts_of_review(uow: UnitOfWork, review_id: str) -> list[DraftRow]:
    """Return a Review's Drafts in its order."""
    return list(
        uow.session.exec(
            select(DraftRow)
            .join(ReviewDraftRow, col(ReviewDraftRow.draft_id) == col(DraftRow.id))
            .where(col(ReviewDraftRow.review_id) == review_id)
            .order_by(col(ReviewDraftRow.position))
        )
    )


def count_drafts(uow: UnitOfWork, review_ids: Iterable[str]) -> dict[str, int]:
    """Return how many Drafts each Review has."""
    counts: dict[str, int] = {}
    for batch in batches(review_ids):
        rows = uow.session.exec(
            select(ReviewDraftRow.review_id, func.count())
            .where(col(ReviewDraftRow.review_id).in_(batch))
            .group_by(col(ReviewDraftRow.review_id))
        )
        counts.update((review_id, count) for review_id, count in rows)
    return counts


def emails(uow: UnitOfWork, user_ids: Iterable[str]) -> dict[str, str]:
    """Return users' e-mail addresses by id."""
    found: dict[str, str] = {}
    for batch in batches(sorted(set(user_ids))):
        rows = uow.session.exec(select(UserRow.id, UserRow.email).where(col(UserRow.id).in_(batch)))
        found.update((user_id, email) for user_id, email in rows)
    return found


def approvals_of(uow: UnitOfWork, review_id: str) -> list[ApprovalRow]:
    """Return a Review's decisions in their order."""
    return list(
        uow.session.exec(
            select(ApprovalRow).where(col(ApprovalRow.review_id) == review_id).order_by(col(ApprovalRow.id))
        )
    )


def approvers(uow: UnitOfWork, review: ReviewRow) -> frozenset[str]:
    """Return who approved exactly the result that the Review has now."""
    return frozenset(
        uow.session.exec(
            select(ApprovalRow.user_id).where(
                col(ApprovalRow.review_id) == review.id,
                col(ApprovalRow.decision) == Decision.APPROVED.value,
                col(ApprovalRow.result_hash) == review.result_hash,
            )
        )
    )


def page_of_reviews(
    uow: UnitOfWork,
    project_ids: Collection[str],
    *,
    status: str | None,
    scope: str | None,
    before: ReviewKey | None,
    limit: int,
) -> list[ReviewRow]:
    """Return Reviews of these Projects, newest first."""
    statement = select(ReviewRow).where(col(ReviewRow.project_id).in_(sorted(project_ids)))
    if status is not None:
        statement = statement.where(col(ReviewRow.status) == status)
    if scope is not None:
        statement = statement.where(col(ReviewRow.scope) == scope)
    if before is not None:
        at, review_id = before
        statement = statement.where(
            or_(
                col(ReviewRow.created_at) < at,
                and_(col(ReviewRow.created_at) == at, col(ReviewRow.id) < review_id),
            )
        )
    order = (col(ReviewRow.created_at).desc(), col(ReviewRow.id).desc())
    return list(uow.session.exec(statement.order_by(*order).limit(limit)))


def page_of_comments(
    uow: UnitOfWork, review_id: str, after: ReviewKey | None, limit: int
) -> list[ReviewCommentRow]:
    """Return a Review's comments, oldest first."""
    statement = select(ReviewCommentRow).where(col(ReviewCommentRow.review_id) == review_id)
    if after is not None:
        at, comment_id = after
        statement = statement.where(
            or_(
                col(ReviewCommentRow.created_at) > at,
                and_(col(ReviewCommentRow.created_at) == at, col(ReviewCommentRow.id) > comment_id),
            )
        )
    order = (col(ReviewCommentRow.created_at), col(ReviewCommentRow.id))
    return list(uow.session.exec(statement.order_by(*order).limit(limit)))


def count_comments(uow: UnitOfWork, review_id: str) -> int:
    """Return how many comments a Review has."""
    return uow.session.exec(
        select(func.count()).select_from(ReviewCommentRow).where(col(ReviewCommentRow.review_id) == review_id)
    ).one()
