"""Drafts, their operations, and the states that they stand between."""

from collections.abc import Collection, Iterable

from sqlmodel import col, select

from org_server.domain.states import GONE, HashedState
from org_server.store.batches import batches
from org_server.store.tables import DraftOperationRow, DraftRow, VersionRow
from org_server.store.unit_of_work import UnitOfWork
from org_server.store.versions import current_versions, state_of, versions_at
from shared_schema.memory import OrgSource, Scope


def owner_of(uow: UnitOfWork, project_id: str, scope: Scope) -> str:
    """Return the authority that a Draft or Review of this scope publishes to."""
    return uow.org.id if scope is Scope.ORG else project_id


def owner_of_draft(uow: UnitOfWork, draft: DraftRow) -> str:
    """Return the authority that the Draft publishes to."""
    return owner_of(uow, draft.project_id, Scope(draft.scope))


def state_of_draft(draft: DraftRow) -> HashedState:
    """Return what the Draft's operations came to."""
    if not draft.state_exists:
        return GONE
    source = None
    if draft.state_source_resource_id is not None and draft.state_source_commit_id is not None:
        source = OrgSource(resource_id=draft.state_source_resource_id, commit_id=draft.state_source_commit_id)
    return HashedState(True, draft.state_path, draft.state_description, draft.state_content_hash, source)


def put_state(draft: DraftRow, state: HashedState) -> None:
    """Set what the Draft's operations came to; the text is stored already."""
    source = state.org_source
    draft.state_exists = state.exists
    draft.state_path = state.path
    draft.state_description = state.description
    draft.state_content_hash = state.content_hash
    draft.state_source_resource_id = None if source is None else source.resource_id
    draft.state_source_commit_id = None if source is None else source.commit_id


def own_state(row: VersionRow | None, scope: Scope) -> HashedState:
    """Return a version's state as seen by a Draft of this scope.

    A Project's view holds Org references too; to a Draft of Project scope they are not its own
    resource, whatever their id.
    """
    return GONE if row is None or row.scope != scope.value else state_of(row)


def base_states(uow: UnitOfWork, owner: str, drafts: Collection[DraftRow]) -> dict[str, HashedState]:
    """Return the states that these Drafts of one authority were made on, by Draft id."""
    found = versions_at(uow, owner, ((draft.resource_id, draft.base_seq) for draft in drafts))
    return {
        draft.id: own_state(found.get((draft.resource_id, draft.base_seq)), Scope(draft.scope))
        for draft in drafts
    }


def published_states(uow: UnitOfWork, owner: str, drafts: Collection[DraftRow]) -> dict[str, HashedState]:
    """Return what is published now of these Drafts' resources in one authority, by Draft id."""
    found = current_versions(uow, owner, (draft.resource_id for draft in drafts))
    return {draft.id: own_state(found.get(draft.resource_id), Scope(draft.scope)) for draft in drafts}


def get_drafts(uow: UnitOfWork, draft_ids: Iterable[str]) -> dict[str, DraftRow]:
    """Return the Drafts by id; unknown ids are left out."""
    found: dict[str, DraftRow] = {}
    for batch in batches(sorted(set(draft_ids))):
        found.update(
            (row.id, row) for row in uow.session.exec(select(DraftRow).where(col(DraftRow.id).in_(batch)))
        )
    return found


def known_operations(
    uow: UnitOfWork, installation_id: str, operation_ids: Iterable[str]
) -> dict[str, DraftOperationRow]:
    """Return which operations of an installation were accepted before, by operation id."""
    found: dict[str, DraftOperationRow] = {}
    for batch in batches(sorted(set(operation_ids))):
        rows = uow.session.exec(
            select(DraftOperationRow).where(
                col(DraftOperationRow.installation_id) == installation_id,
                col(DraftOperationRow.operation_id).in_(batch),
            )
        )
        found.update((row.operation_id, row) for row in rows)
    return found


def id_taken_elsewhere(uow: UnitOfWork, owner: str, scope: Scope, resource_id: str) -> bool:
    """Tell whether the id is, or was, that of a resource of another authority or scope."""
    rows = uow.session.exec(
        select(VersionRow.owner, VersionRow.scope)
        .where(col(VersionRow.resource_id) == resource_id)
        .distinct()
    )
    for held_by, held_scope in rows:
        own = held_scope == scope.value and (scope is Scope.ORG or held_by == owner)
        if not own:
            return True
    return False


def page_of_drafts(
    uow: UnitOfWork,
    author_id: str,
    project_ids: Collection[str],
    status: str | None,
    after: str | None,
    limit: int,
) -> list[DraftRow]:
    """Return the author's Drafts in these Projects, by id."""
    statement = select(DraftRow).where(
        col(DraftRow.author_id) == author_id, col(DraftRow.project_id).in_(sorted(project_ids))
    )
    if status is not None:
        statement = statement.where(col(DraftRow.status) == status)
    if after is not None:
        statement = statement.where(col(DraftRow.id) > after)
    return list(uow.session.exec(statement.order_by(col(DraftRow.id)).limit(limit)))
