"""Merging a Review: checks, commits, refs, Drafts, audit and feed in one transaction, or nothing."""

from sqlalchemy import delete
from sqlmodel import col

from org_server.domain.permissions import Actor
from org_server.domain.refs import require_ref, require_version
from org_server.domain.reviews import ReviewEvent, require_active, transition
from org_server.domain.submit_rules import judge, require_mergeable
from org_server.domain.view_changes import hide_reference, show_reference
from org_server.services import access
from org_server.services.contribute import contribute_after_merge
from org_server.services.decide_review import record_decision
from org_server.services.merge_plan import ProjectEffect
from org_server.services.publish import publish_commit
from org_server.services.review_content import freeze, touch
from org_server.services.review_views import OpenReview, decide_action, examine
from org_server.store.commits import read_ref, ref_answer
from org_server.store.reviews import get_review
from org_server.store.tables import CommitRow, SelectionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema.drafts import DraftStatus
from shared_schema.org_contract import FeedEventType, MergeAnswer, VersionBody
from shared_schema.reviews import Decision, ReviewStatus


def merge_review(
    units: UnitOfWorkFactory, actor: Actor, review_id: str, request: VersionBody, expected: str | None
) -> MergeAnswer:
    """POST /reviews/{review_id}/merges, on the version and the ref (``expected``) that were inspected.

    From ``open`` it approves and merges. Drafts that are behind only because other resources moved
    are rebased here: their results stay the same. Raises ``review_closed``, ``version_conflict``,
    ``precondition_failed``, and the code of the first submit rule that is not satisfied. An Org
    contribution follows in a transaction of its own; whatever becomes of it, the merge stands.
    """
    with units.write() as uow:
        review = get_review(uow, review_id)
        seen = access.require_project(uow, actor, decide_action(review), review.project_id)
        status = ReviewStatus(review.status)
        require_active(status)
        require_version(request.version, review.version)
        require_ref(expected, read_ref(uow, review.owner).commit_id)
        approves = status is ReviewStatus.OPEN
        found = examine(uow, review, seen.project, also_approved_by=actor.user_id if approves else None)
        require_mergeable(found.facts)
        if approves:
            record_decision(uow, review, actor, Decision.APPROVED)
        commit = publish_commit(uow, review.owner, found.plan.changes, review.author_id, review.id)
        for effect in found.plan.effects:
            _carry_out(uow, effect, commit, review.author_id)
        _finish(uow, found, commit, actor)
        answer = MergeAnswer(
            review_id=review.id,
            status=ReviewStatus(review.status),
            version=review.version,
            commit_id=commit.commit_id,
            ref=ref_answer(uow, review.owner),
        )
        contributes = review.contribution is not None
    if contributes:
        contribute_after_merge(units, actor, review_id)
    return answer


def _finish(uow: UnitOfWork, found: OpenReview, commit: CommitRow, actor: Actor) -> None:
    review = found.row
    review.frozen = freeze(found.drafts, judge(found.facts))
    for view in found.drafts:
        draft = view.row
        draft.base_commit, draft.base_seq = commit.parent, commit.seq - 1
        draft.status = DraftStatus.MERGED.value
        draft.merged_commit, draft.merged_seq = commit.commit_id, commit.seq
        draft.updated_at = uow.now
        uow.session.add(draft)
        uow.emit(
            FeedEventType.DRAFT_MERGED,
            project_id=draft.project_id,
            user_id=draft.author_id,
            draft_id=draft.id,
            review_id=review.id,
            resource_id=draft.resource_id,
            commit_id=commit.commit_id,
            commit_seq=commit.seq,
        )
    review.status = transition(ReviewStatus(review.status), ReviewEvent.MERGE).value
    review.commit_id = commit.commit_id
    touch(uow, review)
    uow.emit(
        FeedEventType.REVIEW_MERGED,
        project_id=review.project_id,
        review_id=review.id,
        commit_id=commit.commit_id,
        commit_seq=commit.seq,
    )
    data = {"owner": review.owner, "commit_id": commit.commit_id, "author_id": review.author_id}
    uow.audit(actor.user_id, "review.merged", review.id, data)


def _carry_out(uow: UnitOfWork, effect: ProjectEffect, org_commit: CommitRow, author_id: str) -> None:
    """Publish an Org merge into one Project that selects what it touches."""
    project = effect.project
    changes = [
        show_reference(resource_id, state, org_commit.commit_id) for resource_id, state in effect.show.items()
    ]
    changes += [hide_reference(resource_id) for resource_id in effect.hide]
    if changes:
        publish_commit(uow, project.id, changes, author_id, org_commit.review_id)
    if effect.select or effect.deselect:
        for resource_id in effect.select:
            uow.add(SelectionRow(project_id=project.id, resource_id=resource_id, created_at=uow.now))
        uow.session.execute(
            delete(SelectionRow).where(
                col(SelectionRow.project_id) == project.id,
                col(SelectionRow.resource_id).in_(effect.deselect),
            )
        )
        project.selection_revision += 1
        uow.session.add(project)
        uow.emit(FeedEventType.SELECTION_CHANGED, project_id=project.id, review_id=org_commit.review_id)
    for resource_id in effect.adapted:
        uow.emit(
            FeedEventType.ADAPTATION_SOURCE_UPDATED,
            project_id=project.id,
            review_id=org_commit.review_id,
            resource_id=resource_id,
            commit_id=org_commit.commit_id,
            commit_seq=org_commit.seq,
        )
