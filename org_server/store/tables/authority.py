"""What is published: commits, versions, texts, selections."""

from typing import Any, ClassVar

from sqlalchemy import CheckConstraint, Index, Text, UniqueConstraint, text
from sqlmodel import Field

from org_server.store.tables.base import SCOPES, BigInt, ByteOrdered, Row, one_of


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
        one_of("scope", *SCOPES),
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
