"""The only upload: a Draft's operations, each with exactly one effect however often it is sent."""

from collections.abc import Sequence

from org_server.domain.permissions import Action, Actor
from org_server.domain.states import HashedState
from org_server.domain.uploads import checked_operation, new_operations, operation_fingerprint
from org_server.services import access
from org_server.services.draft_views import answer_drafts
from org_server.services.new_drafts import known_source, start_draft
from org_server.services.review_content import content_changed, drop_draft
from org_server.store.blobs import put_text, read_texts
from org_server.store.commits import seq_of
from org_server.store.drafts import (
    base_states,
    known_operations,
    owner_of_draft,
    published_states,
    put_state,
    state_of_draft,
)
from org_server.store.tables import DraftOperationRow, DraftRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema.drafts import (
    ACTIVE_STATUSES,
    DraftHeader,
    DraftOperation,
    DraftStatus,
    OperationKind,
    apply_operation,
)
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import OrgSource
from shared_schema.org_contract import FeedEventType, UploadAnswer, UploadRequest
from shared_schema.rules.markers import check_resolution


def accept_operations(
    units: UnitOfWorkFactory, actor: Actor, draft_id: str, request: UploadRequest
) -> UploadAnswer:
    """POST /drafts/{draft_id}/operations: all of the request takes effect, or nothing.

    The first operation creates the Draft. What was accepted before is answered again and changes
    nothing, even when the Draft is merged or discarded by now. Raises ``draft_not_found`` for
    another author's Draft, ``operation_out_of_order``, ``idempotency_mismatch``,
    ``draft_not_open``, ``commit_unknown``, ``already_exists``, ``invalid_path``,
    ``conflict_markers`` and ``invalid_arguments``.
    """
    if request.draft.draft_id != draft_id:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "The Draft's id in the address and in the body differ.",
            details={"fields": [{"field": "draft.draft_id", "problem": "is not the address's"}]},
        )
    with units.write() as uow:
        access.require_project(uow, actor, Action.DRAFT_WRITE, request.draft.project_id)
        draft = uow.session.get(DraftRow, draft_id)
        if draft is not None:
            _require_same(draft, actor, request.draft)
        names = [operation.operation_id for operation in request.operations]
        known = known_operations(uow, request.installation_id, names)
        fresh = new_operations(
            draft_id,
            0 if draft is None else draft.last_ordinal,
            request.operations,
            {name: row.fingerprint for name, row in known.items()},
        )
        if fresh:
            created = draft is None
            if draft is None:
                draft = start_draft(uow, actor, request.installation_id, request.draft, fresh[0])
            _apply(uow, draft, request.installation_id, fresh, created=created)
        if draft is None:
            raise RuntimeError("operations are known whose Draft is not")
        return UploadAnswer(accepted=names, draft=answer_drafts(uow, [draft])[0])


def _require_same(draft: DraftRow, actor: Actor, header: DraftHeader) -> None:
    if draft.author_id != actor.user_id:
        raise InterleafError(ErrorCode.DRAFT_NOT_FOUND, "There is no such Draft, or it is not yours.")
    source = header.org_source
    held = (draft.project_id, draft.scope, draft.resource_id, draft.org_source_resource_id)
    sent = (
        header.project_id,
        header.scope.value,
        header.resource_id,
        None if source is None else source.resource_id,
    )
    if held != sent:
        raise InterleafError(
            ErrorCode.IDEMPOTENCY_MISMATCH,
            "This Draft was created for another Project, scope, resource or source. Allocate a new id.",
            details={"draft_id": draft.id},
        )


def _apply(
    uow: UnitOfWork,
    draft: DraftRow,
    installation_id: str,
    operations: Sequence[DraftOperation],
    *,
    created: bool,
) -> None:
    for operation in operations:
        if DraftStatus(draft.status) not in ACTIVE_STATUSES:
            raise InterleafError(
                ErrorCode.DRAFT_NOT_OPEN,
                f"The Draft is {draft.status}. Make a new Draft.",
                details={"draft_id": draft.id, "status": draft.status},
            )
        _apply_one(uow, draft, operation)
        uow.add(_recorded(uow, draft, installation_id, operation))
    draft.updated_at = uow.now
    uow.session.add(draft)
    uow.session.flush()
    _tell(uow, draft, operations, created=created)


