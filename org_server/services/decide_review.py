"""Decisions on a Review: approved, rejected by a reviewer, or withdrawn by its author."""

from org_server.domain.permissions import Action, Actor
from org_server.domain.refs import require_version
from org_server.domain.reviews import ReviewEvent, require_active, transition
from org_server.domain.submit_rules import counted_approvers, judge
from org_server.services import access
from org_server.services.read_reviews import detail
from org_server.services.review_content import close, touch
from org_server.services.review_views import OpenReview, decide_action, examine
from org_server.store.reviews import get_review
from org_server.store.tables import ApprovalRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import DecisionCreate, FeedEventType, ReviewDetail, VersionBody
from shared_schema.reviews import Decision, ReviewStatus


def decide_review(
    units: UnitOfWorkFactory, actor: Actor, review_id: str, request: DecisionCreate
) -> ReviewDetail:
    """POST /reviews/{review_id}/decisions, on the version that was inspected.

    An approval is bound to the present result hash; with enough of them the Review is approved. A
    rejection is final and gives the Drafts back. Raises ``review_closed``, ``version_conflict``,
    ``review_already_approved`` and ``self_approval_not_allowed``.
    """
    with units.write() as uow:
        review = get_review(uow, review_id)
        seen = access.require_project(uow, actor, decide_action(review), review.project_id)
        require_active(ReviewStatus(review.status))
        require_version(request.version, review.version)
        if request.decision is Decision.APPROVED:
            found = examine(uow, review, seen.project, also_approved_by=actor.user_id)
            require_no_self_approval(found, actor)
            record_decision(uow, review, actor, request.decision, request.comment)
            enough = len(counted_approvers(found.facts)) >= found.policy.required_approvals
            event = ReviewEvent.APPROVALS_COMPLETE if enough else ReviewEvent.APPROVAL
            review.status = transition(ReviewStatus(review.status), event).value
            touch(uow, review)
            uow.emit(FeedEventType.REVIEW_APPROVED, project_id=review.project_id, review_id=review.id)
            uow.audit(actor.user_id, "review.approved", review.id, {"result": review.result_hash})
        else:
            found = examine(uow, review, seen.project)
            record_decision(uow, review, actor, request.decision, request.comment)
            close(uow, review, ReviewEvent.REJECT, actor.user_id, judge(found.facts))
        return detail(uow, review, seen.project)


def withdraw_review(
    units: UnitOfWorkFactory, actor: Actor, review_id: str, request: VersionBody
) -> ReviewDetail:
    """POST /reviews/{review_id}/withdrawals: its author takes an open or approved Review back."""
    with units.write() as uow:
        review = get_review(uow, review_id)
        seen = access.require_project(uow, actor, Action.DRAFT_WRITE, review.project_id)
        if review.author_id != actor.user_id:
            raise InterleafError(
                ErrorCode.FORBIDDEN, "Only its author can withdraw a Review. Reject it instead."
            )
        require_active(ReviewStatus(review.status))
        require_version(request.version, review.version)
        found = examine(uow, review, seen.project)
        close(uow, review, ReviewEvent.WITHDRAW, actor.user_id, judge(found.facts))
        return detail(uow, review, seen.project)


def require_no_self_approval(found: OpenReview, actor: Actor) -> None:
    """Raise ``self_approval_not_allowed`` for authors where the policy does not count their approval."""
    if actor.user_id == found.row.author_id and not found.policy.allow_self_approval:
        raise InterleafError(
            ErrorCode.SELF_APPROVAL_NOT_ALLOWED,
            "Authors cannot approve their own Reviews here. Ask another reviewer.",
            details={"review_id": found.row.id},
        )


def record_decision(
    uow: UnitOfWork, review: ReviewRow, actor: Actor, decision: Decision, comment: str = ""
) -> None:
    """Store who decided what, on which result."""
    uow.add(
        ApprovalRow(
            review_id=review.id,
            user_id=actor.user_id,
            decision=decision.value,
            comment=comment,
            result_hash=review.result_hash,
            at=uow.now,
        )
    )
