"""The life of a Review as a complete table."""

from itertools import product

import pytest

from org_server.domain.reviews import ReviewEvent, require_active, transition
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.reviews import FINAL_STATUSES, ReviewStatus

OPEN, APPROVED = ReviewStatus.OPEN, ReviewStatus.APPROVED

TABLE = {
    (OPEN, ReviewEvent.APPROVAL): OPEN,
    (OPEN, ReviewEvent.APPROVALS_COMPLETE): APPROVED,
    (OPEN, ReviewEvent.REJECT): ReviewStatus.REJECTED,
    (OPEN, ReviewEvent.WITHDRAW): ReviewStatus.WITHDRAWN,
    (OPEN, ReviewEvent.MERGE): ReviewStatus.MERGED,
    (OPEN, ReviewEvent.CONTENT_CHANGED): OPEN,
    (APPROVED, ReviewEvent.APPROVAL): APPROVED,
    (APPROVED, ReviewEvent.APPROVALS_COMPLETE): APPROVED,
    (APPROVED, ReviewEvent.REJECT): ErrorCode.REVIEW_ALREADY_APPROVED,
    (APPROVED, ReviewEvent.WITHDRAW): ReviewStatus.WITHDRAWN,
    (APPROVED, ReviewEvent.MERGE): ReviewStatus.MERGED,
    (APPROVED, ReviewEvent.CONTENT_CHANGED): OPEN,
} | {(status, event): ErrorCode.REVIEW_CLOSED for status in FINAL_STATUSES for event in ReviewEvent}


@pytest.mark.requirement("review.states")
def test_the_table_names_every_state_and_event() -> None:
    assert set(TABLE) == set(product(ReviewStatus, ReviewEvent))


@pytest.mark.requirement("review.states")
@pytest.mark.parametrize(("status", "event"), sorted(TABLE))
def test_every_event_leads_where_the_table_says(status: ReviewStatus, event: ReviewEvent) -> None:
    expected = TABLE[status, event]
    if isinstance(expected, ReviewStatus):
        assert transition(status, event) is expected
    else:
        with pytest.raises(InterleafError) as raised:
            transition(status, event)
        assert raised.value.code is expected
        assert raised.value.details == {"status": status.value}


def test_only_final_reviews_are_closed() -> None:
    require_active(OPEN)
    require_active(APPROVED)
    for status in FINAL_STATUSES:
        with pytest.raises(InterleafError) as raised:
            require_active(status)
        assert raised.value.code is ErrorCode.REVIEW_CLOSED