def _apply_one(uow: UnitOfWork, draft: DraftRow, operation: DraftOperation) -> None:
    present = state_of_draft(draft)
    checked = checked_operation(operation, present)
    if checked.kind is OperationKind.REBASE:
        _move_base(uow, draft, checked, present)
        _check_markers(uow, draft, checked, present)
    full = present.with_body(read_texts(uow, [present.content_hash]))
    after = apply_operation(full, checked, _source_of(draft))
    if after.exists:
        put_text(uow, after.body)
    put_state(draft, HashedState.of(after))
    draft.last_ordinal = operation.ordinal
    if checked.kind is OperationKind.DISCARD:
        draft.status = DraftStatus.DISCARDED.value


def _source_of(draft: DraftRow) -> OrgSource | None:
    if draft.org_source_resource_id is None or draft.org_source_commit_id is None:
        return None
    return OrgSource(resource_id=draft.org_source_resource_id, commit_id=draft.org_source_commit_id)


def _move_base(uow: UnitOfWork, draft: DraftRow, operation: DraftOperation, present: HashedState) -> None:
    owner = owner_of_draft(uow, draft)
    base_commit = operation.base_commit or None
    seq = seq_of(uow, owner, base_commit)
    if seq < draft.base_seq:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "A rebase goes forward; its base_commit is older than the Draft's base.",
            details={"operation_id": operation.operation_id},
        )
    sources = {present.source_id, draft.org_source_resource_id}
    sources |= {state.source_id for state in base_states(uow, owner, [draft]).values()}
    sources |= {state.source_id for state in published_states(uow, owner, [draft]).values()}
    draft.base_commit, draft.base_seq = base_commit, seq
    source = operation.state.org_source if operation.state is not None else None
    if source is None:
        return
    if source.resource_id not in sources:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "A rebase keeps the Draft's Org source; it may only name another version of it.",
            details={"operation_id": operation.operation_id},
        )
    known_source(uow, source)


def _check_markers(uow: UnitOfWork, draft: DraftRow, operation: DraftOperation, present: HashedState) -> None:
    if operation.state is None or not operation.state.exists:
        return
    beneath = base_states(uow, owner_of_draft(uow, draft), [draft])[draft.id]
    texts = read_texts(uow, [present.content_hash, beneath.content_hash])
    check_resolution(operation.state.body, *texts.values())


def _recorded(
    uow: UnitOfWork, draft: DraftRow, installation_id: str, operation: DraftOperation
) -> DraftOperationRow:
    payload = operation.model_dump(mode="json", exclude_none=True, exclude={"body", "state"})
    # After the operation the text, if there is any, is stored under the Draft's state.
    payload["content_hash"] = draft.state_content_hash
    return DraftOperationRow(
        draft_id=draft.id,
        ordinal=operation.ordinal,
        installation_id=installation_id,
        operation_id=operation.operation_id,
        fingerprint=operation_fingerprint(draft.id, operation),
        kind=operation.kind.value,
        payload=payload,
        answer={"accepted": operation.operation_id},
        created_at=uow.now,
    )


def _tell(uow: UnitOfWork, draft: DraftRow, operations: Sequence[DraftOperation], *, created: bool) -> None:
    kinds = {operation.kind for operation in operations}
    events = [FeedEventType.DRAFT_CREATED] if created else []
    if not created and kinds - {OperationKind.REBASE, OperationKind.DISCARD}:
        events.append(FeedEventType.DRAFT_APPENDED)
    if OperationKind.REBASE in kinds:
        events.append(FeedEventType.DRAFT_REBASED)
    discarded = draft.status == DraftStatus.DISCARDED.value
    if discarded:
        events.append(FeedEventType.DRAFT_DISCARDED)
    for event in events:
        uow.emit(
            event,
            project_id=draft.project_id,
            user_id=draft.author_id,
            draft_id=draft.id,
            review_id=draft.review_id,
            resource_id=draft.resource_id,
        )
    if draft.review_id is not None:
        if discarded:
            drop_draft(uow, draft)
        else:
            content_changed(uow, draft.review_id, draft.author_id)
