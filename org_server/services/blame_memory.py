"""Blame: a published content with the commit and the Review that last changed each line."""

from collections.abc import Iterator
from typing import Final

from pydantic import Field
from sqlmodel import col, select

from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.services.commit_infos import commit_infos
from org_server.services.read_history import unknown_resource
from org_server.store.blobs import read_texts
from org_server.store.commits import read_ref, seq_of
from org_server.store.tables import VersionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import versions_at
from shared_schema import limits
from shared_schema.memory import Contract, Scope
from shared_schema.org_contract import Blame, BlameRange
from shared_schema.rules.blame import blame_lines

_VERSIONS_AT_ONCE: Final = 100


class BlameQuery(Contract):
    """The query of GET …/memories/{mem}/blame."""

    commit: str | None = Field(default=None, max_length=limits.IDENTIFIER_CHARACTERS)
    """The commit of the same history as of which the content is taken; nothing: the newest."""


def blame_in_project(
    units: UnitOfWorkFactory, actor: Actor, project_id: str, resource_id: str, query: BlameQuery
) -> Blame:
    """GET /projects/{id}/memories/{mem}/blame.

    An Org reference is answered from the Organization's history, up to the version that the Project
    shows: who wrote its lines stands there. Raises ``memory_resource_not_found`` where the view holds
    no such resource, and ``commit_unknown``.
    """
    with units.read() as uow:
        access.require_project(uow, actor, Action.PROJECT_READ, project_id)
        row = _version(uow, project_id, resource_id, query)
        if row.scope == Scope.ORG.value:
            access.require_org(uow, actor, Action.ORG_MEMORY_READ)
            row = _version(uow, uow.org.id, resource_id, BlameQuery(commit=row.source_commit_id))
        return _blame(uow, actor, row)


def blame_in_org(units: UnitOfWorkFactory, actor: Actor, resource_id: str, query: BlameQuery) -> Blame:
    """GET /org/memories/{mem}/blame; raises ``memory_resource_not_found`` and ``commit_unknown``."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MEMORY_READ)
        return _blame(uow, actor, _version(uow, uow.org.id, resource_id, query))


def _version(uow: UnitOfWork, owner: str, resource_id: str, query: BlameQuery) -> VersionRow:
    seq = read_ref(uow, owner).seq if query.commit is None else seq_of(uow, owner, query.commit)
    row = versions_at(uow, owner, [(resource_id, seq)]).get((resource_id, seq))
    if row is None or row.removed:
        raise unknown_resource()
    return row


def _blame(uow: UnitOfWork, actor: Actor, row: VersionRow) -> Blame:
    digest = row.content_hash or ""
    followed: list[int] = []
    found = blame_lines(_texts(uow, row, followed))
    seqs = {followed[part.version] for part in found.ranges}
    commits = commit_infos(uow, actor, row.owner, seqs | {row.from_seq})
    return Blame(
        resource_id=row.resource_id,
        owner=row.owner,
        commit_id=commits[row.from_seq].commit_id,
        path=row.path,
        content_hash=digest,
        body=read_texts(uow, [digest])[digest],
        ranges=[
            BlameRange(
                first=part.start + 1,
                count=part.end - part.start,
                commit_id=commits[followed[part.version]].commit_id,
            )
            for part in found.ranges
        ],
        commits=[commits[seq] for seq in sorted(seqs)],
        complete=found.complete,
    )


def _texts(uow: UnitOfWork, newest: VersionRow, followed: list[int]) -> Iterator[str]:
    """Yield the contents, newest first, and note in ``followed`` which commit published each.

    A move or a new description changes no line, so of equal contents the oldest commit is named. A
    removal is passed over: what was brought back keeps who wrote it.
    """
    group: tuple[str, int] | None = None
    for digest, seq in _contents(uow, newest):
        if group is not None and group[0] != digest:
            followed.append(group[1])
            yield read_texts(uow, [group[0]])[group[0]]
        group = (digest, seq)
    if group is not None:
        followed.append(group[1])
        yield read_texts(uow, [group[0]])[group[0]]


def _contents(uow: UnitOfWork, newest: VersionRow) -> Iterator[tuple[str, int]]:
    until = newest.from_seq
    while True:
        rows = uow.session.exec(
            select(VersionRow.from_seq, VersionRow.content_hash, VersionRow.removed)
            .where(
                col(VersionRow.owner) == newest.owner,
                col(VersionRow.resource_id) == newest.resource_id,
                col(VersionRow.from_seq) <= until,
            )
            .order_by(col(VersionRow.from_seq).desc())
            .limit(_VERSIONS_AT_ONCE)
        ).all()
        for seq, digest, removed in rows:
            if not removed and digest is not None:
                yield digest, seq
        if len(rows) < _VERSIONS_AT_ONCE:
            return
        until = rows[-1][0] - 1
