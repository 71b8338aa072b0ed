"""Published resources and commits as contract values."""

from org_server.store.tables import CommitRow, VersionRow
from org_server.store.versions import as_change, state_of
from shared_schema.memory import PublishedResource, Scope
from shared_schema.org_contract import CommitChange, CommitRecord


def as_published(row: VersionRow, body: str) -> PublishedResource:
    """Return a version that is no removal, with its text."""
    return PublishedResource(
        resource_id=row.resource_id,
        scope=Scope(row.scope),
        path=row.path,
        description=row.description,
        body=body,
        content_hash=row.content_hash or "",
        org_source=state_of(row).org_source,
    )


def as_record(commit: CommitRow, versions: list[VersionRow], texts: dict[str, str]) -> CommitRecord:
    """Return a commit with the versions that it began, whose texts are given by content hash."""
    return CommitRecord(
        commit_id=commit.commit_id,
        owner=commit.owner,
        seq=commit.seq,
        parent=commit.parent,
        created_at=commit.created_at,
        review_id=commit.review_id,
        author_id=commit.author_id,
        changes=[_change(row, texts) for row in versions],
    )


def _change(row: VersionRow, texts: dict[str, str]) -> CommitChange:
    change = as_change(row)
    body = None if change.removed else texts[change.content_hash]
    return CommitChange(**dict(change), body=body)
