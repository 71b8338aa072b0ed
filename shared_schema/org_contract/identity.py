"""Users, tokens, audit and policy."""

from __future__ import annotations

from pydantic import Field

from shared_schema import limits
from shared_schema.memory import Contract
from shared_schema.org_contract.common import Email, Id, Name, Role


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
