"""Writing a commit: the only place where an authority's view and ref change."""

from collections.abc import Sequence

from org_server.domain.refs import RefValue
from org_server.domain.view_changes import ViewChange
from org_server.store.commits import move_ref, read_ref
from org_server.store.tables import CommitRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork
from org_server.store.versions import as_change, current_versions, write_changes
from shared_schema.org_contract import FeedEventType
from shared_schema.rules.chain import Change, commit_id


def publish_commit(
    uow: UnitOfWork,
    owner: str,
    changes: Sequence[ViewChange],
    author_id: str | None,
    review_id: str | None = None,
) -> CommitRow:
    """Append one commit to the authority's chain, move its ref and tell the feed.

    ``owner`` is a Project's or the Organization's id; ``changes`` name a resource at most once and
    remove only what the view holds (else ``ValueError``). Path rules are the caller's to check
    (`org_server.store.versions.find_clashes`), and texts are stored before. Costs rows in
    proportion to the changes. Raises ``precondition_failed`` when the ref moved in between.
    """
    if not changes:
        raise ValueError("a commit changes something")
    head = read_ref(uow, owner)
    former = current_versions(uow, owner, (change.resource_id for change in changes))
    hashed = sorted(
        (_hashed(change, former.get(change.resource_id)) for change in changes),
        key=lambda change: change.resource_id,
    )
    seq = head.seq + 1
    new = RefValue(commit_id(owner, seq, head.commit_id, hashed), seq)
    move_ref(uow, owner, head, new)
    row = CommitRow(
        owner=owner,
        seq=seq,
        commit_id=new.commit_id or "",
        parent=head.commit_id,
        created_at=uow.now,
        author_id=author_id,
        review_id=review_id,
    )
    uow.add(row)
    write_changes(uow, owner, seq, hashed)
    uow.emit(
        FeedEventType.REF_MOVED,
        project_id=None if owner == uow.org.id else owner,
        review_id=review_id,
        commit_id=row.commit_id,
        commit_seq=seq,
    )
    return row


def _hashed(change: ViewChange, former: VersionRow | None) -> Change:
    """Return the change with all fields that the commit id covers."""
    state = change.state
    if state.exists:
        return Change(
            resource_id=change.resource_id,
            scope=change.scope,
            path=state.path,
            description=state.description,
            content_hash=state.content_hash or "",
            org_source=state.org_source,
        )
    if former is None or former.removed:
        raise ValueError(f"{change.resource_id} is not in the view, so it cannot be removed")
    # A removal says what was removed.
    return as_change(former).model_copy(update={"removed": True})
