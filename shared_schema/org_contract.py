"""The HTTP API of the Organization server, ``/api/v1``: every request and answer.

JSON in and out, times in epoch milliseconds, a bearer token in ``Authorization``. Errors are
``{"error": {"code", "message", "request_id", "details"}}``. Lists are keyset pages: while
``next_cursor`` is not null there is more.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from shared_schema import limits
from shared_schema.drafts import (
    DraftHeader,
    DraftOperation,
    DraftStatus,
    Freshness,
    Reconciliation,
)
from shared_schema.memory import Contract, OrgSource, PublishedResource, ResourceState, Scope
from shared_schema.reviews import Decision, ReviewStatus, RuleStatus

API_PREFIX: Final = "/api/v1"
SNAPSHOT_MEDIA_TYPE: Final = "application/x-ndjson"
EMPTY_REF: Final = "none"
"""What stands in ``If-Match`` and ``ETag`` for a ref without any commit."""
DEFAULT_GUIDE_PATH: Final = "CLUMSIES.md"

Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARACTERS)]
Email = Annotated[str, Field(min_length=3, max_length=limits.EMAIL_CHARACTERS, pattern=r"^[^@\s]+@[^@\s]+$")]
Id = Annotated[str, Field(min_length=1, max_length=limits.IDENTIFIER_CHARACTERS)]


class Role(StrEnum):
    """A role in the Organization or in one Project, from most to least."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class ErrorBody(Contract):
    """The error of every answer that is not a success."""

    code: str
    message: str
    request_id: str
    details: dict[str, object] | list[object] = Field(default_factory=dict)


class ErrorAnswer(Contract):
    """Envelope of an error."""

    error: ErrorBody


# --- identity -------------------------------------------------------------------------------


class ProjectRole(Contract):
    """One Project of a user."""

    project_id: str
    name: str
    role: Role


class Me(Contract):
    """GET /me."""

    user_id: str
    email: str
    name: str
    org_id: str
    org_name: str
    org_role: Role
    read_only: bool
    """Whether the token that was used may only read."""
    expires_at: int | None
    capabilities: list[str]
    """What the caller may do in the Organization, e.g. ``project.create``, ``org_review.merge``."""
    projects: list[ProjectRole]


class User(Contract):
    """One user, as an Org admin sees them."""

    user_id: str
    email: str
    name: str
    role: Role
    disabled: bool
    created_at: int
    version: int


class UserPage(Contract):
    """GET /admin/users."""

    users: list[User]
    next_cursor: str | None


class UserCreate(Contract):
    """POST /admin/users."""

    email: Email
    name: Name | None = None
    role: Role = Role.MEMBER


class UserChange(Contract):
    """PATCH /admin/users/{user_id}, with If-Match."""

    role: Role | None = None
    disabled: bool | None = None


class TokenCreate(Contract):
    """POST /admin/tokens."""

    user: Id
    """A user's id or e-mail address."""
    read_only: bool = False
    project_ids: list[Id] | None = None
    expires_in_days: int | None = Field(default=None, ge=1, le=3650)
    label: str = Field(default="", max_length=limits.NAME_CHARACTERS)


class TokenInfo(Contract):
    """One token, without its secret."""

    token_id: str
    user_id: str
    email: str
    label: str
    read_only: bool
    project_ids: list[str] | None
    created_at: int
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None


class TokenIssued(Contract):
    """The only answer that ever holds a token's secret."""

    token: str
    info: TokenInfo


class TokenPage(Contract):
    """GET /admin/tokens."""

    tokens: list[TokenInfo]
    next_cursor: str | None


class AuditEvent(Contract):
    """One administrative or publishing action."""

    seq: int
    at: int
    actor_id: str | None
    action: str
    subject: str
    data: dict[str, object]


class AuditPage(Contract):
    """GET /admin/audit, newest first."""

    events: list[AuditEvent]
    next_cursor: str | None


class Policy(Contract):
    """What a Review needs: of the Organization for Org scope, of a Project for Project scope."""

    required_approvals: int = Field(default=1, ge=0, le=10)
    allow_self_approval: bool = True


