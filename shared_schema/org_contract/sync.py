"""The change feed."""

from __future__ import annotations

from enum import StrEnum

from shared_schema.memory import Contract
from shared_schema.org_contract.common import Role
from shared_schema.org_contract.projects import Ref


class FeedEventType(StrEnum):
    """What a feed event tells."""

    DRAFT_CREATED = "draft.created"
    DRAFT_APPENDED = "draft.appended"
    DRAFT_DISCARDED = "draft.discarded"
    DRAFT_REBASED = "draft.rebased"
    DRAFT_SUBMITTED = "draft.submitted"
    DRAFT_REOPENED = "draft.reopened"
    DRAFT_MERGED = "draft.merged"
    REVIEW_OPENED = "review.opened"
    REVIEW_COMMENTED = "review.commented"
    REVIEW_APPROVED = "review.approved"
    REVIEW_REJECTED = "review.rejected"
    REVIEW_WITHDRAWN = "review.withdrawn"
    REVIEW_MERGED = "review.merged"
    REF_MOVED = "ref.moved"
    SELECTION_CHANGED = "selection.changed"
    MEMBERSHIP_CHANGED = "membership.changed"
    ADAPTATION_SOURCE_UPDATED = "adaptation.source_updated"


class FeedEvent(Contract):
    """One event; ``type`` stays a plain string so that an older client can name what it misses."""

    seq: int
    at: int
    type: str
    project_id: str | None = None
    draft_id: str | None = None
    review_id: str | None = None
    resource_id: str | None = None
    commit_id: str | None = None
    """On ``ref.moved``, ``draft.merged`` and ``review.merged``: the authority's new commit."""
    commit_seq: int | None = None
    draft_ordinal: int | None = None
    """On ``draft.merged``: the last operation that the published result contains."""


class ProjectHead(Contract):
    """How one Project of the caller stands."""

    project_id: str
    name: str
    role: Role | None
    commit_id: str | None
    seq: int
    guide_path: str


class SyncAnswer(Contract):
    """GET /sync?cursor=&wait=; 304 when nothing changed since the cursor.

    ``cursor`` is opaque and names the database's lineage too. Without a cursor: all heads, no
    events. A cursor of another lineage, or one too old: 410 ``resync_required``. Draft events are
    the caller's own Drafts'; review, ref, selection and membership events those of Projects that
    the caller may read. ``projects`` is always complete: a Project that is missing is one that the
    caller may not read any more.
    """

    epoch: str
    cursor: str
    has_more: bool
    org_ref: Ref
    projects: list[ProjectHead]
    events: list[FeedEvent]
