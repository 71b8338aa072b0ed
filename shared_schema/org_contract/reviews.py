"""Reviews, decisions, merges and comments."""

from __future__ import annotations

from pydantic import Field

from shared_schema import limits
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import Contract, ResourceState, Scope
from shared_schema.org_contract.common import Id
from shared_schema.org_contract.identity import Policy
from shared_schema.org_contract.projects import Ref
from shared_schema.reviews import Decision, ReviewStatus, RuleStatus


class ContributionEntry(Contract):
    """One Draft of a Project Review that shall also be offered to the Organization.

    As a change of the Org resource ``target_id``, else as a new one at ``path`` (default: the
    Draft's own). An adaptation without either is offered to its Org source.
    """

    draft_id: Id
    path: str | None = Field(default=None, max_length=limits.IDENTIFIER_CHARACTERS)
    target_id: Id | None = None


class ReviewCreate(Contract):
    """POST /reviews: an ordered, non-empty set of Drafts of one Project and one scope."""

    project_id: Id
    scope: Scope
    draft_ids: list[Id] = Field(min_length=1, max_length=limits.REVIEW_DRAFTS)
    title: str = Field(min_length=1, max_length=limits.TITLE_CHARACTERS)
    description: str = Field(default="", max_length=limits.COMMENT_CHARACTERS)
    org_contribution: list[ContributionEntry] = Field(default_factory=list, max_length=limits.REVIEW_DRAFTS)
    """Of a Project Review: what is offered to the Organization once it is merged."""


class SubmitRule(Contract):
    """One named rule that a merge must satisfy."""

    rule: str
    status: RuleStatus
    reason: str


class ReviewSummary(Contract):
    """One Review in a list."""

    review_id: str
    project_id: str
    project_name: str
    scope: Scope
    title: str
    status: ReviewStatus
    author_id: str
    author_email: str
    version: int
    drafts: int
    created_at: int
    updated_at: int


class ReviewPage(Contract):
    """GET /reviews (``project_id``, ``status``, ``scope`` filter), newest first."""

    reviews: list[ReviewSummary]
    next_cursor: str | None


class ReviewEntry(Contract):
    """One Draft of a Review with its states; the frozen ones once the Review is final."""

    draft_id: str
    resource_id: str
    position: int
    freshness: Freshness
    reconciliation: Reconciliation
    before: ResourceState
    after: ResourceState
    diff: str
    """Unified diff of the bodies, headed by the paths; of a new adaptation, against its source version."""


class Approval(Contract):
    """One decision of a reviewer."""

    user_id: str
    email: str
    decision: Decision
    comment: str
    at: int
    counts: bool
    """False once the content changed after it."""


class ReviewDetail(Contract):
    """GET /reviews/{review_id}."""

    review: ReviewSummary
    description: str
    entries: list[ReviewEntry]
    result_hash: str
    ref: Ref
    """The target authority's ref; a merge sends it back in ``If-Match``."""
    policy: Policy
    rules: list[SubmitRule]
    approvals: list[Approval]
    comments: int
    commit_id: str | None
    org_contribution: list[ContributionEntry]
    contribution_review_id: str | None = None
    """The Org Review that offers what this Project Review published, once there is one."""
    contribution_error_code: str | None = None
    contribution_error: str | None = None
    """Why there is none after the merge; without any reason it was not tried to the end yet."""
    contribution_of: str | None = None
    """Of such an Org Review: the Project Review whose content it offers."""
    reverts: str | None = None
    """The merged Review that this one takes back."""


class DecisionCreate(Contract):
    """POST /reviews/{review_id}/decisions."""

    decision: Decision
    version: int = Field(ge=1)
    comment: str = Field(default="", max_length=limits.COMMENT_CHARACTERS)


class ReviewRevert(Contract):
    """POST /reviews/{review_id}/revert."""

    description: str = Field(default="", max_length=limits.COMMENT_CHARACTERS)


class VersionBody(Contract):
    """POST /reviews/{review_id}/merges (with ``If-Match`` of the ref) and /withdrawals."""

    version: int = Field(ge=1)


class MergeAnswer(Contract):
    """What a merge published."""

    review_id: str
    status: ReviewStatus
    version: int
    commit_id: str
    ref: Ref


class CommentCreate(Contract):
    """POST /reviews/{review_id}/comments; a Draft and a line anchor it to the final content.

    The Draft is named by ``draft_id`` or by the ``path`` of its result.
    """

    body: str = Field(min_length=1, max_length=limits.COMMENT_CHARACTERS)
    draft_id: str | None = None
    path: str | None = Field(default=None, max_length=limits.IDENTIFIER_CHARACTERS)
    line: int | None = Field(default=None, ge=1)


class CommentChange(Contract):
    """PATCH /reviews/{review_id}/comments/{comment_id}."""

    resolved: bool


class Comment(Contract):
    """One comment of a Review.

    ``path``, ``line`` and ``quote`` say what was commented, ``present_path`` and ``present_line``
    where that is now. ``outdated``: it is in the Review's content no more.
    """

    comment_id: str
    author_id: str
    author_email: str
    body: str
    draft_id: str | None
    path: str | None
    line: int | None
    quote: str | None
    """The line's text when it was commented."""
    present_path: str | None
    present_line: int | None
    outdated: bool
    resolved: bool
    resolved_by: str | None
    resolved_by_email: str | None
    resolved_at: int | None
    created_at: int


class CommentPage(Contract):
    """GET /reviews/{review_id}/comments, oldest first."""

    comments: list[Comment]
    next_cursor: str | None
