"""Drafts and their operations."""

from typing import Any, ClassVar

from sqlalchemy import JSON, CheckConstraint, Index, Text, UniqueConstraint
from sqlmodel import Field

from org_server.store.tables.base import SCOPES, BigInt, Row, one_of


class DraftRow(Row, table=True):
    """One Draft with the state that its operations came to."""

    __tablename__ = "draft"
    __table_args__: ClassVar[Any] = (
        one_of("scope", *SCOPES),
        one_of("status", "open", "submitted", "merged", "discarded"),
        one_of("reconciliation", "unknown", "clean", "conflicts"),
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
