"""Reviews, decisions and comments."""

from typing import Any, ClassVar

from sqlalchemy import JSON, Index, Text
from sqlmodel import Field

from org_server.store.tables.base import SCOPES, BigInt, Row, one_of


class ReviewRow(Row, table=True):
    """One Review; ``owner`` is the authority that it publishes to."""

    __tablename__ = "review"
    __table_args__: ClassVar[Any] = (
        one_of("scope", *SCOPES),
        one_of("status", "open", "approved", "merged", "rejected", "withdrawn"),
        Index("ix_review_project_created", "project_id", "created_at", "id"),
        Index("ix_review_created", "created_at", "id"),
        Index("uq_review_contribution_of", "contribution_of", unique=True),
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
    """The recorded Org contribution and what came of it."""
    contribution_of: str | None = Field(default=None, foreign_key="review.id")
    """On an Org Review that offers what a Project Review published: that Project Review."""
    reverts: str | None = Field(default=None, foreign_key="review.id", index=True)
    """The merged Review whose changes this one takes back."""
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
    __table_args__: ClassVar[Any] = (one_of("decision", "approved", "rejected"),)
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
    path: str | None = None
    """The path of the Draft's result when it was commented."""
    line: int | None = None
    anchor_hash: str | None = Field(default=None, foreign_key="blob.content_hash")
    """The text whose line ``line`` was commented; the present line is found from it."""
    resolved: bool = False
    resolved_by: str | None = Field(default=None, foreign_key="user_account.id")
    resolved_at: int | None = Field(default=None, sa_type=BigInt)
    created_at: int = Field(sa_type=BigInt)
