"""What happened: the feed, the audit, what waits for a user, repeated requests."""

from typing import Any, ClassVar

from sqlalchemy import JSON, CheckConstraint, Index, Text, UniqueConstraint
from sqlmodel import Field

from org_server.store.tables.base import BigInt, Row, one_of


class FeedCounterRow(Row, table=True):
    """The last feed number given out; one row, and the lock of every writing transaction."""

    __tablename__ = "feed_counter"
    __table_args__: ClassVar[Any] = (CheckConstraint("id = 1", name="one_row"),)
    id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    seq: int = Field(default=0, sa_type=BigInt)


class FeedEventRow(Row, table=True):
    """One event of the change feed. ``audience`` says who may read it; see ``unit_of_work.emit``."""

    __tablename__ = "feed_event"
    __table_args__: ClassVar[Any] = (
        one_of("audience", "author", "project", "org"),
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


class InboxItemRow(Row, table=True):
    """One thing that waits for one user; ``about`` keeps the same thing from waiting twice."""

    __tablename__ = "inbox_item"
    __table_args__: ClassVar[Any] = (
        one_of(
            "kind",
            "review_requested",
            "review_commented",
            "review_decided",
            "review_merged",
            "draft_in_conflict",
            "adaptation_source_updated",
            "contribution_failed",
        ),
        UniqueConstraint("user_id", "kind", "about"),
        Index("ix_inbox_item_user_created", "user_id", "created_at", "id"),
    )
    id: str = Field(primary_key=True)
    user_id: str = Field(foreign_key="user_account.id")
    kind: str
    about: str
    """What makes the item the only one of its kind, e.g. a Review's id and its result hash."""
    project_id: str = Field(foreign_key="project.id")
    review_id: str | None = Field(default=None, foreign_key="review.id", index=True)
    draft_id: str | None = Field(default=None, foreign_key="draft.id")
    resource_id: str | None = None
    comment_id: str | None = Field(default=None, foreign_key="review_comment.id")
    actor_id: str | None = Field(default=None, foreign_key="user_account.id")
    """Who caused it, if a person did."""
    version: int = 1
    created_at: int = Field(sa_type=BigInt)
    read_at: int | None = Field(default=None, sa_type=BigInt)
    done_at: int | None = Field(default=None, sa_type=BigInt)
    """When there was nothing left to do about it, e.g. the requested Review became final."""


class RepeatedRequestRow(Row, table=True):
    """The answer to a request with an ``Idempotency-Key``, written with its effect."""

    __tablename__ = "repeated_request"
    __table_args__: ClassVar[Any] = (Index("ix_repeated_request_created", "created_at"),)
    user_id: str = Field(primary_key=True, foreign_key="user_account.id")
    key: str = Field(primary_key=True)
    fingerprint: str
    """Of method, path and body: the same key with another request is refused."""
    status: int
    answer: str | None = Field(default=None, sa_type=Text)
    """The body as it was sent; null where it held a secret."""
    etag: str | None = None
    secret_id: str | None = None
    """The token whose secret was in the answer."""
    checks: list[list[Any]] = Field(default_factory=list, sa_type=JSON)
    """The access checks that were passed, each ``[action, project or null]``; a repetition has to."""
    created_at: int = Field(sa_type=BigInt)