class PolicyAnswer(Contract):
    """GET and PATCH /admin/policy."""

    policy: Policy
    version: int


# --- projects -------------------------------------------------------------------------------


class Ref(Contract):
    """The newest commit of an authority; no commit yet: ``commit_id`` null and ``seq`` 0."""

    owner: str
    """A project id, or the Organization's id."""
    commit_id: str | None
    seq: int


class Project(Contract):
    """One Project."""

    project_id: str
    name: str
    guide_path: str
    policy: Policy
    ref: Ref
    role: Role | None
    """The caller's own role; null for an Org owner or admin who is no member."""
    version: int
    created_at: int


class ProjectPage(Contract):
    """GET /projects (``name`` filters by exact name)."""

    projects: list[Project]
    next_cursor: str | None


class ProjectCreate(Contract):
    """POST /projects; the caller becomes its owner."""

    name: Name
    guide_path: str = DEFAULT_GUIDE_PATH


class ProjectChange(Contract):
    """PATCH /projects/{id}, with If-Match; an omitted field stays."""

    name: Name | None = None
    guide_path: str | None = None
    required_approvals: int | None = Field(default=None, ge=0, le=10)
    allow_self_approval: bool | None = None


class Member(Contract):
    """One member of a Project."""

    user_id: str
    email: str
    name: str
    role: Role


class MemberPage(Contract):
    """GET /projects/{id}/members."""

    members: list[Member]
    next_cursor: str | None


class MemberAdd(Contract):
    """POST /projects/{id}/members."""

    email: Email
    role: Role = Role.MEMBER


class MemberChange(Contract):
    """PATCH /projects/{id}/members/{user_id}."""

    role: Role


# --- memory ---------------------------------------------------------------------------------


class ResourceSummary(Contract):
    """One published resource without its body."""

    resource_id: str
    scope: Scope
    path: str
    title: str
    description: str
    content_hash: str
    org_source: OrgSource | None = None
    selected: bool | None = None
    """In an Org listing with ``project_id``: whether that Project selects it."""


class ResourcePage(Contract):
    """GET /projects/{id}/memories and GET /org/memories."""

    resources: list[ResourceSummary]
    next_cursor: str | None


class ResourceAnswer(Contract):
    """GET /projects/{id}/memories/{mem} and GET /org/memories/{mem}."""

    resource: PublishedResource
    ref: Ref


class Selections(Contract):
    """GET and PUT /projects/{id}/org-selections: the whole set."""

    revision: int
    resources: list[ResourceSummary]


class SelectionsPut(Contract):
    """PUT /projects/{id}/org-selections, with If-Match revision."""

    resource_ids: list[Id] = Field(max_length=20_000)


class Adaptation(Contract):
    """One adaptation of a Project and how its source stands."""

    resource_id: str
    path: str
    org_source: OrgSource
    source_path: str | None
    """Null when the source was deleted."""
    newest_commit_id: str | None
    outdated: bool


class Adaptations(Contract):
    """GET /projects/{id}/adaptations."""

    adaptations: list[Adaptation]


class CommitChange(Contract):
    """One change of a commit: the hashed fields (see ``rules.chain.Change``) and the body."""

    resource_id: str
    scope: Scope
    path: str
    description: str
    content_hash: str
    org_source: OrgSource | None = None
    removed: bool = False
    body: str | None = None
    """Null on a removal."""


class CommitRecord(Contract):
    """One verified step of an authority's history."""

    commit_id: str
    owner: str
    seq: int
    parent: str | None
    created_at: int
    review_id: str | None
    author_id: str | None
    changes: list[CommitChange]


class CommitPage(Contract):
    """GET /projects/{id}/commits?after= and GET /org/commits?after=, oldest first."""

    commits: list[CommitRecord]
    has_more: bool


class SnapshotHeader(Contract):
    """First line of a snapshot (NDJSON); then one PublishedResource a line; then SnapshotEnd."""

    record: Literal["snapshot"] = "snapshot"
    project_id: str
    ref: Ref
    count: int


