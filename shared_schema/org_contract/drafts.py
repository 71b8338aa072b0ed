"""Drafts as the server holds them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared_schema import limits
from shared_schema.drafts import DraftHeader, DraftOperation, DraftStatus, Freshness, Reconciliation
from shared_schema.memory import Contract, ResourceState, Scope
from shared_schema.org_contract.projects import Ref


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
