"""What a local write comes to: which Draft it goes to, as which operations, or why it is refused.

=================  ======================================  =======================================
operation          target                                  effect
=================  ======================================  =======================================
create             a free path                             a create Draft
update, rename     a Project's own resource                a Draft on it
update, rename     an Org reference                        a create Draft in Project scope, a new
                                                           resource: an adaptation
update, rename     a resource with an open Draft           appended to it; its scope stays
delete             a Project's own resource                a delete Draft, kept for Review
delete             a resource that only its Draft knows    the Draft is discarded
delete             an Org reference                        refused
discard            a Draft                                 the Draft ends, nothing is published
=================  ======================================  =======================================

Pure: ids come in, nothing is read or written. Every refusal is raised before anything is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from client.domain.draft_checks import (
    Change,
    Situation,
    appendable,
    check_room_beneath,
    check_room_for_source,
    check_texts,
    free_path,
)
from client.domain.effective_memory import EffectiveResource
from client.domain.local_draft import LocalDraft
from shared_schema.drafts import DraftOperation, DraftStatus, OperationKind, Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import ABSENT, OrgSource, ResourceState, Scope
from shared_schema.rules.markers import check_resolution
from shared_schema.rules.text import check_body


@dataclass(frozen=True, slots=True)
class Ids:
    """Fresh ids of one write, whether or not it needs them all, and its time (ms)."""

    draft_id: str
    resource_id: str
    operation_ids: tuple[str, str]
    now: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to make durable, in one transaction."""

    draft: LocalDraft
    """As it is afterwards, the new operations included."""
    is_new: bool
    operations: tuple[DraftOperation, ...]
    """The new ones; the last one answers for the write."""
    touched: frozenset[str]
    """Resources that the Project may show differently now."""
    state: ResourceState
    """Of the resource that the Draft is on; absent after delete and discard."""
    queued: bool = True
    """False: nothing of it ever leaves this machine."""
    cancelled: tuple[str, ...] = ()
    """Earlier operations that leave the outbox without having been sent."""
    adapts: str | None = None
    """The Org resource that a new adaptation replaces."""


def decide_create(
    situation: Situation, ids: Ids, wanted: Change, scope: Scope, base_commit: str | None
) -> Decision:
    """Decide on a new resource. ``wanted`` has path and body.

    Raises ``invalid_path``, ``path_occupied`` and, for its texts, ``invalid_arguments``.
    """
    path = free_path(situation.paths, wanted.path or "", own=())
    return _new_resource(situation, ids, replace(wanted, path=path), scope, base_commit, None)


def decide_change(
    situation: Situation, ids: Ids, item: EffectiveResource, wanted: Change, scope: Scope | None = None
) -> Decision:
    """Decide on other texts or another path of a visible resource.

    ``scope`` org proposes the change of an Org reference itself; by default it becomes an
    adaptation. Raises ``invalid_path``, ``path_occupied``, ``invalid_arguments``,
    ``text_replacement_no_change`` when everything is as wanted already, ``draft_not_open`` and
    ``already_exists`` when the open Draft cannot take it.
    """
    draft = appendable(situation, scope)
    adapting = draft is None and item.scope is Scope.ORG and scope is not Scope.ORG
    own = {item.resource_id, item.adapts} if item.adapts else {item.resource_id}
    if wanted.path is not None:
        wanted = replace(wanted, path=free_path(situation.paths, wanted.path, own))
    wanted = _differing(item, wanted)
    if adapting:
        complete = Change(
            path=wanted.path or item.path,
            body=wanted.body if wanted.body is not None else item.body,
            description=wanted.description if wanted.description is not None else item.description,
        )
        source = _source_version(item)
        base_commit = situation.memory.commit_id
        return _new_resource(situation, ids, complete, Scope.PROJECT, base_commit, source)
    check_texts(wanted)
    return _recorded(situation, ids, item, draft, scope, _operations_of(wanted))


def decide_delete(
    situation: Situation,
    ids: Ids,
    item: EffectiveResource,
    reason: str | None,
    scope: Scope | None = None,
) -> Decision:
    """Decide on the removal of a visible resource: a Draft for Review, never a removal at once.

    Raises ``org_reference_not_deletable``, and ``path_occupied`` when what would come back has no
    room any more.
    """
    draft = appendable(situation, scope)
    if draft is not None and situation.beneath is None:
        return decide_discard(situation, ids, draft)
    if draft is None and item.scope is Scope.ORG and scope is not Scope.ORG:
        raise InterleafError(
            ErrorCode.ORG_REFERENCE_NOT_DELETABLE,
            "The Organization owns this resource. Remove it from the Project's selection, or propose "
            "its deletion to the Organization.",
            details={"resource_id": item.resource_id},
        )
    check_texts(Change(description=reason))
    check_room_for_source(situation, item)
    return _recorded(
        situation, ids, item, draft, scope, [{"kind": OperationKind.DELETE, "description": reason}]
    )


