"""What people do to Drafts: create, edit, discard, and answer a conflict.

Other than an agent, a person gives complete texts, may propose to the Organization, and decides
what holds when the published state moved against the Draft.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace

from client.clock import Clock
from client.domain.draft_checks import Change, Situation, check_hash, visible_target
from client.domain.draft_log import (
    Decision,
    Ids,
    decide_change,
    decide_create,
    decide_delete,
    decide_discard,
    decide_resolution,
)
from client.domain.effective_memory import EffectiveResource
from client.services.bind_directories import find_project
from client.services.draft_writing import (
    NewId,
    Wake,
    draft_not_found,
    fresh_ids,
    record,
    situation_of,
    written,
)
from client.services.finding_drafts import find_draft
from client.services.load_memory import find_item
from client.services.project_memory import CurrentMemory, ProjectMemory
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.daemon_contract import DraftCall, DraftChanged, DraftCreateCall, DraftEditCall
from shared_schema.drafts import Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_id
from shared_schema.memory import Scope


class EditDrafts:
    """Carries out a person's Draft commands; one object serves all threads."""

    def __init__(self, store: Store, memory: ProjectMemory, clock: Clock, new_id: NewId, woken: Wake) -> None:
        self._store = store
        self._memory = memory
        self._clock = clock
        self._new_id = new_id
        self._woken = woken

    def create(self, call: DraftCreateCall) -> DraftChanged:
        """Make a create Draft, of Project or Org scope. An Org one is shown in its Project too."""
        with self._writing() as (uow, ids):
            current = self._memory.current(uow, find_project(uow, call.project).project_id)
            # The Org's newest commit is not known here; a new resource needs no base there.
            base_commit = current.memory.commit_id if call.scope is Scope.PROJECT else None
            wanted = Change(call.path, call.body, call.description)
            decision = decide_create(
                Situation(current.memory, current.paths), ids, wanted, call.scope, base_commit
            )
            record(uow, decision)
        return self._answered(decision)

    def edit(self, call: DraftEditCall) -> DraftChanged:
        """Give a resource, or its open Draft, another text, path or description, or delete it.

        On a Draft in conflict this is the answer to it: recorded on the newest published state.
        Raises ``invalid_arguments`` when nothing is asked for, and what `decide_change` and
        `decide_delete` raise.
        """
        wanted = Change(call.path, call.body, call.description)
        _check_asked(call, wanted)
        with self._writing() as (uow, ids):
            current = self._memory.current(uow, find_project(uow, call.project).project_id)
            decision = _decide_edit(uow, current, ids, call, wanted)
            record(uow, decision)
        return self._answered(decision)

    def discard(self, call: DraftCall) -> DraftChanged:
        """End a Draft; possible without access to its Project too."""
        with self._writing() as (uow, ids):
            draft = find_draft(uow, call)
            current = self._memory.current(uow, draft.project_id, readable=False)
            decision = decide_discard(situation_of(uow, current, draft.resource_id), ids, draft)
            record(uow, decision)
        return self._answered(decision)

    @contextmanager
    def _writing(self) -> Iterator[tuple[UnitOfWork, Ids]]:
        with self._store.write() as uow:
            yield uow, fresh_ids(self._new_id, self._clock())

    def _answered(self, decision: Decision) -> DraftChanged:
        self._woken(decision.draft.project_id)
        return DraftChanged(**asdict(written(decision)))


def _decide_edit(
    uow: UnitOfWork, current: CurrentMemory, ids: Ids, call: DraftEditCall, wanted: Change
) -> Decision:
    item, situation = _target(uow, current, call.resource)
    draft = situation.draft
    if item is not None:
        check_hash(item, call.expected_hash)
    if draft is not None and draft.reconciliation is Reconciliation.CONFLICTS:
        return decide_resolution(situation, ids, draft, None if call.delete else wanted)
    if item is None:
        raise draft_not_found(call.resource)
    scope = call.scope
    if draft is None and scope is Scope.ORG and item.scope is not Scope.ORG:
        raise _invalid("scope", "org fits a selected Org reference only; this resource is the Project's own")
    if draft is None and scope is Scope.PROJECT:
        # The scope that an edit has anyway: of the resource itself, or of its adaptation.
        scope = None
    if call.delete:
        return decide_delete(situation, ids, item, call.description, scope)
    return decide_change(situation, ids, item, wanted, scope)


def _target(
    uow: UnitOfWork, current: CurrentMemory, asked: str
) -> tuple[EffectiveResource | None, Situation]:
    """Return what is visible of the resource that a person named, and what an edit is decided on."""
    project_id = current.project.project_id
    if is_id(asked, "drf"):
        draft = uow.drafts.get(asked)
        if draft is None or draft.project_id != project_id:
            raise draft_not_found(asked)
        if not draft.active:
            raise InterleafError(
                ErrorCode.DRAFT_NOT_OPEN,
                f"This Draft is {draft.status.value} already; edit the resource itself instead.",
                details={"draft_id": draft.draft_id, "status": draft.status.value},
            )
        resource_id = draft.resource_id
    elif (item := find_item(current.memory, asked)) is not None:
        resource_id = item.resource_id
    elif uow.drafts.active_of(project_id, asked) is not None:
        # Not visible, for instance because the Draft deletes it.
        resource_id = asked
    else:
        resource_id = visible_target(current.memory, asked).resource_id
    return current.memory.by_id.get(resource_id), situation_of(uow, current, resource_id)


def _check_asked(call: DraftEditCall, wanted: Change) -> None:
    if not call.delete and wanted == Change():
        raise _invalid("body", "give a body, a path or a description, or delete")
    if call.delete and replace(wanted, description=None) != Change():
        raise _invalid("delete", "goes together with neither body nor path")


def _invalid(field: str, problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"{field}: {problem}.",
        details={"fields": [{"field": field, "problem": problem}]},
    )
