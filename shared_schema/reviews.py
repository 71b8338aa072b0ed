"""Reviews as both sides see them.

::

    open ──approve──▶ approved ──merge──▶ merged
     │ ▲                │  │
     │ └─content changed┘  └──withdraw──▶ withdrawn
     ├──reject──▶ rejected
     ├──withdraw──▶ withdrawn
     └──merge (approves and merges)──▶ merged

``merged``, ``rejected`` and ``withdrawn`` are final. Every change raises ``version``; decisions
and merges carry the version that was inspected.
"""

from __future__ import annotations

from enum import StrEnum


class ReviewStatus(StrEnum):
    """Where a Review is in its life."""

    OPEN = "open"
    APPROVED = "approved"
    MERGED = "merged"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


FINAL_STATUSES = frozenset({ReviewStatus.MERGED, ReviewStatus.REJECTED, ReviewStatus.WITHDRAWN})


class Decision(StrEnum):
    """What a reviewer may say."""

    APPROVED = "approved"
    REJECTED = "rejected"


class RuleStatus(StrEnum):
    """How one submit rule stands."""

    SATISFIED = "satisfied"
    UNSATISFIED = "unsatisfied"
    NOT_APPLICABLE = "not_applicable"
