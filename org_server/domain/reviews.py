"""The life of a Review: its states, and the one function that moves between them.

::

    open ──approval──▶ open                     more approvals are needed
    open ──approvals complete──▶ approved       on the present result hash
    approved ──content changed──▶ open          another result hash: it has to be judged again
    open ──reject──▶ rejected
    open, approved ──withdraw──▶ withdrawn
    open, approved ──merge──▶ merged            from open it approves and merges

``rejected``, ``withdrawn`` and ``merged`` are final.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.reviews import FINAL_STATUSES, ReviewStatus


class ReviewEvent(StrEnum):
    """What can happen to a Review."""

    APPROVAL = "approval"
    APPROVALS_COMPLETE = "approvals_complete"
    REJECT = "reject"
    WITHDRAW = "withdraw"
    MERGE = "merge"
    CONTENT_CHANGED = "content_changed"


TRANSITIONS: Final[Mapping[tuple[ReviewStatus, ReviewEvent], ReviewStatus]] = {
    (ReviewStatus.OPEN, ReviewEvent.APPROVAL): ReviewStatus.OPEN,
    (ReviewStatus.OPEN, ReviewEvent.APPROVALS_COMPLETE): ReviewStatus.APPROVED,
    (ReviewStatus.OPEN, ReviewEvent.REJECT): ReviewStatus.REJECTED,
    (ReviewStatus.OPEN, ReviewEvent.WITHDRAW): ReviewStatus.WITHDRAWN,
    (ReviewStatus.OPEN, ReviewEvent.MERGE): ReviewStatus.MERGED,
    (ReviewStatus.OPEN, ReviewEvent.CONTENT_CHANGED): ReviewStatus.OPEN,
    (ReviewStatus.APPROVED, ReviewEvent.APPROVAL): ReviewStatus.APPROVED,
    (ReviewStatus.APPROVED, ReviewEvent.APPROVALS_COMPLETE): ReviewStatus.APPROVED,
    (ReviewStatus.APPROVED, ReviewEvent.WITHDRAW): ReviewStatus.WITHDRAWN,
    (ReviewStatus.APPROVED, ReviewEvent.MERGE): ReviewStatus.MERGED,
    (ReviewStatus.APPROVED, ReviewEvent.CONTENT_CHANGED): ReviewStatus.OPEN,
}


def transition(status: ReviewStatus, event: ReviewEvent) -> ReviewStatus:
    """Return the status after ``event``.

    Raises ``review_closed`` (details: ``status``) for a final Review and
    ``review_already_approved`` for the rejection of an approved one.
    """
    if (after := TRANSITIONS.get((status, event))) is not None:
        return after
    require_active(status)
    raise InterleafError(
        ErrorCode.REVIEW_ALREADY_APPROVED,
        "The Review is approved and cannot be rejected any more. Its author can withdraw it.",
        details={"status": status.value},
    )


def require_active(status: ReviewStatus) -> None:
    """Raise ``review_closed`` (details: ``status``) for a merged, rejected or withdrawn Review."""
    if status in FINAL_STATUSES:
        raise InterleafError(
            ErrorCode.REVIEW_CLOSED,
            f"The Review is {status.value}, which is final. Make a new Review.",
            details={"status": status.value},
        )
