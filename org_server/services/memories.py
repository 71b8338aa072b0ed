"""Reading what is published: the Organization's resources and a Project's view of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlmodel import col, select

from org_server.domain.permissions import Action, Actor
from org_server.services import access, pages
from org_server.store.batches import batches
from org_server.store.blobs import read_texts
from org_server.store.commits import commit_ids, ref_answer
from org_server.store.tables import CommitRow, SelectionRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import current_versions, live_adaptations, state_of
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import PublishedResource, Scope
from shared_schema.org_contract import (
    Adaptation,
    Adaptations,
    ResourceAnswer,
    ResourcePage,
    ResourceSummary,
)
from shared_schema.rules.text import title_of

_TITLES_AT_ONCE = 50
"""Bodies that are held in memory together while titles are read from them."""


def list_project_memories(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, page: pages.PageQuery
) -> ResourcePage:
    """GET /projects/{id}/memories: the Project's view, by path."""
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        return _page(uow, project_id, page, selected=None)


def read_project_memory(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, resource_id: str
) -> ResourceAnswer:
    """GET /projects/{id}/memories/{mem}; of an adapted source ``details.adapted_by`` names the other."""
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        row = _live(uow, project_id, resource_id)
        if row is None:
            adapted_by = live_adaptations(uow, project_id, [resource_id]).get(resource_id)
            raise _unknown({} if adapted_by is None else {"adapted_by": adapted_by})
        return _answer(uow, project_id, row)


def list_org_memories(
    units: UnitOfWorkFactory, actor: Actor, page: pages.PageQuery, project_id: str | None
) -> ResourcePage:
    """GET /org/memories, by path; with a Project each says whether that Project selects it."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MEMORY_READ)
        selected: set[str] | None = None
        if project_id is not None:
            access.require_project(uow, actor, Action.PROJECT_READ, project_id)
            selected = selected_ids(uow, project_id)
        return _page(uow, uow.org.id, page, selected)


def read_org_memory(units: UnitOfWorkFactory, actor: Actor, resource_id: str) -> ResourceAnswer:
    """GET /org/memories/{mem}."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MEMORY_READ)
        row = _live(uow, uow.org.id, resource_id)
        if row is None:
            raise _unknown({})
        return _answer(uow, uow.org.id, row)


def list_adaptations(units: UnitOfWorkFactory, actor: Actor, project_id: str) -> Adaptations:
    """GET /projects/{id}/adaptations, by path: each with how its source stands."""
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        rows = uow.session.exec(
            select(VersionRow)
            .where(
                col(VersionRow.owner) == project_id,
                col(VersionRow.scope) == Scope.PROJECT.value,
                col(VersionRow.source_resource_id).is_not(None),
                col(VersionRow.to_seq).is_(None),
                col(VersionRow.removed).is_(False),
            )
            .order_by(col(VersionRow.path_key))
        ).all()
        sources = current_versions(uow, uow.org.id, [row.source_resource_id or "" for row in rows])
        newest = commit_ids(uow, uow.org.id, [source.from_seq for source in sources.values()])
        fixed = _org_seqs(uow, [row.source_commit_id or "" for row in rows])
        return Adaptations(
            adaptations=[
                _adaptation(row, sources.get(row.source_resource_id or ""), newest, fixed) for row in rows
            ]
        )


def selected_ids(uow: UnitOfWork, project_id: str) -> set[str]:
    """Return the Org resources that the Project selects."""
    return set(
        uow.session.exec(select(SelectionRow.resource_id).where(col(SelectionRow.project_id) == project_id))
    )


def summaries(
    uow: UnitOfWork, rows: Iterable[VersionRow], selected: Collection[str] | None = None
) -> list[ResourceSummary]:
    """Return the resources without their bodies, in the same order."""
    found: list[ResourceSummary] = []
    for batch in batches(rows, _TITLES_AT_ONCE):
        texts = read_texts(uow, [row.content_hash for row in batch])
        for row in batch:
            digest = row.content_hash or ""
            found.append(
                ResourceSummary(
                    resource_id=row.resource_id,
                    scope=Scope(row.scope),
                    path=row.path,
                    title=title_of(texts[digest], row.path),
                    description=row.description,
                    content_hash=digest,
                    org_source=state_of(row).org_source,
                    selected=None if selected is None else row.resource_id in selected,
                )
            )
    return found


def _page(
    uow: UnitOfWork, owner: str, page: pages.PageQuery, selected: Collection[str] | None
) -> ResourcePage:
    statement = (
        select(VersionRow)
        .where(
            col(VersionRow.owner) == owner,
            col(VersionRow.to_seq).is_(None),
            col(VersionRow.removed).is_(False),
        )
        .order_by(col(VersionRow.path_key))
        .limit(page.limit + 1)
    )
    if (after := page.after(f"memories:{owner}", str)) is not None:
        statement = statement.where(col(VersionRow.path_key) > after[0])
    rows, cursor = page.cut(
        f"memories:{owner}", list(uow.session.exec(statement)), lambda row: (row.path_key,)
    )
    return ResourcePage(resources=summaries(uow, rows, selected), next_cursor=cursor)


def _live(uow: UnitOfWork, owner: str, resource_id: str) -> VersionRow | None:
    row = current_versions(uow, owner, [resource_id]).get(resource_id)
    return None if row is None or row.removed else row


def _answer(uow: UnitOfWork, owner: str, row: VersionRow) -> ResourceAnswer:
    digest = row.content_hash or ""
    return ResourceAnswer(
        resource=PublishedResource(
            resource_id=row.resource_id,
            scope=Scope(row.scope),
            path=row.path,
            description=row.description,
            body=read_texts(uow, [digest])[digest],
            content_hash=digest,
            org_source=state_of(row).org_source,
        ),
        ref=ref_answer(uow, owner),
    )


def _org_seqs(uow: UnitOfWork, wanted: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for batch in batches(sorted(set(wanted))):
        rows = uow.session.exec(
            select(CommitRow.commit_id, CommitRow.seq).where(
                col(CommitRow.owner) == uow.org.id, col(CommitRow.commit_id).in_(batch)
            )
        )
        found.update((commit_id, seq) for commit_id, seq in rows)
    return found


def _adaptation(
    row: VersionRow, source: VersionRow | None, newest: dict[int, str], fixed: dict[str, int]
) -> Adaptation:
    state = state_of(row)
    if state.org_source is None:
        raise ValueError(f"{row.resource_id} adapts nothing")
    live = None if source is None or source.removed else source
    # A source is newer when its version began after the commit that the adaptation was made from.
    outdated = live is None or live.from_seq > fixed.get(state.org_source.commit_id, 0)
    return Adaptation(
        resource_id=row.resource_id,
        path=row.path,
        org_source=state.org_source,
        source_path=None if live is None else live.path,
        newest_commit_id=None if live is None else newest.get(live.from_seq),
        outdated=outdated,
    )


def _unknown(details: dict[str, str]) -> InterleafError:
    message = "There is no such resource here. Check the id."
    if "adapted_by" in details:
        message = f"This Project replaces that resource by its adaptation {details['adapted_by']}. Read that."
    return InterleafError(ErrorCode.MEMORY_RESOURCE_NOT_FOUND, message, details=details)
