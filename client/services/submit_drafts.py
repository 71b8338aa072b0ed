"""From Drafts on this machine to a Review on the server."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from client.clock import Clock, system_clock
from client.domain.local_draft import BrokenDraft, LocalDraft
from client.services.bind_directories import find_project
from client.services.draft_writing import draft_not_found
from client.services.project_memory import ProjectMemory
from client.store.unit_of_work import Store, UnitOfWork
from client.sync import deliveries
from client.sync.org_client import OrgClient
from client.sync.worker import SyncWorker
from shared_schema import limits
from shared_schema.daemon_contract import SubmitCall, Submitted
from shared_schema.drafts import DraftStatus, Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_id, is_resource_id
from shared_schema.org_contract import ContributionEntry, ReviewCreate
from shared_schema.sync_status import ParkingCause, SyncStatus

PUSH_SECONDS: Final = 60.0
_NAMED_IN_TITLE: Final = 3


class SubmitDrafts:
    """Pushes what is queued of some Drafts, then opens one Review of them, in order."""

    def __init__(
        self,
        store: Store,
        memory: ProjectMemory,
        worker: SyncWorker,
        client_source: Callable[[], OrgClient | None],
        *,
        clock: Clock = system_clock,
        monotonic: Callable[[], float] = time.monotonic,
        push_seconds: float = PUSH_SECONDS,
    ) -> None:
        self._store = store
        self._memory = memory
        self._worker = worker
        self._client_source = client_source
        self._clock = clock
        self._monotonic = monotonic
        self._push_seconds = push_seconds

    def __call__(self, call: SubmitCall) -> Submitted:
        """Open the Review and note it on the Drafts at once.

        Raises ``draft_not_found``, ``draft_not_open``, ``draft_empty``, ``reconciliation_required``,
        ``invalid_arguments`` for Drafts that do not go into one Review, ``sync_incomplete`` when
        they do not reach the server, ``signed_out``, and what the server answers.
        """
        names, offers = self._resolve(call)
        self._checked(names)
        self._push(names)
        # A round in between may have brought the Drafts onto a newer state, or into a conflict.
        drafts = self._checked(names)
        client = self._client_source()
        if client is None:
            raise InterleafError(ErrorCode.SIGNED_OUT)
        title = call.title or default_title(drafts)
        wanted = ReviewCreate(
            project_id=drafts[0].project_id,
            scope=drafts[0].scope,
            draft_ids=names,
            title=title,
            description=call.description,
            org_contribution=offers,
        )
        detail = client.create_review(wanted, submission_key(wanted, drafts))
        review_id = detail.review.review_id
        with self._store.write() as uow:
            for name in names:
                draft = uow.drafts.get(name)
                if draft is not None and draft.status is DraftStatus.OPEN:
                    submitted = replace(
                        draft, status=DraftStatus.SUBMITTED, review_id=review_id, updated_at=self._clock()
                    )
                    uow.drafts.put(submitted)
        return Submitted(review_id=review_id, title=detail.review.title, draft_ids=names)

    def _resolve(self, call: SubmitCall) -> tuple[list[str], list[ContributionEntry]]:
        with self._store.read() as uow:
            project = None if call.project is None else find_project(uow, call.project).project_id
            names = [self._find(uow, text, project) for text in call.drafts]
            offers = [
                ContributionEntry(
                    draft_id=self._find(uow, offer.draft, project), path=offer.path, target_id=offer.target_id
                )
                for offer in call.contribute
            ]
        if len(set(names)) != len(names):
            raise _unfit("drafts", "name the same Draft twice")
        if any(offer.draft_id not in names for offer in offers):
            raise _unfit("contribute", "names a Draft that is not submitted here")
        return names, offers

    def _find(self, uow: UnitOfWork, text: str, project_id: str | None) -> str:
        if is_id(text, "drf"):
            found = uow.drafts.get(text)
            if found is not None and project_id in (None, found.project_id):
                return found.draft_id
            raise draft_not_found(text)
        if project_id is None:
            on_resource = uow.drafts.active_on(text) if is_resource_id(text) else ()
            if len(on_resource) == 1:
                return on_resource[0].draft_id
            raise _unfit("project", "has to be given with a path or a resource id")
        active = uow.drafts.active_of(project_id, text)
        if active is not None:
            return active.draft_id
        shown = self._memory.current(uow, project_id).memory.by_path.get(text)
        if shown is not None and shown.draft is not None:
            return shown.draft.draft_id
        # A deletion shows nothing, and a proposal is not shown at all.
        for draft in uow.drafts.list(project_id, active_only=True):
            if text in _paths(draft):
                return draft.draft_id
        raise draft_not_found(text)

    def _checked(self, names: Sequence[str]) -> list[LocalDraft]:
        with self._store.read() as uow:
            found = [uow.drafts.get(name) for name in names]
        drafts = [draft for draft in found if draft is not None]
        if len({draft.project_id for draft in drafts}) > 1:
            raise _unfit("drafts", "belong to several Projects; open a Review for each")
        if len({draft.scope for draft in drafts}) > 1:
            raise _unfit("drafts", "target both the Project and the Organization; open a Review for each")
        for draft in drafts:
            _require_ready(draft)
        return drafts

    def _push(self, names: Sequence[str]) -> None:
        """Wait until the server has every operation of the Drafts."""
        deadline = self._monotonic() + self._push_seconds
        first = True
        while self._waiting(names):
            remaining = deadline - self._monotonic()
            if remaining <= 0:
                raise _not_sent("The server did not take all operations in time", names)
            if first:
                with self._store.write() as uow:
                    deliveries.make_due(uow, self._clock())
                self._worker.run_round(remaining)
                first = False
            else:
                self._worker.next_round(remaining)

    def _waiting(self, names: Sequence[str]) -> bool:
        """Tell whether operations are on their way; raise when waiting is of no use."""
        with self._store.read() as uow:
            rows = [row for name in names for row in uow.outbox.of_draft(name)]
        for row in rows:
            if row.sync_status is SyncStatus.FAILED:
                raise _not_sent(f"The server refused an operation ({row.error_message})", [row.draft_id])
            if row.cause is ParkingCause.SIGNED_OUT:
                raise InterleafError(ErrorCode.SIGNED_OUT)
            if row.cause is ParkingCause.ACCESS_LOST:
                raise InterleafError(ErrorCode.PROJECT_ACCESS_LOST)
        return any(row.sync_status is not SyncStatus.SYNCED for row in rows)


def submission_key(wanted: ReviewCreate, drafts: Sequence[LocalDraft]) -> str:
    """Return what makes this submission the same one when its answer was lost and it comes again.

    A Draft that came back from a Review, or was edited, was touched since: that is another one.
    """
    touched = [[draft.next_ordinal, draft.updated_at] for draft in drafts]
    text = json.dumps([wanted.model_dump(mode="json"), touched], sort_keys=True)
    return f"submit-{hashlib.sha256(text.encode()).hexdigest()}"


def default_title(drafts: Sequence[LocalDraft]) -> str:
    """Return a title that names what the Drafts do to which paths."""
    named = [_deed(draft) for draft in drafts[:_NAMED_IN_TITLE]]
    title = ", ".join(named)
    if len(drafts) > _NAMED_IN_TITLE:
        title += f" and {len(drafts) - _NAMED_IN_TITLE} more"
    title = title[0].upper() + title[1:]
    return title if len(title) <= limits.TITLE_CHARACTERS else title[: limits.TITLE_CHARACTERS - 1] + "…"


def _deed(draft: LocalDraft) -> str:
    state = draft.state()
    if not state.exists:
        return f"delete {draft.base.path}"
    if not draft.base.exists:
        verb = "adapt" if draft.org_source is not None else "add"
        return f"{verb} {state.path}"
    if state.path != draft.base.path:
        return f"rename {draft.base.path} to {state.path}"
    return f"update {state.path}"


def _paths(draft: LocalDraft) -> set[str]:
    try:
        state = draft.state()
    except BrokenDraft:
        return set()
    return {state.path} if state.exists else {draft.base.path}


def _require_ready(draft: LocalDraft) -> None:
    details = {"draft_id": draft.draft_id}
    if draft.status is DraftStatus.SUBMITTED:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_OPEN,
            f"The Draft is in Review {draft.review_id} already. Withdraw that one first, or wait for it.",
            details={**details, "review_id": draft.review_id},
        )
    if draft.status is not DraftStatus.OPEN:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_OPEN, f"The Draft is {draft.status}. Make a new one.", details=details
        )
    if draft.reconciliation is Reconciliation.CONFLICTS:
        raise InterleafError(
            ErrorCode.RECONCILIATION_REQUIRED,
            f"The Draft conflicts with what was published since ({', '.join(draft.conflicts)}). "
            f"See it with: interleaf draft show {draft.draft_id}. Then edit it to what it shall be.",
            details={**details, "conflicts": list(draft.conflicts)},
        )
    try:
        empty = draft.state() == draft.base
    except BrokenDraft:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_OPEN,
            "The Draft cannot be read by this release. Update Interleaf, or discard the Draft.",
            details=details,
        ) from None
    if empty:
        raise InterleafError(ErrorCode.DRAFT_EMPTY, details=details)


def _unfit(field: str, problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"{field} {problem}.",
        details={"fields": [{"field": field, "problem": problem}]},
    )


def _not_sent(why: str, names: Sequence[str]) -> InterleafError:
    return InterleafError(
        ErrorCode.SYNC_INCOMPLETE,
        f"{why}, so no Review was opened. See what is left with: interleaf outbox list",
        details={"draft_ids": list(names)},
    )
