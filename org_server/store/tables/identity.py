"""The Organization, its users, tokens and Projects."""

from typing import Any, ClassVar

from sqlalchemy import JSON, Index, UniqueConstraint, text
from sqlmodel import Field

from org_server.store.tables.base import ROLES, BigInt, Row, one_of


class OrgRow(Row, table=True):
    """The Organization; one row."""

    __tablename__ = "org"
    id: str = Field(primary_key=True)
    name: str
    epoch: str
    """Names the database's lineage; a restore makes a new one."""
    policy_required_approvals: int = 1
    policy_allow_self_approval: bool = True
    policy_version: int = 1
    head_commit: str | None = None
    head_seq: int = Field(default=0, sa_type=BigInt)
    created_at: int = Field(sa_type=BigInt)


class UserRow(Row, table=True):
    """One user."""

    __tablename__ = "user_account"
    __table_args__: ClassVar[Any] = (UniqueConstraint("email_key"), one_of("role", *ROLES))
    id: str = Field(primary_key=True)
    email: str
    email_key: str
    """Case-folded e-mail address."""
    name: str
    role: str
    disabled: bool = False
    version: int = 1
    created_at: int = Field(sa_type=BigInt)


class TokenRow(Row, table=True):
    """One API token; its secret is not kept, only the SHA-256."""

    __tablename__ = "token"
    __table_args__: ClassVar[Any] = (UniqueConstraint("hash"),)
    id: str = Field(primary_key=True)
    user_id: str = Field(foreign_key="user_account.id", index=True)
    hash: str
    label: str = ""
    read_only: bool = False
    project_ids: list[str] | None = Field(default=None, sa_type=JSON)
    created_at: int = Field(sa_type=BigInt)
    expires_at: int | None = Field(default=None, sa_type=BigInt)
    last_used_at: int | None = Field(default=None, sa_type=BigInt)
    revoked_at: int | None = Field(default=None, sa_type=BigInt)


class ProjectRow(Row, table=True):
    """One Project; a deleted one stays, without its name being taken."""

    __tablename__ = "project"
    __table_args__: ClassVar[Any] = (
        Index(
            "uq_project_name_key_live",
            "name_key",
            unique=True,
            sqlite_where=text("deleted_at IS NULL"),
            postgresql_where=text("deleted_at IS NULL"),
        ),
    )
    id: str = Field(primary_key=True)
    name: str
    name_key: str
    """Case-folded name in NFC."""
    guide_path: str
    required_approvals: int = 1
    allow_self_approval: bool = True
    version: int = 1
    selection_revision: int = 0
    head_commit: str | None = None
    head_seq: int = Field(default=0, sa_type=BigInt)
    created_at: int = Field(sa_type=BigInt)
    deleted_at: int | None = Field(default=None, sa_type=BigInt)


class MemberRow(Row, table=True):
    """One user's membership of one Project."""

    __tablename__ = "member"
    __table_args__: ClassVar[Any] = (one_of("role", *ROLES),)
    project_id: str = Field(primary_key=True, foreign_key="project.id")
    user_id: str = Field(primary_key=True, foreign_key="user_account.id", index=True)
    role: str
    created_at: int = Field(sa_type=BigInt)
