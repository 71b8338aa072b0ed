"""Published state: what each Project's installed commit shows, every text stored once.

All of it is a cache of the server's state. It changes in the transaction that moves the Project's
installed commit, and that transaction calls ``UnitOfWork.touch``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, bindparam, delete, exists, func, select
from sqlalchemy.dialects.sqlite import insert

from client.store.prepared import Prepared
from client.store.tables import metadata
from shared_schema.memory import OrgSource, PublishedResource, Scope

_PUBLISHED = metadata.tables["published"]
_BLOB = metadata.tables["blob"]
_T = TypeVar("_T")
_BATCH: Final = 500
"""Rows of one statement; SQLite bounds the number of its parameters."""


class PublishedRepository:
    """The published resources of each Project."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, project_id: str, resource_id: str) -> PublishedResource | None:
        """Return one published resource, or None."""
        rows = _ONE.run(self._connection, {"project": project_id, "resource": resource_id})
        return next(map(_resource, rows), None)

    def some(self, project_id: str, resource_ids: Collection[str]) -> list[PublishedResource]:
        """Return those of the resources that are published."""
        if len(resource_ids) == 1:
            one = self.get(project_id, next(iter(resource_ids)))
            return [] if one is None else [one]
        found: list[PublishedResource] = []
        for batch in _batches(sorted(resource_ids)):
            found += map(
                _resource, self._connection.execute(_SOME, {"project": project_id, "resources": batch})
            )
        return found

    def all(self, project_id: str) -> list[PublishedResource]:
        """Return every published resource by id."""
        return [_resource(row) for row in self._connection.execute(_ALL, {"project": project_id})]

    def count(self, project_id: str) -> int:
        """Return how many resources are published."""
        statement = select(func.count()).where(_PUBLISHED.c.project_id == project_id)
        return int(self._connection.execute(statement).scalar_one())

    def put_many(self, project_id: str, resources: Iterable[PublishedResource]) -> None:
        """Insert or change resources."""
        for batch in _batches(resources):
            # A resource may stand twice in what is applied; the later one holds.
            rows = {resource.resource_id: _row(project_id, resource) for resource in batch}
            blobs = {resource.content_hash: resource.body for resource in batch}
            self._connection.execute(
                insert(_BLOB).on_conflict_do_nothing(),
                [{"content_hash": content_hash, "body": body} for content_hash, body in blobs.items()],
            )
            statement = insert(_PUBLISHED)
            changes = {
                name: statement.excluded[name]
                for name in ("scope", "path", "description", "content_hash", *_SOURCE)
            }
            self._connection.execute(statement.on_conflict_do_update(set_=changes), list(rows.values()))

    def remove(self, project_id: str, resource_ids: Iterable[str]) -> None:
        """Remove resources; unknown ones are ignored."""
        for batch in _batches(resource_ids):
            self._connection.execute(
                delete(_PUBLISHED).where(
                    _PUBLISHED.c.project_id == project_id, _PUBLISHED.c.resource_id.in_(batch)
                )
            )

    def replace_all(self, project_id: str, resources: Iterable[PublishedResource]) -> None:
        """Put a complete snapshot in the place of everything published so far."""
        self.delete_project(project_id)
        self.put_many(project_id, resources)

    def delete_project(self, project_id: str) -> None:
        """Remove everything published of a Project; its texts go with `drop_unused_texts`."""
        self._connection.execute(delete(_PUBLISHED).where(_PUBLISHED.c.project_id == project_id))

    def drop_unused_texts(self) -> int:
        """Delete every text that no Project shows any more; return how many."""
        used = exists().where(_PUBLISHED.c.content_hash == _BLOB.c.content_hash)
        return self._connection.execute(delete(_BLOB).where(~used)).rowcount


_SOURCE: Final = ("source_resource_id", "source_commit_id")


_ALL: Final = (
    select(_PUBLISHED, _BLOB.c.body)
    .join(_BLOB, _BLOB.c.content_hash == _PUBLISHED.c.content_hash)
    .where(_PUBLISHED.c.project_id == bindparam("project"))
    .order_by(_PUBLISHED.c.resource_id)
)
_ONE: Final = Prepared(_ALL.where(_PUBLISHED.c.resource_id == bindparam("resource")))
_SOME: Final = _ALL.where(_PUBLISHED.c.resource_id.in_(bindparam("resources", expanding=True)))


def _resource(row: Any) -> PublishedResource:
    # Checked when it was pulled; validating ten thousand rows again would cost more than reading them.
    return PublishedResource.model_construct(
        resource_id=row.resource_id,
        scope=Scope(row.scope),
        path=row.path,
        description=row.description,
        body=row.body,
        content_hash=row.content_hash,
        org_source=source_of(row),
    )


def _row(project_id: str, resource: PublishedResource) -> dict[str, object]:
    return {
        "project_id": project_id,
        "resource_id": resource.resource_id,
        "scope": resource.scope.value,
        "path": resource.path,
        "description": resource.description,
        "content_hash": resource.content_hash,
        **source_columns(resource.org_source),
    }


def source_of(row: Any) -> OrgSource | None:
    """Return the Org source that a row's two columns name, or None."""
    if row.source_resource_id is None or row.source_commit_id is None:
        return None
    return OrgSource(resource_id=row.source_resource_id, commit_id=row.source_commit_id)


def source_columns(source: OrgSource | None) -> dict[str, str | None]:
    """Return the two columns of an Org source."""
    return {
        "source_resource_id": source.resource_id if source else None,
        "source_commit_id": source.commit_id if source else None,
    }


def _batches(items: Iterable[_T]) -> Iterator[Sequence[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, _BATCH)):
        yield batch