def decide_discard(situation: Situation, ids: Ids, draft: LocalDraft) -> Decision:
    """Decide on the end of a Draft. What the server cannot have yet is cancelled with it.

    Raises ``draft_not_open`` for one that is merged or discarded, and ``path_occupied`` when the
    published resource would come back to a path that another one took meanwhile.
    """
    if not draft.active:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_OPEN,
            f"This Draft is {draft.status.value} already; nothing was changed.",
            details={"draft_id": draft.draft_id, "status": draft.status.value},
        )
    if draft.overlay:
        check_room_beneath(situation, draft)
    # The server knows nothing of a Draft of which nothing was sent, so there is nothing to tell.
    kept = draft.operations
    if situation.sent and not draft.broken:
        kept = tuple(item for item in kept if item.operation_id not in situation.not_sent)
    operation = DraftOperation(
        operation_id=ids.operation_ids[0],
        ordinal=len(kept) + draft.unread + 1,
        kind=OperationKind.DISCARD,
    )
    ended = replace(draft, status=DraftStatus.DISCARDED, operations=(*kept, operation), updated_at=ids.now)
    return Decision(
        draft=ended,
        is_new=False,
        operations=(operation,),
        touched=frozenset({draft.resource_id}),
        state=ABSENT,
        queued=situation.sent,
        cancelled=() if situation.sent and draft.broken else situation.not_sent,
    )


def decide_resolution(situation: Situation, ids: Ids, draft: LocalDraft, wanted: Change | None) -> Decision:
    """Decide on a person's complete answer to a conflict: the text on the newest published state.

    ``wanted`` None removes the resource. Raises what `decide_change` does for path, texts and Draft,
    and ``conflict_markers``.
    """
    appendable(situation, None)
    state = ABSENT
    if wanted is not None:
        own = {draft.resource_id, *([draft.org_source.resource_id] if draft.org_source else [])}
        current = draft.state()
        check_texts(wanted)
        path = free_path(situation.paths, wanted.path or current.path or draft.base.path, own)
        body = wanted.body if wanted.body is not None else current.body
        check_body(body)
        check_resolution(body, current.body, (situation.beneath or ABSENT).body)
        state = ResourceState(
            exists=True,
            path=path,
            body=body,
            description=wanted.description if wanted.description is not None else current.description,
            org_source=current.org_source or draft.org_source,
        )
    operation = DraftOperation(
        operation_id=ids.operation_ids[0],
        ordinal=draft.next_ordinal,
        kind=OperationKind.REBASE,
        base_commit=situation.beneath_commit or "",
        state=state,
    )
    resolved = replace(
        draft,
        base=situation.beneath or ABSENT,
        base_commit=situation.beneath_commit,
        reconciliation=Reconciliation.UNKNOWN,
        conflicts=(),
        operations=(*draft.operations, operation),
        updated_at=ids.now,
    )
    touched = frozenset({draft.resource_id})
    return Decision(resolved, False, (operation,), touched, state)


# --- what they share ------------------------------------------------------------------------


def _new_resource(
    situation: Situation,
    ids: Ids,
    complete: Change,
    scope: Scope,
    base_commit: str | None,
    source: OrgSource | None,
) -> Decision:
    check_texts(complete)
    operation = DraftOperation(
        operation_id=ids.operation_ids[0],
        ordinal=1,
        kind=OperationKind.CREATE,
        path=complete.path,
        body=complete.body,
        description=complete.description,
    )
    draft = LocalDraft(
        draft_id=ids.draft_id,
        project_id=situation.memory.project_id,
        scope=scope,
        resource_id=ids.resource_id,
        base_commit=base_commit,
        base=ABSENT,
        created_at=ids.now,
        updated_at=ids.now,
        org_source=source,
        operations=(operation,),
    )
    adapts = source.resource_id if source else None
    touched = frozenset({ids.resource_id, *([adapts] if adapts else [])})
    return Decision(draft, True, (operation,), touched, draft.state(), adapts=adapts)


def _recorded(
    situation: Situation,
    ids: Ids,
    item: EffectiveResource,
    draft: LocalDraft | None,
    scope: Scope | None,
    steps: Sequence[Mapping[str, Any]],
) -> Decision:
    """Append the steps to the open Draft, or to a new one on what the Project shows."""
    is_new = draft is None
    if draft is None:
        draft = LocalDraft(
            draft_id=ids.draft_id,
            project_id=situation.memory.project_id,
            scope=scope or item.scope,
            resource_id=item.resource_id,
            base_commit=situation.beneath_commit,
            base=situation.beneath or ABSENT,
            created_at=ids.now,
            updated_at=ids.now,
        )
    operations = tuple(
        DraftOperation(operation_id=operation_id, ordinal=draft.next_ordinal + place, **step)
        for place, (step, operation_id) in enumerate(zip(steps, ids.operation_ids, strict=False))
    )
    draft = replace(draft, operations=draft.operations + operations, updated_at=ids.now)
    touched = frozenset({item.resource_id})
    return Decision(draft, is_new, operations, touched, draft.state())


def _differing(item: EffectiveResource, wanted: Change) -> Change:
    changed = Change(
        path=wanted.path if wanted.path != item.path else None,
        body=wanted.body if wanted.body != item.body else None,
        description=wanted.description if wanted.description != item.description else None,
    )
    if changed == Change():
        raise InterleafError(
            ErrorCode.TEXT_REPLACEMENT_NO_CHANGE,
            "The resource is as wanted already. Leave out the edit.",
            details={"resource_id": item.resource_id, "current_hash": item.content_hash},
        )
    return changed


def _operations_of(wanted: Change) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    texts = {"body": wanted.body, "description": wanted.description}
    if wanted.body is not None or wanted.path is None:
        steps.append({"kind": OperationKind.UPDATE, **texts})
    if wanted.path is not None:
        description = None if steps else wanted.description
        steps.append({"kind": OperationKind.RENAME, "path": wanted.path, "description": description})
    return steps


def _source_version(item: EffectiveResource) -> OrgSource:
    if item.org_source is None:
        raise InterleafError(
            ErrorCode.PROJECT_NOT_SYNCED,
            "The version of this Org resource is not known here yet. Run: interleaf sync --wait",
            details={"resource_id": item.resource_id},
        )
    return item.org_source
