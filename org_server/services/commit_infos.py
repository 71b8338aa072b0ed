"""Commits as people read them: who published them, by which Review, approved by whom."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from sqlmodel import col, select

from org_server.domain.permissions import Actor
from org_server.services import access
from org_server.store.batches import batches
from org_server.store.readable import readable_projects
from org_server.store.reviews import emails
from org_server.store.tables import ApprovalRow, CommitRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.org_contract import CommitInfo, PublishingReview
from shared_schema.reviews import Decision


def commit_infos(uow: UnitOfWork, actor: Actor, owner: str, seqs: Iterable[int]) -> dict[int, CommitInfo]:
    """Return the commits with these numbers; a Review is described only to those who may read it.

    An Organization's or a Project's history may hold Reviews that another Project carries.
    """
    rows: list[CommitRow] = []
    for batch in batches(sorted(set(seqs))):
        rows += uow.session.exec(
            select(CommitRow).where(col(CommitRow.owner) == owner, col(CommitRow.seq).in_(batch))
        )
    reviews = _readable_reviews(uow, actor, {row.review_id for row in rows if row.review_id is not None})
    return {
        row.seq: CommitInfo(
            commit_id=row.commit_id,
            owner=row.owner,
            seq=row.seq,
            created_at=row.created_at,
            author_id=row.author_id,
            review_id=row.review_id,
            review=reviews.get(row.review_id or ""),
        )
        for row in rows
    }


def _readable_reviews(
    uow: UnitOfWork, actor: Actor, review_ids: Iterable[str]
) -> Mapping[str, PublishingReview]:
    projects = {item.project.id for item in readable_projects(uow, access.refresh(uow, actor))}
    rows: list[ReviewRow] = []
    for batch in batches(sorted(review_ids)):
        found = uow.session.exec(select(ReviewRow).where(col(ReviewRow.id).in_(batch)))
        rows += (row for row in found if row.project_id in projects)
    approvals = _approvals(uow, rows)
    people = emails(
        uow, {row.author_id for row in rows} | {user for users in approvals.values() for user in users}
    )
    return {
        row.id: PublishingReview(
            review_id=row.id,
            title=row.title,
            author_id=row.author_id,
            author_email=people[row.author_id],
            approvers=[people[user] for user in approvals.get(row.id, ())],
        )
        for row in rows
    }


def _approvals(uow: UnitOfWork, reviews: Iterable[ReviewRow]) -> dict[str, list[str]]:
    """Return who approved exactly the result that each Review published, each once."""
    results = {row.id: row.result_hash for row in reviews}
    found: dict[str, list[str]] = defaultdict(list)
    for batch in batches(sorted(results)):
        rows = uow.session.exec(
            select(ApprovalRow)
            .where(
                col(ApprovalRow.review_id).in_(batch), col(ApprovalRow.decision) == Decision.APPROVED.value
            )
            .order_by(col(ApprovalRow.id))
        )
        for row in rows:
            if row.result_hash == results[row.review_id] and row.user_id not in found[row.review_id]:
                found[row.review_id].append(row.user_id)
    return found
