"""The server's tables; nothing outside ``store`` and the services sees a row of them.

Times are epoch milliseconds. ``owner`` is the id of an authority: the Organization's or a
Project's. An authority's published state is kept as version ranges: a row of ``version`` holds
from commit ``from_seq`` up to, but not including, ``to_seq`` (null: still). A commit therefore
costs rows in proportion to what it changes, and any earlier state can be read.

Rows are not validated (SQLModel does not, for tables); the CHECK constraints are the last guard.
"""

from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

BigInt = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits on both databases; SQLite counts rows up by themselves only for INTEGER."""

ByteOrdered = String().with_variant(String(collation="C"), "postgresql")
"""Text compared byte by byte on both databases, so that a prefix is a range of the index."""

_registry = registry(metadata=MetaData(naming_convention=NAMING))


class Row(SQLModel, registry=_registry):
    """Base of the server's rows, with metadata of its own."""


metadata: MetaData = Row.metadata


def _one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


_ROLES = ("owner", "admin", "member")
_SCOPES = ("org", "project")


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


class FeedCounterRow(Row, table=True):
    """The last feed number given out; one row, and the lock of every writing transaction."""

    __tablename__ = "feed_counter"
    __table_args__: ClassVar[Any] = (CheckConstraint("id = 1", name="one_row"),)
    id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    seq: int = Field(default=0, sa_type=BigInt)


class UserRow(Row, table=True):
    """One user."""

    __tablename__ = "user_account"
    __table_args__: ClassVar[Any] = (UniqueConstraint("email_key"), _one_of("role", *_ROLES))
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
    __table_args__: ClassVar[Any] = (_one_of("role", *_ROLES),)
    project_id: str = Field(primary_key=True, foreign_key="project.id")
    user_id: str = Field(primary_key=True, foreign_key="user_account.id", index=True)
    role: str
    created_at: int = Field(sa_type=BigInt)


class CommitRow(Row, table=True):
    """One step of an authority's hash chain; its changes are the versions from its number on."""

    __tablename__ = "authority_commit"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("owner", "commit_id"),
        CheckConstraint("seq >= 1", name="seq"),
    )
    owner: str = Field(primary_key=True)
    seq: int = Field(primary_key=True, sa_type=BigInt, sa_column_kwargs={"autoincrement": False})
    commit_id: str
    parent: str | None = None
    created_at: int = Field(sa_type=BigInt)
    author_id: str | None = None
    review_id: str | None = None


class BlobRow(Row, table=True):
    """One text, once, whatever holds it."""

    __tablename__ = "blob"
    content_hash: str = Field(primary_key=True)
    body: str = Field(sa_type=Text)


class VersionRow(Row, table=True):
    """One resource in one authority's view over a range of its commits; ``removed`` marks its end."""

    __tablename__ = "version"
    __table_args__: ClassVar[Any] = (
        Index(
            "uq_version_live_path",
            "owner",
            "path_key",
            unique=True,
            sqlite_where=text("to_seq IS NULL AND NOT removed"),
            postgresql_where=text("to_seq IS NULL AND NOT removed"),
        ),
        Index(
            "uq_version_current",
            "owner",
            "resource_id",
            unique=True,
            sqlite_where=text("to_seq IS NULL"),
            postgresql_where=text("to_seq IS NULL"),
        ),
        Index("ix_version_owner_from_seq", "owner", "from_seq"),
        Index("ix_version_owner_source", "owner", "source_resource_id"),
        Index("ix_version_resource", "resource_id"),
        _one_of("scope", *_SCOPES),
        CheckConstraint("to_seq IS NULL OR to_seq > from_seq", name="range"),
        CheckConstraint("removed OR content_hash IS NOT NULL", name="content"),
    )
    owner: str = Field(primary_key=True)
    resource_id: str = Field(primary_key=True)
    from_seq: int = Field(primary_key=True, sa_type=BigInt, sa_column_kwargs={"autoincrement": False})
    to_seq: int | None = Field(default=None, sa_type=BigInt)
    removed: bool = False
    scope: str
    path: str
    path_key: str = Field(sa_type=ByteOrdered)
    description: str = Field(default="", sa_type=Text)
    content_hash: str | None = Field(default=None, foreign_key="blob.content_hash")
    source_resource_id: str | None = None
    source_commit_id: str | None = None


class SelectionRow(Row, table=True):
    """One Org resource that one Project has selected."""

    __tablename__ = "selection"
    project_id: str = Field(primary_key=True, foreign_key="project.id")
    resource_id: str = Field(primary_key=True, index=True)
    created_at: int = Field(sa_type=BigInt)


