"""An authority's view as version ranges: read it at any commit, change it with a new one."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from sqlalchemy import ColumnElement, and_, func, or_, text
from sqlmodel import col, insert, select, update

from org_server.domain.states import GONE, HashedState
from org_server.store.batches import batches
from org_server.store.tables import BlobRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.memory import OrgSource, Scope
from shared_schema.rules.chain import Change
from shared_schema.rules.paths import PathSet, ancestors, path_key

_PATHS_PER_QUERY = 40
LIVE: Final = (col(VersionRow.to_seq).is_(None), text("NOT version.removed"))
"""What the view holds now, in the words of the partial indexes: SQLite uses them for no others."""


def state_of(row: VersionRow | None) -> HashedState:
    """Return the state that a version holds; `GONE` for none and for a removal."""
    if row is None or row.removed:
        return GONE
    return HashedState(True, row.path, row.description, row.content_hash, _source_of(row))


def _source_of(row: VersionRow) -> OrgSource | None:
    if row.source_resource_id is None or row.source_commit_id is None:
        return None
    return OrgSource(resource_id=row.source_resource_id, commit_id=row.source_commit_id)


def current_versions(uow: UnitOfWork, owner: str, resource_ids: Iterable[str]) -> dict[str, VersionRow]:
    """Return the newest versions by resource id, removals included; unknown ids are left out."""
    found: dict[str, VersionRow] = {}
    for batch in batches(sorted(set(resource_ids))):
        rows = uow.session.exec(
            select(VersionRow).where(
                col(VersionRow.owner) == owner,
                col(VersionRow.resource_id).in_(batch),
                col(VersionRow.to_seq).is_(None),
            )
        )
        found.update((row.resource_id, row) for row in rows)
    return found


def versions_at(
    uow: UnitOfWork, owner: str, points: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], VersionRow]:
    """Return the version of each ``(resource id, commit number)``; those without any are left out."""
    found: dict[tuple[str, int], VersionRow] = {}
    for batch in batches(sorted(set(points)), _PATHS_PER_QUERY):
        held = [
            and_(
                col(VersionRow.resource_id) == resource_id,
                col(VersionRow.from_seq) <= seq,
                or_(col(VersionRow.to_seq).is_(None), col(VersionRow.to_seq) > seq),
            )
            for resource_id, seq in batch
        ]
        statement = select(VersionRow).where(col(VersionRow.owner) == owner, or_(*held))
        rows = list(uow.session.exec(statement.execution_options(populate_existing=True)))
        for resource_id, seq in batch:
            for row in rows:
                if row.resource_id == resource_id and row.from_seq <= seq < (row.to_seq or seq + 1):
                    found[resource_id, seq] = row
    return found


def write_changes(uow: UnitOfWork, owner: str, seq: int, changes: Sequence[Change]) -> None:
    """End the present versions of the changed resources and begin the new ones at commit ``seq``."""
    for batch in batches(changes):
        # All ranges end first: two resources may exchange their paths in one commit.
        uow.session.execute(
            update(VersionRow)
            .where(
                col(VersionRow.owner) == owner,
                col(VersionRow.resource_id).in_([change.resource_id for change in batch]),
                col(VersionRow.to_seq).is_(None),
            )
            .values(to_seq=seq)
            .execution_options(synchronize_session=False)
        )
    for batch in batches(changes):
        uow.session.execute(insert(VersionRow), [_values(owner, seq, change) for change in batch])


def _values(owner: str, seq: int, change: Change) -> dict[str, object]:
    source = change.org_source
    return {
        "owner": owner,
        "resource_id": change.resource_id,
        "from_seq": seq,
        "to_seq": None,
        "removed": change.removed,
        "scope": change.scope.value,
        "path": change.path,
        "path_key": path_key(change.path),
        "description": change.description,
        "content_hash": change.content_hash,
        "source_resource_id": None if source is None else source.resource_id,
        "source_commit_id": None if source is None else source.commit_id,
    }


def as_change(row: VersionRow) -> Change:
    """Return the hashed fields of the change that began this version."""
    source = _source_of(row)
    return Change(
        resource_id=row.resource_id,
        scope=Scope(row.scope),
        path=row.path,
        description=row.description,
        content_hash=row.content_hash or "",
        org_source=source,
        removed=row.removed,
    )


def live_adaptations(uow: UnitOfWork, project_id: str, source_ids: Iterable[str]) -> dict[str, str]:
    """Return which of the Org resources are adapted in the Project: source id → adapting resource."""
    found: dict[str, str] = {}
    for batch in batches(sorted(set(source_ids))):
        rows = uow.session.exec(
            select(VersionRow.source_resource_id, VersionRow.resource_id).where(
                col(VersionRow.owner) == project_id,
                col(VersionRow.source_resource_id).in_(batch),
                col(VersionRow.scope) == Scope.PROJECT.value,
                *LIVE,
            )
        )
        found.update((source_id, resource_id) for source_id, resource_id in rows if source_id is not None)
    return found


def find_clashes(
    uow: UnitOfWork, owner: str, wanted: Mapping[str, str], leaving: Collection[str] = ()
) -> dict[str, str]:
    """Return which paths cannot be taken: resource id → the resource that stands in its way.

    ``wanted`` maps resource ids to the paths that they shall have together; ``leaving`` are
    resources of the view that leave it at the same time. A path is taken by an equal one, one
    above and one below it, by case-folded comparison. Costs as many look-ups as paths are wanted,
    whatever the size of the view.
    """
    others = set(wanted) | set(leaving)
    paths = PathSet((path, resource_id) for resource_id, path in wanted.items())
    for path, resource_id in _paths_around(uow, owner, wanted.values()):
        if resource_id not in others:
            paths.add(path, resource_id)
    clashes = {resource_id: paths.find_clash(path, resource_id) for resource_id, path in wanted.items()}
    return {resource_id: holder for resource_id, holder in clashes.items() if holder is not None}


def _paths_around(uow: UnitOfWork, owner: str, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield path and resource id of what lives at, above or below the paths."""
    for batch in batches(sorted({path_key(path) for path in paths}), _PATHS_PER_QUERY):
        exact = sorted({key for path in batch for key in (path, *ancestors(path))})
        conditions: list[ColumnElement[bool]] = [
            col(VersionRow.path_key).in_(keys) for keys in batches(exact)
        ]
        # "0" follows "/" in byte order, which the column is compared in.
        conditions += [
            and_(col(VersionRow.path_key) >= f"{key}/", col(VersionRow.path_key) < f"{key}0") for key in batch
        ]
        yield from uow.session.exec(
            select(VersionRow.path, VersionRow.resource_id).where(
                col(VersionRow.owner) == owner, or_(*conditions), *LIVE
            )
        )


