"""The client's tables; nothing outside ``client.store`` sees a row of them.

Times are epoch milliseconds. Texts of published resources stand once in ``blob``, whatever names
them; Drafts and operations carry their own texts, because they have to survive whatever is pulled.

The migrations create the tables; a test holds these classes and the migrated schema together.
Rows are not validated (SQLModel does not, for tables): every module of this package maps by hand.
"""

from typing import Any, ClassVar

from sqlalchemy import CheckConstraint, Index, LargeBinary, MetaData, Text, UniqueConstraint, text
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

_registry = registry(metadata=MetaData(naming_convention=NAMING))


class Table(SQLModel, registry=_registry):
    """Base of the client's tables, with metadata of its own."""


metadata: MetaData = Table.metadata


def _one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


class MetaTable(Table, table=True):
    """Facts of this installation: its id, the key that signs activation states."""

    __tablename__ = "meta"
    key: str = Field(primary_key=True)
    value: str


class AccountTable(Table, table=True):
    """Who is signed in where; one row."""

    __tablename__ = "account"
    __table_args__: ClassVar[Any] = (CheckConstraint("id = 1", name="one_row"),)
    id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    server_url: str
    me: str = Field(sa_type=Text)
    signed_out: bool = False


class ProjectTable(Table, table=True):
    """One Project that this machine knows; a lost one stays, without its published rows."""

    __tablename__ = "project"
    project_id: str = Field(primary_key=True)
    name: str
    role: str | None = None
    access: bool = True
    guide_path: str
    installed_commit: str | None = None
    installed_seq: int = 0
    head_commit: str | None = None
    head_seq: int = 0
    snapshot_at: int | None = None
    last_success_at: int | None = None
    last_error: str | None = None
    projection_version: int = 0


class BlobTable(Table, table=True):
    """One published text, once."""

    __tablename__ = "blob"
    content_hash: str = Field(primary_key=True)
    body: str = Field(sa_type=Text)


class PublishedTable(Table, table=True):
    """One published resource in a Project's view, at the installed commit."""

    __tablename__ = "published"
    __table_args__: ClassVar[Any] = (
        _one_of("scope", "org", "project"),
        Index("ix_published_content_hash", "content_hash"),
    )
    project_id: str = Field(primary_key=True, foreign_key="project.project_id")
    resource_id: str = Field(primary_key=True)
    scope: str
    path: str
    description: str = Field(sa_type=Text)
    content_hash: str = Field(foreign_key="blob.content_hash")
    source_resource_id: str | None = None
    source_commit_id: str | None = None


class DraftTable(Table, table=True):
    """One Draft; ``seq`` is the order of creation on this machine."""

    __tablename__ = "draft"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("draft_id"),
        _one_of("scope", "org", "project"),
        _one_of("status", "open", "submitted", "merged", "discarded"),
        _one_of("reconciliation", "unknown", "clean", "conflicts"),
        # At most one active Draft for a resource of a Project.
        Index(
            "uq_draft_active",
            "project_id",
            "resource_id",
            unique=True,
            sqlite_where=text("status IN ('open', 'submitted')"),
        ),
        Index("ix_draft_project_id_resource_id", "project_id", "resource_id"),
        Index("ix_draft_project_id_status", "project_id", "status"),
        {"sqlite_autoincrement": True},
    )
    seq: int | None = Field(default=None, primary_key=True)
    draft_id: str
    project_id: str = Field(foreign_key="project.project_id")
    scope: str
    resource_id: str
    overlay: bool = True
    status: str = "open"
    base_commit: str | None = None
    base: str = Field(sa_type=Text)
    source_resource_id: str | None = None
    source_commit_id: str | None = None
    review_id: str | None = None
    merged_commit: str | None = None
    merged_seq: int | None = None
    reconciliation: str = "unknown"
    conflicts: str = "[]"
    created_at: int
    updated_at: int


class OperationTable(Table, table=True):
    """One durable local write. A negative ordinal marks one that was cancelled before it was sent."""

    __tablename__ = "operation"
    __table_args__: ClassVar[Any] = (UniqueConstraint("draft_id", "ordinal"),)
    operation_id: str = Field(primary_key=True)
    draft_id: str = Field(foreign_key="draft.draft_id")
    ordinal: int
    kind: str
    payload: str = Field(sa_type=Text)
    fingerprint: str | None = None
    answer: str | None = Field(default=None, sa_type=Text)
    created_at: int


class OutboxTable(Table, table=True):
    """One operation on its way to the server. ``sent`` is set by the first claim and never cleared."""

    __tablename__ = "outbox"
    __table_args__: ClassVar[Any] = (
        _one_of("sync_status", "queued", "syncing", "retrying", "synced", "failed"),
        Index("ix_outbox_sync_status_next_attempt_at", "sync_status", "next_attempt_at"),
        Index("ix_outbox_draft_id", "draft_id"),
        Index("ix_outbox_project_id_sync_status", "project_id", "sync_status"),
    )
    operation_id: str = Field(primary_key=True, foreign_key="operation.operation_id")
    draft_id: str = Field(foreign_key="draft.draft_id")
    project_id: str
    sync_status: str
    attempts: int = 0
    sent: bool = False
    lease: str | None = None
    lease_at: int | None = None
    next_attempt_at: int | None = None
    cause: str | None = None
    error_code: str | None = None
    error_message: str | None = Field(default=None, sa_type=Text)
    retry_can_help: bool | None = None
    streak: int = 0
    updated_at: int


class BindingTable(Table, table=True):
    """Directory → Project."""

    __tablename__ = "binding"
    directory: str = Field(primary_key=True)
    project_id: str
    created_at: int


class SyncStateTable(Table, table=True):
    """How far the server's feed was applied; one row."""

    __tablename__ = "sync_state"
    __table_args__: ClassVar[Any] = (CheckConstraint("id = 1", name="one_row"),)
    id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    epoch: str | None = None
    cursor: str | None = None
    last_round_at: int | None = None
    last_error: str | None = Field(default=None, sa_type=Text)


class RetrievalRunTable(Table, table=True):
    """The record of one activation; ``trace`` is JSON, compressed with zlib."""

    __tablename__ = "retrieval_run"
    __table_args__: ClassVar[Any] = (
        Index("ix_retrieval_run_project_id_created_at", "project_id", "created_at"),
    )
    run_id: str = Field(primary_key=True)
    project_id: str
    created_at: int
    query: str = Field(sa_type=Text)
    index_revision: str
    fragments: int
    latency_ms: float
    pinned: bool = False
    trace: bytes = Field(sa_type=LargeBinary)


class ActivationStateTable(Table, table=True):
    """The units that one agent's context holds; ``units`` is JSON, compressed with zlib."""

    __tablename__ = "activation_state"
    __table_args__: ClassVar[Any] = (
        Index("ix_activation_state_project_id", "project_id"),
        Index("ix_activation_state_last_used_at", "last_used_at"),
    )
    state_id: str = Field(primary_key=True)
    project_id: str
    units: bytes = Field(sa_type=LargeBinary)
    created_at: int
    last_used_at: int
