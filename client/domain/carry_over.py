"""What was written after the state that a Review published goes on in a Draft of its own.

A merged Draft takes no more operations. Those that were on their way when it was merged were
acknowledged, so they become a new Draft on the published result, under their own ids. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from client.domain.local_draft import BrokenDraft, LocalDraft
from shared_schema.drafts import DraftOperation, OperationKind
from shared_schema.memory import ResourceState


@dataclass(frozen=True, slots=True)
class CarryOver:
    """How a merged Draft is split."""

    published: LocalDraft
    """The Draft with the operations that were published."""
    successor: LocalDraft | None
    """The new Draft with the others; None when a discard was the last word, or there are none."""
    dropped: tuple[str, ...] = ()
    """Operations that a discard took back before they were sent, and that discard itself."""


def carry_over(draft: LocalDraft, last_ordinal: int, draft_id: str, now: int) -> CarryOver | None:
    """Split a Draft at the last operation that was published; None when nothing is beyond it.

    ``draft`` is merged; ``draft_id`` names the successor. What cannot be read is left where it is.
    """
    kept = tuple(each for each in draft.operations if each.ordinal <= last_ordinal)
    rest = draft.operations[len(kept) :]
    if not rest or draft.broken:
        return None
    published = replace(draft, operations=kept)
    if any(each.kind is OperationKind.DISCARD for each in rest):
        return CarryOver(published, None, tuple(each.operation_id for each in rest))
    try:
        base = published.state()
    except BrokenDraft:
        return None
    successor = LocalDraft(
        draft_id=draft_id,
        project_id=draft.project_id,
        scope=draft.scope,
        resource_id=draft.resource_id,
        base_commit=draft.merged_commit,
        base=base,
        created_at=now,
        updated_at=now,
        overlay=draft.overlay,
        operations=_renumbered(rest, draft.merged_commit, base),
    )
    try:
        successor.state()
    except BrokenDraft:
        return None
    return CarryOver(published, successor)


def _renumbered(
    operations: Sequence[DraftOperation], base_commit: str | None, base: ResourceState
) -> tuple[DraftOperation, ...]:
    moved: list[DraftOperation] = []
    for place, operation in enumerate(operations, start=1):
        changed: dict[str, object] = {"ordinal": place}
        if operation.kind is OperationKind.REBASE:
            # It was decided before the publication was known, and the new base is newer.
            changed["base_commit"] = base_commit
            if operation.state is not None and operation.state.exists and base.exists:
                source = base.org_source or operation.state.org_source
                changed["state"] = operation.state.model_copy(update={"org_source": source})
        moved.append(operation.model_copy(update=changed))
    return tuple(moved)
