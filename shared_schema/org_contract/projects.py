"""Projects and their members."""

from __future__ import annotations

from pydantic import Field

from shared_schema.memory import Contract
from shared_schema.org_contract.common import DEFAULT_GUIDE_PATH, Email, Name, Role
from shared_schema.org_contract.identity import Policy


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
