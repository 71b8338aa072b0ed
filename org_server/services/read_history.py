"""Histories as people read them: of one resource, and of a Project or the Organization."""

from typing import Final

from sqlmodel import col, func, select

from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.services.commit_infos import commit_infos
from org_server.services.pages import PageQuery
from org_server.store.commits import read_ref
from org_server.store.tables import VersionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import versions_at
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.org_contract import (
    ChangeKind,
    CommitEntry,
    CommitLog,
    HistoryEntry,
    HistoryPage,
    ResourceChange,
)

CHANGES_SHOWN: Final = 20
"""Changes of one commit in a log; how many there are is told."""


def read_project_history(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, resource_id: str, page: PageQuery
) -> HistoryPage:
    """GET /projects/{id}/memories/{mem}/history; also of what was removed.

    Raises ``memory_resource_not_found`` for what the Project's view never held.
    """
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        return _history(uow, actor, project_id, resource_id, page)


def read_org_history(
    units: UnitOfWorkFactory, actor: Actor, resource_id: str, page: PageQuery
) -> HistoryPage:
    """GET /org/memories/{mem}/history; raises ``memory_resource_not_found``."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MEMORY_READ)
        return _history(uow, actor, uow.org.id, resource_id, page)


def read_project_log(units: UnitOfWorkFactory, actor: Actor, project_id: str, page: PageQuery) -> CommitLog:
    """GET /projects/{id}/history: its commits, newest first."""
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        return _log(uow, actor, project_id, page)


def read_org_log(units: UnitOfWorkFactory, actor: Actor, page: PageQuery) -> CommitLog:
    """GET /org/history: the Organization's commits, newest first."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MEMORY_READ)
        return _log(uow, actor, uow.org.id, page)


def unknown_resource() -> InterleafError:
    """Return the error for a resource that a view does not hold, and never held."""
    return InterleafError(
        ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
        "Nothing was ever published under this id here. Find ids with: interleaf memory list",
    )


def _history(uow: UnitOfWork, actor: Actor, owner: str, resource_id: str, page: PageQuery) -> HistoryPage:
    listing = f"history:{owner}:{resource_id}"
    statement = (
        select(VersionRow)
        .where(col(VersionRow.owner) == owner, col(VersionRow.resource_id) == resource_id)
        .order_by(col(VersionRow.from_seq).desc())
        .limit(page.limit + 1)
    )
    if (before := page.after(listing, int)) is not None:
        statement = statement.where(col(VersionRow.from_seq) < before[0])
    found = list(uow.session.exec(statement))
    if not found and page.cursor is None:
        raise unknown_resource()
    rows, cursor = page.cut(listing, found, lambda row: (row.from_seq,))
    # The row behind the page's last one, if there is any, is that one's former version.
    former = [*found[1:], None]
    commits = commit_infos(uow, actor, owner, (row.from_seq for row in rows))
    return HistoryPage(
        entries=[
            HistoryEntry(commit=commits[row.from_seq], change=_change(uow, row, before_it))
            for row, before_it in zip(rows, former, strict=False)
        ],
        next_cursor=cursor,
    )


def _log(uow: UnitOfWork, actor: Actor, owner: str, page: PageQuery) -> CommitLog:
    listing = f"log:{owner}"
    after = page.after(listing, int)
    head = read_ref(uow, owner).seq
    newest = head if after is None else min(head, after[0] - 1)
    # Numbers have no holes.
    seqs = range(newest, max(newest - page.limit - 1, 0), -1)
    shown, cursor = page.cut(listing, seqs, lambda seq: (seq,))
    commits = commit_infos(uow, actor, owner, shown)
    counts = dict(
        uow.session.exec(
            select(VersionRow.from_seq, func.count())
            .where(col(VersionRow.owner) == owner, col(VersionRow.from_seq).in_(shown))
            .group_by(col(VersionRow.from_seq))
        ).all()
    )
    rows = [row for seq in shown for row in _first_changes(uow, owner, seq)]
    former = versions_at(uow, owner, ((row.resource_id, row.from_seq - 1) for row in rows))
    changes: dict[int, list[ResourceChange]] = {}
    for row in rows:
        change = _change(uow, row, former.get((row.resource_id, row.from_seq - 1)))
        changes.setdefault(row.from_seq, []).append(change)
    return CommitLog(
        entries=[
            CommitEntry(commit=commits[seq], changes=changes.get(seq, []), change_count=counts.get(seq, 0))
            for seq in shown
        ],
        next_cursor=cursor,
    )


def _first_changes(uow: UnitOfWork, owner: str, seq: int) -> list[VersionRow]:
    return list(
        uow.session.exec(
            select(VersionRow)
            .where(col(VersionRow.owner) == owner, col(VersionRow.from_seq) == seq)
            .order_by(col(VersionRow.resource_id))
            .limit(CHANGES_SHOWN)
        )
    )


def _change(uow: UnitOfWork, row: VersionRow, former: VersionRow | None) -> ResourceChange:
    before = None if former is None or former.removed else former
    after = None if row.removed else row
    reference = row.scope == Scope.ORG.value and row.owner != uow.org.id
    return ResourceChange(
        resource_id=row.resource_id,
        scope=Scope(row.scope),
        kind=_kind(before, after, again=former is not None, reference=reference),
        path_before=None if before is None else before.path,
        path_after=None if after is None else after.path,
        content_hash_before=None if before is None else before.content_hash,
        content_hash_after=None if after is None else after.content_hash,
    )


def _kind(before: VersionRow | None, after: VersionRow | None, *, again: bool, reference: bool) -> ChangeKind:
    if after is None:
        return ChangeKind.HIDDEN if reference else ChangeKind.REMOVED
    if before is None:
        if reference:
            return ChangeKind.SHOWN
        return ChangeKind.RESTORED if again else ChangeKind.CREATED
    return ChangeKind.MOVED if before.path != after.path else ChangeKind.CHANGED
