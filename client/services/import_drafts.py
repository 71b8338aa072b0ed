"""Documents from elsewhere as Drafts on this machine, a batch in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from client.clock import Clock
from client.domain.draft_checks import Situation
from client.domain.draft_log import Decision
from client.domain.effective_memory import EffectiveResource
from client.domain.importing import decide_changed, decide_new, meant
from client.domain.local_draft import BrokenDraft, LocalDraft
from client.services.bind_directories import find_project
from client.services.draft_writing import NewId, Wake, fresh_ids, record, situation_of, written
from client.services.project_memory import CurrentMemory, ProjectMemory
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.drafts import DraftStatus
from shared_schema.errors import ErrorCode, InterleafError, Kind
from shared_schema.memory import Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.rules.paths import PathSet
from shared_schema.transfer.documents import Outcome
from shared_schema.transfer_contract import ImportAnswer, ImportCall, ImportDocument, ImportedDocument

_ABOUT_ONE_DOCUMENT: Final = frozenset({Kind.INVALID, Kind.CONFLICT, Kind.DENIED, Kind.NOT_FOUND})
"""Errors that refuse a document; every other one ends the batch, which then leaves no trace."""


class ImportDrafts:
    """Carries out ``import_drafts``; one object serves all threads."""

    def __init__(self, store: Store, memory: ProjectMemory, clock: Clock, new_id: NewId, woken: Wake) -> None:
        self._store = store
        self._memory = memory
        self._clock = clock
        self._new_id = new_id
        self._woken = woken

    def __call__(self, call: ImportCall) -> ImportAnswer:
        """Make Drafts of what is new or different, and tell what became of each document.

        A document that is refused holds no other one up. The same batch again changes nothing.
        """
        with self._store.write() as uow:
            current = self._memory.current(uow, find_project(uow, call.project).project_id)
            batch = _Batch(uow, current, call.scope, self._clock, self._new_id, dry_run=call.dry_run)
            documents = [batch.take(document) for document in call.documents]
            project_id = current.project.project_id
        if batch.changed:
            self._woken(project_id)
        return ImportAnswer(project_id=project_id, documents=documents)


@dataclass
class _Batch:
    """One batch on one consistent cut. No two documents of it mean the same resource or path, so what
    the cut says of each stays true while the others are written.
    """

    uow: UnitOfWork
    current: CurrentMemory
    scope: Scope
    clock: Clock
    new_id: NewId
    dry_run: bool
    changed: bool = False
    _paths: PathSet = field(default_factory=PathSet)
    _meant: set[str] = field(default_factory=set)

    def take(self, document: ImportDocument) -> ImportedDocument:
        """Decide on one document, make it durable and tell what became of it."""
        try:
            item, decision = self._decided(document)
        except InterleafError as error:
            if error.kind not in _ABOUT_ONE_DOCUMENT:
                raise
            return ImportedDocument(
                outcome=Outcome.REFUSED, path=document.path, code=error.code.value, reason=error.message
            )
        if decision is None:
            return self._unchanged(item)
        self._paths.add(decision.state.path, decision.draft.resource_id)
        outcome = Outcome.IMPORTED if item is None else Outcome.CHANGED
        if self.dry_run:
            resource_id = None if item is None else item.resource_id
            return ImportedDocument(outcome=outcome, path=decision.state.path, resource_id=resource_id)
        record(self.uow, decision)
        self.changed = True
        answer = written(decision)
        return ImportedDocument(
            outcome=outcome,
            path=decision.state.path,
            resource_id=answer.resource_id,
            draft_id=answer.draft_id,
            scope=decision.draft.scope,
            submittable=_submittable(decision.draft),
        )

    def _decided(self, document: ImportDocument) -> tuple[EffectiveResource | None, Decision | None]:
        """Return the resource that is meant, and what to write; None for both: not there, nothing."""
        item = meant(self.current.memory, document)
        ids = fresh_ids(self.new_id, self.clock())
        if item is None:
            if self._paths.find_clash(document.path) is not None:
                raise InterleafError(
                    ErrorCode.PATH_OCCUPIED,
                    "Another document of this import is at, above or below this path.",
                )
            situation = Situation(self.current.memory, self.current.paths)
            return None, decide_new(situation, ids, document, self.scope)
        if item.resource_id in self._meant:
            raise InterleafError(
                ErrorCode.ALREADY_EXISTS, "Another document of this import is a version of the same resource."
            )
        self._meant.add(item.resource_id)
        if item.content_hash == content_hash(document.body):
            return item, None
        situation = situation_of(self.uow, self.current, item.resource_id)
        return item, decide_changed(situation, ids, item, document, self.scope)

    def _unchanged(self, item: EffectiveResource | None) -> ImportedDocument:
        if item is None:
            raise RuntimeError("what the Project does not show is new")
        draft = self.uow.drafts.get(item.draft.draft_id) if item.draft is not None else None
        return ImportedDocument(
            outcome=Outcome.UNCHANGED,
            path=item.path,
            resource_id=item.resource_id,
            draft_id=None if draft is None else draft.draft_id,
            scope=item.scope if draft is None else draft.scope,
            submittable=draft is not None and _submittable(draft),
        )


def _submittable(draft: LocalDraft) -> bool:
    try:
        return draft.status is DraftStatus.OPEN and draft.state() != draft.base
    except BrokenDraft:
        return False
