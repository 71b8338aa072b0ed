"""Founding a Draft anew whose commits the server does not have any more, after a restored backup.

Nothing of a commit that is gone can be compared with, so what the Draft says, as a whole, is proposed
on what is published now; a reviewer reads the difference. Operations that the server holds stay.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from client.domain.local_draft import LocalDraft
from shared_schema.drafts import DraftOperation, DraftStatus, OperationKind, Reconciliation
from shared_schema.memory import OrgSource, ResourceState
from shared_schema.rules.reconcile import reconcile


@dataclass(frozen=True, slots=True)
class Refounded:
    """The Draft on its new base, with the new operations in place of those that were not taken."""

    draft: LocalDraft
    operations: tuple[DraftOperation, ...]
    """The new ones. The last has the id of the last one that it stands for."""
    replaced: tuple[str, ...]
    """Ids of the operations that these stand for."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a Draft can be founded on: the published state of its resource, and the newest commit."""

    state: ResourceState
    commit: str | None
    source: OrgSource | None = None
    """For an adaptation: the version of its source that the Project shows now."""


def refound(
    draft: LocalDraft,
    taken: int,
    ground: Ground,
    new_id: Callable[[], str],
    occupied: Callable[[str], str | None],
) -> Refounded:
    """Return the Draft as a proposal on ``ground``; the server holds its first ``taken`` operations.

    Raises `BrokenDraft` for a Draft whose state cannot be told.
    """
    wanted = draft.state()
    replaced = tuple(each.operation_id for each in draft.operations[taken:])
    kept = draft.operations[:taken]
    source = draft.org_source if taken else ground.source
    state = wanted
    if draft.org_source is not None and wanted.exists:
        state = wanted.model_copy(update={"org_source": ground.source})
    steps: list[dict[str, object]]
    if taken:
        steps = [{"kind": OperationKind.REBASE, "base_commit": ground.commit or "", "state": state}]
    else:
        steps = _steps(ground.state, state)
    status = draft.status
    if not steps:
        status = DraftStatus.DISCARDED  # Gone there, and to be gone here: nothing is left to propose.
    names = [new_id() for _ in steps[:-1]] + ([replaced[-1]] if steps else [])
    operations = tuple(
        DraftOperation.model_validate({"operation_id": name, "ordinal": taken + place, **step})
        for place, (name, step) in enumerate(zip(names, steps, strict=True), start=1)
    )
    found = reconcile(ground.state, ground.state, state, occupied)
    kinds = tuple(dict.fromkeys(conflict.kind for conflict in found.conflicts))
    founded = replace(
        draft,
        base=ground.state,
        base_commit=ground.commit,
        org_source=source,
        status=status,
        reconciliation=Reconciliation.CONFLICTS if kinds else Reconciliation.UNKNOWN,
        conflicts=kinds,
        operations=(*kept, *operations),
    )
    return Refounded(founded, operations, replaced)


def _steps(base: ResourceState, wanted: ResourceState) -> list[dict[str, object]]:
    """Return the operations that lead from one state to another; one at least, if there is a reason."""
    if not wanted.exists:
        return [{"kind": OperationKind.DELETE}] if base.exists else []
    texts: dict[str, object] = {"body": wanted.body, "description": wanted.description}
    if not base.exists:
        return [{"kind": OperationKind.CREATE, "path": wanted.path, **texts}]
    steps: list[dict[str, object]] = [{"kind": OperationKind.UPDATE, **texts}]
    if wanted.path != base.path:
        steps.append({"kind": OperationKind.RENAME, "path": wanted.path})
    return steps