class SnapshotEnd(Contract):
    """Last line of a snapshot; a body without it was cut."""

    record: Literal["end"] = "end"
    count: int


# --- sync -----------------------------------------------------------------------------------


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


# --- drafts ---------------------------------------------------------------------------------


class UploadRequest(Contract):
    """POST /drafts/{draft_id}/operations: the only upload, idempotent by (installation, operation).

    Operations come in order and without holes. One that the server has is answered as the first
    time. A gap: 409 ``operation_out_of_order`` with ``details.expected_ordinal``. The same id with
    another content: 422 ``idempotency_mismatch``.
    """

    installation_id: str = Field(pattern=r"^ins_[A-Za-z0-9_.-]{1,120}$")
    draft: DraftHeader
    operations: list[DraftOperation] = Field(min_length=1, max_length=limits.UPLOAD_OPERATIONS)


class Draft(Contract):
    """One Draft as the server holds it."""

    draft_id: str
    project_id: str
    scope: Scope
    resource_id: str
    author_id: str
    status: DraftStatus
    freshness: Freshness
    reconciliation: Reconciliation
    path: str
    base_commit: str | None
    last_ordinal: int
    review_id: str | None
    merged_commit: str | None
    merged_seq: int | None
    updated_at: int


class UploadAnswer(Contract):
    """What the upload came to; a replay gives the same ``accepted``."""

    accepted: list[str]
    draft: Draft


class DraftDetail(Contract):
    """GET /drafts/{draft_id}."""

    draft: Draft
    base: ResourceState
    state: ResourceState


class DraftPage(Contract):
    """GET /drafts (``project_id``, ``status`` filter)."""

    drafts: list[Draft]
    next_cursor: str | None


class Conflict(Contract):
    """One thing that does not go together, as values."""

    kind: Literal["content", "path", "description", "existence", "org_source", "path_occupied"]
    base: str | None = None
    current: str | None = None
    draft: str | None = None


class Candidate(Contract):
    """POST /drafts/{draft_id}/reconciliation: the three states and what comes of them."""

    draft_id: str
    onto: Ref
    base: ResourceState
    current: ResourceState
    draft: ResourceState
    result: ResourceState | None
    """The merged state when there is no conflict."""
    conflicts: list[Conflict]


# --- reviews --------------------------------------------------------------------------------


class ContributionEntry(Contract):
    """One Draft of a Project Review that shall also be offered to the Organization."""

    draft_id: Id
    path: str | None = None
    target_id: str | None = None


class ReviewCreate(Contract):
    """POST /reviews: an ordered, non-empty set of Drafts of one Project and one scope."""

    project_id: Id
    scope: Scope
    draft_ids: list[Id] = Field(min_length=1, max_length=limits.REVIEW_DRAFTS)
    title: str = Field(min_length=1, max_length=limits.TITLE_CHARACTERS)
    description: str = Field(default="", max_length=limits.COMMENT_CHARACTERS)
    org_contribution: list[ContributionEntry] = Field(default_factory=list)


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
    contribution_error: str | None = None


class DecisionCreate(Contract):
    """POST /reviews/{review_id}/decisions."""

    decision: Decision
    version: int = Field(ge=1)
    comment: str = Field(default="", max_length=limits.COMMENT_CHARACTERS)


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
    """POST /reviews/{review_id}/comments; ``path`` and ``line`` anchor it to the final content."""

    body: str = Field(min_length=1, max_length=limits.COMMENT_CHARACTERS)
    draft_id: str | None = None
    line: int | None = Field(default=None, ge=1)


class Comment(Contract):
    """One comment of a Review."""

    comment_id: str
    author_id: str
    author_email: str
    body: str
    draft_id: str | None
    line: int | None
    resolved: bool
    created_at: int


class CommentPage(Contract):
    """GET /reviews/{review_id}/comments, oldest first."""

    comments: list[Comment]
    next_cursor: str | None