class DraftRow(Row, table=True):
    """One Draft with the state that its operations came to."""

    __tablename__ = "draft"
    __table_args__: ClassVar[Any] = (
        _one_of("scope", *_SCOPES),
        _one_of("status", "open", "submitted", "merged", "discarded"),
        _one_of("reconciliation", "unknown", "clean", "conflicts"),
        Index("ix_draft_author_id_updated", "author_id", "updated_at"),
        Index("ix_draft_project_status", "project_id", "status"),
    )
    id: str = Field(primary_key=True)
    project_id: str = Field(foreign_key="project.id")
    scope: str
    resource_id: str = Field(index=True)
    author_id: str = Field(foreign_key="user_account.id")
    installation_id: str
    status: str = "open"
    reconciliation: str = "unknown"
    base_commit: str | None = None
    """The target authority's commit that the Draft was made on; its state is read from ``version``."""
    base_seq: int = Field(default=0, sa_type=BigInt)
    org_source_resource_id: str | None = None
    org_source_commit_id: str | None = None
    state_exists: bool = False
    state_path: str = ""
    state_description: str = Field(default="", sa_type=Text)
    state_content_hash: str | None = Field(default=None, foreign_key="blob.content_hash")
    state_source_resource_id: str | None = None
    state_source_commit_id: str | None = None
    last_ordinal: int = 0
    review_id: str | None = Field(default=None, index=True)
    merged_commit: str | None = None
    merged_seq: int | None = Field(default=None, sa_type=BigInt)
    created_at: int = Field(sa_type=BigInt)
    updated_at: int = Field(sa_type=BigInt)


class DraftOperationRow(Row, table=True):
    """One uploaded operation and what it was answered; the key of exactly-once effects."""

    __tablename__ = "draft_operation"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("installation_id", "operation_id"),
        CheckConstraint("ordinal >= 1", name="ordinal"),
    )
    draft_id: str = Field(primary_key=True, foreign_key="draft.id")
    ordinal: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    installation_id: str
    operation_id: str
    fingerprint: str
    kind: str
    payload: dict[str, Any] = Field(sa_type=JSON)
    """The operation with its body replaced by the blob's hash."""
    answer: dict[str, Any] = Field(sa_type=JSON)
    created_at: int = Field(sa_type=BigInt)


class ReviewRow(Row, table=True):
    """One Review; ``owner`` is the authority that it publishes to."""

    __tablename__ = "review"
    __table_args__: ClassVar[Any] = (
        _one_of("scope", *_SCOPES),
        _one_of("status", "open", "approved", "merged", "rejected", "withdrawn"),
        Index("ix_review_project_created", "project_id", "created_at", "id"),
        Index("ix_review_created", "created_at", "id"),
    )
    id: str = Field(primary_key=True)
    project_id: str = Field(foreign_key="project.id")
    scope: str
    owner: str
    title: str
    description: str = Field(default="", sa_type=Text)
    author_id: str = Field(foreign_key="user_account.id")
    status: str = "open"
    version: int = 1
    result_hash: str
    frozen: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    """What was judged, kept once the Review is final."""
    contribution: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    commit_id: str | None = None
    created_at: int = Field(sa_type=BigInt)
    updated_at: int = Field(sa_type=BigInt)


class ReviewDraftRow(Row, table=True):
    """One Draft of a Review, at its place."""

    __tablename__ = "review_draft"
    review_id: str = Field(primary_key=True, foreign_key="review.id")
    draft_id: str = Field(primary_key=True, foreign_key="draft.id", index=True)
    position: int


class ApprovalRow(Row, table=True):
    """One decision of a reviewer, bound to the result that was judged."""

    __tablename__ = "approval"
    __table_args__: ClassVar[Any] = (_one_of("decision", "approved", "rejected"),)
    id: int | None = Field(default=None, primary_key=True, sa_type=BigInt)
    review_id: str = Field(foreign_key="review.id", index=True)
    user_id: str = Field(foreign_key="user_account.id")
    decision: str
    comment: str = Field(default="", sa_type=Text)
    result_hash: str
    at: int = Field(sa_type=BigInt)


class ReviewCommentRow(Row, table=True):
    """One comment on a Review, on the whole or at a line of one Draft's result."""

    __tablename__ = "review_comment"
    __table_args__: ClassVar[Any] = (Index("ix_review_comment_order", "review_id", "created_at", "id"),)
    id: str = Field(primary_key=True)
    review_id: str = Field(foreign_key="review.id")
    author_id: str = Field(foreign_key="user_account.id")
    body: str = Field(sa_type=Text)
    draft_id: str | None = None
    line: int | None = None
    resolved: bool = False
    created_at: int = Field(sa_type=BigInt)


class FeedEventRow(Row, table=True):
    """One event of the change feed. ``audience`` says who may read it; see ``unit_of_work.emit``."""

    __tablename__ = "feed_event"
    __table_args__: ClassVar[Any] = (
        _one_of("audience", "author", "project", "org"),
        Index("ix_feed_event_project_seq", "project_id", "seq"),
    )
    seq: int = Field(primary_key=True, sa_type=BigInt, sa_column_kwargs={"autoincrement": False})
    at: int = Field(sa_type=BigInt)
    type: str
    audience: str
    project_id: str | None = None
    user_id: str | None = None
    """With audience ``author``: the only reader. Otherwise whom the event is about, if anybody."""
    draft_id: str | None = None
    review_id: str | None = None
    resource_id: str | None = None
    commit_id: str | None = None
    commit_seq: int | None = Field(default=None, sa_type=BigInt)


class AuditEventRow(Row, table=True):
    """One administrative or publishing action."""

    __tablename__ = "audit_event"
    seq: int | None = Field(default=None, primary_key=True, sa_type=BigInt)
    at: int = Field(sa_type=BigInt)
    actor_id: str | None = None
    action: str
    subject: str
    data: dict[str, Any] = Field(default_factory=dict, sa_type=JSON)
