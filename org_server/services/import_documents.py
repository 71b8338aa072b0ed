"""Documents of a folder or file as published memory of a Project, by an Org owner or admin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlmodel import col, select

from org_server.domain.states import HashedState
from org_server.domain.view_changes import ViewChange
from org_server.services.publish import publish_commit
from org_server.services.users import find_user
from org_server.store.batches import batches
from org_server.store.blobs import put_text
from org_server.store.tables import ProjectRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import LIVE, find_clashes, state_of
from shared_schema import ids, limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.org_contract import Role
from shared_schema.rules.hashing import content_hash
from shared_schema.rules.paths import path_key
from shared_schema.transfer.documents import Document, Outcome, Refused, ReportItem, refusal_item, shown
from shared_schema.transfer.reading import Entry

_BATCH_DOCUMENTS: Final = 200
_BATCH_BYTES: Final = 8 * limits.MIB

_Planned = tuple[Document, ReportItem, ViewChange | None]


def import_documents(
    units: UnitOfWorkFactory, project_name: str, user: str, entries: Iterable[Entry], *, dry_run: bool = False
) -> Iterator[ReportItem]:
    """Yield what becomes of each entry; each batch is one transaction with one commit and audit event.

    A document at a path of the Project's own memory changes that resource; equal content changes
    nothing. Raises ``not_found`` for an unknown Project or user and ``forbidden`` for a user who is
    no owner or admin of the Organization. What earlier batches published stays when a later one fails.
    """
    for batch in _batched(entries):
        documents = [entry for entry in batch if isinstance(entry, Document)]
        with units.read() if dry_run else units.write() as uow:
            project, author_id = _target(uow, project_name, user)
            planned = _plan(uow, project.id, documents)
            changes = [change for _, _, change in planned if change is not None]
            if changes and not dry_run:
                for document, _, change in planned:
                    if change is not None:
                        put_text(uow, document.body)
                commit = publish_commit(uow, project.id, changes, author_id)
                told = {"commit_id": commit.commit_id, "documents": len(changes)}
                uow.audit(author_id, "memory.imported", project.id, told)
        yield from (refusal_item(entry) for entry in batch if isinstance(entry, Refused))
        yield from (item for _, item, _ in planned)


def check_target(units: UnitOfWorkFactory, project_name: str, user: str) -> None:
    """Raise what `import_documents` would raise for the Project and the user, before anything is read."""
    with units.read() as uow:
        _target(uow, project_name, user)


def _target(uow: UnitOfWork, project_name: str, user: str) -> tuple[ProjectRow, str]:
    row = find_user(uow, user)
    if row.disabled or Role(row.role) not in {Role.OWNER, Role.ADMIN}:
        raise InterleafError(
            ErrorCode.FORBIDDEN, "Only an active owner or admin of the Organization imports on the server."
        )
    project = uow.session.exec(
        select(ProjectRow).where(
            col(ProjectRow.name_key) == path_key(project_name.strip()), col(ProjectRow.deleted_at).is_(None)
        )
    ).first()
    if project is None:
        raise InterleafError(ErrorCode.NOT_FOUND, "There is no Project of this name. Create it first.")
    return project, row.id


def _batched(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.body.encode()) if isinstance(entry, Document) else 0
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _plan(uow: UnitOfWork, owner: str, documents: Sequence[Document]) -> list[_Planned]:
    held = _held(uow, owner, documents)
    fresh = {ids.new_id("mem"): document for document in documents if path_key(document.path) not in held}
    clashes = find_clashes(uow, owner, {new: document.path for new, document in fresh.items()})
    new_ids = {document.path: new for new, document in fresh.items()}
    return [
        _planned(document, held.get(path_key(document.path)), new_ids.get(document.path), clashes)
        for document in documents
    ]


def _held(uow: UnitOfWork, owner: str, documents: Sequence[Document]) -> dict[str, VersionRow]:
    found: dict[str, VersionRow] = {}
    for keys in batches(sorted({path_key(document.path) for document in documents})):
        rows = uow.session.exec(
            select(VersionRow).where(
                col(VersionRow.owner) == owner, col(VersionRow.path_key).in_(keys), *LIVE
            )
        )
        found.update((row.path_key, row) for row in rows)
    return found


def _planned(
    document: Document, held: VersionRow | None, new_id: str | None, clashes: dict[str, str]
) -> _Planned:
    if held is not None and (held.scope != Scope.PROJECT.value or held.path != document.path):
        return document, _occupied(document), None
    if held is None and (new_id is None or new_id in clashes):
        return document, _occupied(document), None
    former = state_of(held)
    described = former.description if document.description is None else document.description
    state = HashedState(True, document.path, described, content_hash(document.body), former.org_source)
    resource_id = held.resource_id if held is not None else new_id or ""
    written = Outcome.IMPORTED if held is None else Outcome.CHANGED
    outcome = Outcome.UNCHANGED if state == former else written
    item = ReportItem(
        source=shown(document.source),
        outcome=outcome,
        path=document.path,
        note=None if document.note is None else shown(document.note),
        # A dry run makes no resource, so a new one's id would name nothing.
        resource_id=None if held is None else resource_id,
    )
    change = None if state == former else ViewChange(resource_id, Scope.PROJECT, state)
    return document, item, change


def _occupied(document: Document) -> ReportItem:
    return ReportItem(
        source=shown(document.source),
        outcome=Outcome.REFUSED,
        path=document.path,
        code=ErrorCode.PATH_OCCUPIED.value,
        reason="The Project holds another document at, above or below this path, or a reference to one.",
    )
