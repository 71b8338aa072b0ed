"""What changed and who published it: histories of resources and authorities, and blame."""

from __future__ import annotations

from enum import StrEnum

from shared_schema.memory import Contract, Scope


class ChangeKind(StrEnum):
    """What a commit did to one resource of a view."""

    CREATED = "created"
    CHANGED = "changed"
    MOVED = "moved"
    """Another path, perhaps with another content: compare the hashes."""
    REMOVED = "removed"
    RESTORED = "restored"
    """Published again under its id, after it was removed."""
    SHOWN = "shown"
    """An Org resource entered a Project's view."""
    HIDDEN = "hidden"
    """An Org resource left a Project's view."""


class PublishingReview(Contract):
    """The Review that published a commit, for those who may read it."""

    review_id: str
    title: str
    author_id: str
    author_email: str
    approvers: list[str]
    """E-mail addresses of those who approved exactly what was published, in their order."""


class CommitInfo(Contract):
    """One commit without its changes."""

    commit_id: str
    owner: str
    """The authority whose history it stands in: a Project's or the Organization's id."""
    seq: int
    created_at: int
    author_id: str | None
    review_id: str | None
    review: PublishingReview | None
    """Null where no Review published it, and where the caller may not read that Review."""


class ResourceChange(Contract):
    """What one commit did to one resource; nothing stands before a creation or after a removal."""

    resource_id: str
    scope: Scope
    kind: ChangeKind
    path_before: str | None
    path_after: str | None
    content_hash_before: str | None
    content_hash_after: str | None


class HistoryEntry(Contract):
    """One step of a resource's history."""

    commit: CommitInfo
    change: ResourceChange


class HistoryPage(Contract):
    """GET /projects/{id}/memories/{mem}/history and GET /org/memories/{mem}/history, newest first."""

    entries: list[HistoryEntry]
    next_cursor: str | None


class CommitEntry(Contract):
    """One commit of an authority, with the first of its changes by resource id."""

    commit: CommitInfo
    changes: list[ResourceChange]
    change_count: int
    """How many changes the commit has; ``…/commits?after=`` the one before holds all."""


class CommitLog(Contract):
    """GET /projects/{id}/history and GET /org/history, newest first."""

    entries: list[CommitEntry]
    next_cursor: str | None


class BlameRange(Contract):
    """``count`` lines from line ``first`` (counted from 1) that one commit last changed."""

    first: int
    count: int
    commit_id: str


class Blame(Contract):
    """GET …/memories/{mem}/blame: a content with the commit that last changed each of its lines."""

    resource_id: str
    owner: str
    """The authority whose commits are named; of an Org reference it is the Organization."""
    commit_id: str
    """The commit that published this content."""
    path: str
    content_hash: str
    body: str
    ranges: list[BlameRange]
    """In order; together they cover every line once."""
    commits: list[CommitInfo]
    """Those that the ranges name, oldest first."""
    complete: bool
    """False where a long history was not followed to its beginning: the lines of the oldest commit
    named may be older still."""
