"""The ``store`` operation of the memory tool: one durable proposal, decided and committed at once.

The answer means that Draft, operation and outbox row are on disk. Nothing here waits for the
network, and nothing is published.
"""

from __future__ import annotations

from typing import assert_never

from client.clock import Clock
from client.domain.draft_checks import Change, Situation, check_hash, visible_target
from client.domain.draft_log import (
    Decision,
    Ids,
    decide_change,
    decide_create,
    decide_delete,
    decide_discard,
)
from client.services.draft_writing import (
    NewId,
    Wake,
    draft_not_found,
    fresh_ids,
    record,
    situation_of,
    written,
)
from client.services.project_memory import CurrentMemory, ProjectMemory, readable_project
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema import tool_contract
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_id
from shared_schema.memory import Scope
from shared_schema.rules.hashing import fingerprint
from shared_schema.rules.replacements import Replacement, apply_replacements
from shared_schema.tool_contract import Create, Delete, Discard, Rename, StoreAnswer, Update


class StoreDraftOperation:
    """Carries out ``store``; one object serves all threads."""

    def __init__(self, store: Store, memory: ProjectMemory, clock: Clock, new_id: NewId, woken: Wake) -> None:
        self._store = store
        self._memory = memory
        self._clock = clock
        self._new_id = new_id
        self._woken = woken

    def __call__(
        self, project_id: str, store_request: tool_contract.Store, operation_id: str | None = None
    ) -> StoreAnswer:
        """Make one proposal durable and return what it came to.

        A repeated ``operation_id`` is answered as the first time and does nothing; with another
        request it is ``idempotency_mismatch``. A refusal leaves no trace.
        """
        asked = _fingerprint(project_id, store_request)
        with self._store.write() as uow:
            if operation_id is not None:
                readable_project(uow, project_id)
                if (earlier := _earlier_answer(uow, operation_id, asked)) is not None:
                    return earlier
            current = self._memory.current(uow, project_id)
            ids = fresh_ids(self._new_id, self._clock(), operation_id)
            decision = _decide(uow, current, ids, store_request.operation)
            answer = StoreAnswer.model_validate(written(decision), from_attributes=True)
            record(uow, decision, asked, answer.model_dump_json(exclude_none=True))
        self._woken(project_id)
        return answer


def _decide(
    uow: UnitOfWork, current: CurrentMemory, ids: Ids, request: Create | Update | Rename | Delete | Discard
) -> Decision:
    memory = current.memory
    match request:
        case Create():
            wanted = Change(request.path, request.body, request.description)
            nothing = Situation(memory, current.paths)
            return decide_create(nothing, ids, wanted, Scope.PROJECT, memory.commit_id)
        case Update():
            item = visible_target(memory, request.id)
            check_hash(item, request.expected_hash)
            replacements = [
                Replacement(old_text=edit.old_text, new_text=edit.new_text) for edit in request.replacements
            ]
            body = apply_replacements(item.body, replacements)
            change = Change(body=body, description=request.description)
            return decide_change(situation_of(uow, current, item.resource_id), ids, item, change)
        case Rename():
            item = visible_target(memory, request.id)
            change = Change(path=request.new_path, description=request.description)
            return decide_change(situation_of(uow, current, item.resource_id), ids, item, change)
        case Delete():
            item = visible_target(memory, request.id)
            situation = situation_of(uow, current, item.resource_id)
            return decide_delete(situation, ids, item, request.description)
        case Discard():
            return _decide_discard(uow, current, ids, request.id)
        case _:
            assert_never(request)


def _decide_discard(uow: UnitOfWork, current: CurrentMemory, ids: Ids, asked: str) -> Decision:
    project_id = current.project.project_id
    draft = uow.drafts.get(asked) if is_id(asked, "drf") else uow.drafts.active_of(project_id, asked)
    if draft is None or draft.project_id != project_id:
        raise draft_not_found(asked)
    return decide_discard(situation_of(uow, current, draft.resource_id), ids, draft)


def _fingerprint(project_id: str, request: tool_contract.Store) -> str:
    return fingerprint([project_id, request.model_dump(exclude_none=True)])


def _earlier_answer(uow: UnitOfWork, operation_id: str, asked: str) -> StoreAnswer | None:
    earlier = uow.drafts.operation(operation_id)
    if earlier is None:
        return None
    if earlier.fingerprint != asked or earlier.answer is None:
        raise InterleafError(
            ErrorCode.IDEMPOTENCY_MISMATCH,
            "This operation id was used for another request. Allocate a new one.",
            details={"operation_id": operation_id},
        )
    return StoreAnswer.model_validate_json(earlier.answer)
