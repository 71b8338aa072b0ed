"""Starting a Draft: what its header and its first operation have to fulfil."""

from org_server.domain.permissions import Actor
from org_server.store.commits import seq_of
from org_server.store.drafts import base_states, id_taken_elsewhere, owner_of, put_state
from org_server.store.tables import DraftRow
from org_server.store.unit_of_work import UnitOfWork
from org_server.store.versions import state_of, versions_at
from shared_schema.drafts import DraftHeader, DraftOperation, OperationKind
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_resource_id
from shared_schema.memory import OrgSource, Scope


def start_draft(
    uow: UnitOfWork, actor: Actor, installation_id: str, header: DraftHeader, first: DraftOperation
) -> DraftRow:
    """Insert a Draft without operations, in its base state, and return it.

    Raises ``commit_unknown`` for a base or source commit that is not in the history,
    ``already_exists`` where a create names a resource that exists, and ``invalid_arguments``.
    """
    owner = owner_of(uow, header.project_id, header.scope)
    _check_header(header, first)
    base_seq = seq_of(uow, owner, header.base_commit)
    source = header.org_source
    if source is not None:
        known_source(uow, source)
    draft = DraftRow(
        id=header.draft_id,
        project_id=header.project_id,
        scope=header.scope.value,
        resource_id=header.resource_id,
        author_id=actor.user_id,
        installation_id=installation_id,
        base_commit=header.base_commit,
        base_seq=base_seq,
        org_source_resource_id=None if source is None else source.resource_id,
        org_source_commit_id=None if source is None else source.commit_id,
        created_at=uow.now,
        updated_at=uow.now,
    )
    base = base_states(uow, owner, [draft])[draft.id]
    if first.kind is OperationKind.CREATE and (
        base.exists or id_taken_elsewhere(uow, owner, header.scope, header.resource_id)
    ):
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS,
            "A resource with this id exists already. Create the new one under an id of its own.",
            details={"resource_id": header.resource_id},
        )
    put_state(draft, base)
    uow.add(draft)
    return draft


def known_source(uow: UnitOfWork, source: OrgSource) -> None:
    """Raise unless ``source`` names a version that the Organization has, or had."""
    seq = seq_of(uow, uow.org.id, source.commit_id)
    row = versions_at(uow, uow.org.id, [(source.resource_id, seq)]).get((source.resource_id, seq))
    if not state_of(row).exists:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "The Org source names a resource that did not exist at its commit.",
            details={"fields": [{"field": "draft.org_source", "problem": "names no published version"}]},
        )


def _check_header(header: DraftHeader, first: DraftOperation) -> None:
    problem = None
    if not is_resource_id(header.resource_id):
        problem = "resource_id", "is no resource id"
    elif header.org_source is not None and header.scope is Scope.ORG:
        problem = "org_source", "belongs to adaptations, which are of Project scope"
    elif header.org_source is not None and first.kind is not OperationKind.CREATE:
        problem = "org_source", "belongs to a Draft that begins with a create"
    elif header.org_source is not None and header.org_source.resource_id == header.resource_id:
        problem = "org_source", "is the resource itself; an adaptation has an id of its own"
    if problem is not None:
        field, text = problem
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"The Draft's {field} {text}.",
            details={"fields": [{"field": f"draft.{field}", "problem": text}]},
        )