def changes_between(uow: UnitOfWork, owner: str, after: int, until: int) -> list[VersionRow]:
    """Return the versions that the commits ``after < seq <= until`` began, by commit and resource."""
    return list(
        uow.session.exec(
            select(VersionRow)
            .where(
                col(VersionRow.owner) == owner,
                col(VersionRow.from_seq) > after,
                col(VersionRow.from_seq) <= until,
            )
            .order_by(col(VersionRow.from_seq), col(VersionRow.resource_id))
        )
    )


def count_live(uow: UnitOfWork, owner: str) -> int:
    """Return how many resources the view holds now."""
    return uow.session.exec(
        select(func.count()).select_from(VersionRow).where(col(VersionRow.owner) == owner, *LIVE)
    ).one()


def live_page(uow: UnitOfWork, owner: str, after: str, limit: int) -> list[tuple[VersionRow, str]]:
    """Return the next resources of the view with their texts, by resource id."""
    rows = uow.session.exec(
        select(VersionRow, BlobRow.body)
        .join(BlobRow, col(BlobRow.content_hash) == col(VersionRow.content_hash))
        .where(col(VersionRow.owner) == owner, col(VersionRow.resource_id) > after, *LIVE)
        .order_by(col(VersionRow.resource_id))
        .limit(limit)
    )
    return [(row, body) for row, body in rows]
