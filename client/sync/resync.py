"""After the feed was lost: what became of this machine's Drafts is asked for instead of told.

Without a cursor no events come. That is so at the first round, after a long absence, and after the
server was restored from a backup: then it may miss what it took, and even what it had published.
What is missing is offered again under the same operation ids.
"""

from __future__ import annotations

from dataclasses import replace

from client.domain.local_draft import LocalDraft
from client.store.unit_of_work import Store, UnitOfWork
from client.sync import deliveries
from client.sync.feed import apply_remote_draft
from client.sync.org_client import OrgClient
from shared_schema.drafts import DraftStatus
from shared_schema.org_contract import Draft, SyncAnswer


def compare_drafts(
    store: Store, client: OrgClient, answer: SyncAnswer, now: int, *, anew: bool
) -> tuple[set[str], bool]:
    """Bring the Drafts that were sent to the server's view of them, before ``answer`` is applied.

    With ``anew`` those of every Project. Otherwise those of Projects that this machine could not
    read and now can: events of its Drafts there were told to nobody.

    Returns the Projects that show something else now, and whether operations were offered again.
    Doing it twice is the same as once. Raises what the server answered.
    """
    with store.read() as uow:
        restored = uow.sync_state.get().epoch not in (None, answer.epoch)
        heads = {head.project_id: head for head in answer.projects}
        asked = heads.keys() if anew else heads.keys() & _lost(uow)
        local = [
            draft
            for project_id in sorted(asked)
            for draft in uow.drafts.list(project_id)
            if _concerned(draft, restored) and _sent(uow, draft)
        ]
    if not local:
        return set(), False
    remote = {draft.draft_id: draft for draft in client.drafts()}
    changed: set[str] = set()
    offered = False
    with store.write() as uow:
        for listed in local:
            draft = uow.drafts.get(listed.draft_id)
            if draft is None or draft.project_id not in heads:
                continue
            there = remote.get(draft.draft_id)
            if restored and draft.status is DraftStatus.MERGED and not _still_merged(there):
                if uow.drafts.active_of(draft.project_id, draft.resource_id) is not None:
                    continue  # A newer Draft has taken its place.
                draft = _reopen(uow, draft, now)
                changed.add(draft.project_id)
            if there is not None:
                changed |= apply_remote_draft(uow, draft, there, heads, now).changed
            offered = _offer_missing(uow, draft, there, now) or offered
    return changed, offered


def _lost(uow: UnitOfWork) -> set[str]:
    return {project.project_id for project in uow.projects.all() if not project.access}


def _concerned(draft: LocalDraft, restored: bool) -> bool:
    return draft.active or (restored and draft.status is DraftStatus.MERGED)


def _sent(uow: UnitOfWork, draft: LocalDraft) -> bool:
    return any(row.sent for row in uow.outbox.of_draft(draft.draft_id))


def _still_merged(there: Draft | None) -> bool:
    return there is not None and there.status is DraftStatus.MERGED


def _reopen(uow: UnitOfWork, draft: LocalDraft, now: int) -> LocalDraft:
    """The publication was lost with the restore; the Draft was kept here, so the text is not."""
    opened = replace(
        draft,
        status=DraftStatus.OPEN,
        review_id=None,
        merged_commit=None,
        merged_seq=None,
        updated_at=now,
    )
    uow.drafts.put(opened)
    uow.touch(draft.project_id, {draft.resource_id})
    return opened


def _offer_missing(uow: UnitOfWork, draft: LocalDraft, there: Draft | None, now: int) -> bool:
    taken = there.last_ordinal if there is not None else 0
    lost = {each.operation_id for each in draft.operations if each.ordinal > taken}
    rows = [row for row in uow.outbox.of_draft(draft.draft_id) if row.operation_id in lost]
    return deliveries.reoffer(uow, rows, now) > 0
