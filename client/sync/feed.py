"""Applying one answer of ``GET /sync``: Projects, memberships, the fate of own Drafts, the cursor.

All of an answer is applied in one transaction together with its cursor, so the cursor never moves
ahead of what it stands for; applying an answer twice changes nothing. The published state is
another matter: each Project's installed commit says how far that one is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from client.domain.local_draft import LocalDraft
from client.store.projects import ProjectRow
from client.store.revocation import forget_project
from client.store.unit_of_work import UnitOfWork
from client.sync import deliveries
from client.sync.carrying import go_on_after
from shared_schema.drafts import DraftStatus
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.org_contract import Draft, FeedEvent, FeedEventType, ProjectHead, SyncAnswer
from shared_schema.sync_status import ParkingCause

_KNOWN: Final = frozenset(kind.value for kind in FeedEventType)


@dataclass
class Applied:
    """What an answer changed."""

    changed: set[str] = field(default_factory=set)
    """Projects that show something else now."""
    revoked: set[str] = field(default_factory=set)
    restored: bool = False
    """The server's database is another one than before."""


def check_known(answer: SyncAnswer) -> None:
    """Raise ``client_too_old`` for a kind of change that this client does not know; none is skipped."""
    for event in answer.events:
        if event.type not in _KNOWN:
            raise InterleafError(
                ErrorCode.CLIENT_TOO_OLD,
                f"The server sent a change of a kind that this release does not know ({event.type}). "
                "Update Interleaf on this machine; local work goes on meanwhile.",
                details={"type": event.type, "seq": event.seq},
            )


def apply_answer(uow: UnitOfWork, answer: SyncAnswer, now: int, *, anew: bool = False) -> Applied:
    """Apply an answer and its cursor inside the caller's transaction.

    ``anew``: it was asked for without a cursor, so nothing tells what happened in between.
    """
    check_known(answer)
    applied = Applied()
    known = {project.project_id: project for project in uow.projects.all()}
    heads = {head.project_id: head for head in answer.projects}
    state = uow.sync_state.get()
    for head in answer.projects:
        _apply_head(uow, known.get(head.project_id), head, applied)
        before = known.get(head.project_id)
        if (
            anew
            or state.cursor is None
            or before is None
            or not before.access
            or _membership_moved(answer, head)
        ):
            deliveries.restore(uow, ParkingCause.ACCESS_LOST, now, head.project_id)
    for project_id, project in known.items():
        if project.access and project_id not in heads:
            _revoke(uow, project, now, applied)
    for event in answer.events:
        _apply_event(uow, event, heads, now, applied)
    applied.restored = state.epoch is not None and state.epoch != answer.epoch
    uow.sync_state.put(replace(state, epoch=answer.epoch, cursor=answer.cursor))
    return applied


def _membership_moved(answer: SyncAnswer, head: ProjectHead) -> bool:
    # A Project that is listed all along may have refused a write in between.
    return any(
        event.type == FeedEventType.MEMBERSHIP_CHANGED and event.project_id == head.project_id
        for event in answer.events
    )


def _apply_head(uow: UnitOfWork, known: ProjectRow | None, head: ProjectHead, applied: Applied) -> None:
    before = known or ProjectRow(project_id=head.project_id, name=head.name, access=False)
    uow.projects.put(
        replace(
            before,
            name=head.name,
            role=head.role.value if head.role is not None else None,
            access=True,
            guide_path=head.guide_path,
            head_commit=head.commit_id,
            head_seq=head.seq,
        )
    )
    if not before.access:
        uow.touch(head.project_id)
        applied.changed.add(head.project_id)


def _revoke(uow: UnitOfWork, project: ProjectRow, now: int, applied: Applied) -> None:
    """Forget all published text of a Project; the Drafts stay and return with access."""
    project_id = project.project_id
    forget_project(uow, project)
    deliveries.park(uow, ParkingCause.ACCESS_LOST, deliveries.ACCESS_LOST, now, project_id)
    applied.changed.add(project_id)
    applied.revoked.add(project_id)


def _apply_event(
    uow: UnitOfWork, event: FeedEvent, heads: dict[str, ProjectHead], now: int, applied: Applied
) -> None:
    if event.draft_id is None or not event.type.startswith("draft."):
        return
    draft = uow.drafts.get(event.draft_id)
    if draft is None:
        return  # Made on another machine of the same person.
    after = draft
    match FeedEventType(event.type):
        case FeedEventType.DRAFT_SUBMITTED if draft.active:
            after = replace(draft, status=DraftStatus.SUBMITTED, review_id=event.review_id)
        case FeedEventType.DRAFT_REOPENED if draft.active:
            after = replace(draft, status=DraftStatus.OPEN, review_id=None)
        case FeedEventType.DRAFT_MERGED:
            after = merged(draft, event.commit_id, event.commit_seq, event.review_id, heads)
        case FeedEventType.DRAFT_DISCARDED if draft.active:
            after = replace(draft, status=DraftStatus.DISCARDED)
    _put(uow, draft, after, now, applied)
    go_on_after(uow, after, event.draft_ordinal, now)


def merged(
    draft: LocalDraft,
    commit_id: str | None,
    seq: int | None,
    review_id: str | None,
    heads: dict[str, ProjectHead],
) -> LocalDraft:
    """Return the Draft as published by a commit.

    For Org scope that is a commit of the Organization, which the Project's own history carries in a
    commit of its own, written in the same transaction: the Project's head in the same answer has it.
    """
    if draft.scope is Scope.ORG:
        head = heads.get(draft.project_id)
        seq = head.seq if head is not None else None
    return replace(
        draft,
        status=DraftStatus.MERGED,
        review_id=review_id or draft.review_id,
        merged_commit=commit_id,
        merged_seq=seq,
    )


def apply_remote_draft(
    uow: UnitOfWork, draft: LocalDraft, remote: Draft, heads: dict[str, ProjectHead], now: int
) -> Applied:
    """Bring a local Draft's status to the server's, where events of it may have been missed."""
    after = draft
    if remote.status is DraftStatus.MERGED:
        after = merged(draft, remote.merged_commit, remote.merged_seq, remote.review_id, heads)
    elif draft.active:
        after = replace(draft, status=remote.status, review_id=remote.review_id)
    applied = Applied()
    _put(uow, draft, after, now, applied)
    go_on_after(uow, after, remote.last_ordinal, now)
    return applied


def _put(uow: UnitOfWork, before: LocalDraft, after: LocalDraft, now: int, applied: Applied) -> None:
    if after == before:
        return
    uow.drafts.put(replace(after, updated_at=now))
    uow.touch(before.project_id, {before.resource_id})
    applied.changed.add(before.project_id)
