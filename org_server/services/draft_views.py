"""Drafts as their readers see them: with their states and how they stand."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from org_server.domain.reconciliation import CURRENT, Standing, judge, texts_needed
from org_server.domain.states import HashedState
from org_server.store.blobs import read_texts
from org_server.store.commits import read_ref
from org_server.store.drafts import base_states, owner_of_draft, published_states, state_of_draft
from org_server.store.tables import DraftRow
from org_server.store.unit_of_work import UnitOfWork
from org_server.store.versions import find_clashes
from shared_schema.drafts import ACTIVE_STATUSES, DraftStatus
from shared_schema.memory import Scope
from shared_schema.org_contract import Draft


@dataclass(frozen=True)
class DraftView:
    """One Draft with its states: at its base, as published now, and its own."""

    row: DraftRow
    owner: str
    base: HashedState
    current: HashedState
    state: HashedState
    standing: Standing

    @property
    def path(self) -> str:
        """The path that names it to a reader, also once it deletes its resource."""
        return self.state.path or self.base.path or self.current.path


def view_drafts(uow: UnitOfWork, drafts: Sequence[DraftRow]) -> list[DraftView]:
    """Return the Drafts with their states, in the same order."""
    by_owner: dict[str, list[DraftRow]] = defaultdict(list)
    for draft in drafts:
        by_owner[owner_of_draft(uow, draft)].append(draft)
    views: dict[str, DraftView] = {}
    for owner, group in by_owner.items():
        head = read_ref(uow, owner).commit_id
        bases, published = base_states(uow, owner, group), published_states(uow, owner, group)
        for draft in group:
            states = bases[draft.id], published[draft.id], state_of_draft(draft)
            behind = draft.base_commit != head and DraftStatus(draft.status) in ACTIVE_STATUSES
            standing = _standing(uow, owner, draft, *states) if behind else CURRENT
            views[draft.id] = DraftView(draft, owner, *states, standing)
    return [views[draft.id] for draft in drafts]


def occupied_by(
    uow: UnitOfWork, owner: str, resource_id: str, source_id: str | None
) -> Callable[[str], str | None]:
    """Return the function that tells which other resource stands in the way of a path.

    The source of an adaptation gives its place up to it.
    """

    def occupied(path: str) -> str | None:
        leaving = () if source_id is None else (source_id,)
        return find_clashes(uow, owner, {resource_id: path}, leaving).get(resource_id)

    return occupied


def answer_drafts(uow: UnitOfWork, drafts: Sequence[DraftRow]) -> list[Draft]:
    """Return the Drafts as the contract shows them."""
    return [as_answer(view) for view in view_drafts(uow, drafts)]


def as_answer(view: DraftView) -> Draft:
    """Return one Draft as the contract shows it."""
    row = view.row
    return Draft(
        draft_id=row.id,
        project_id=row.project_id,
        scope=Scope(row.scope),
        resource_id=row.resource_id,
        author_id=row.author_id,
        status=DraftStatus(row.status),
        freshness=view.standing.freshness,
        reconciliation=view.standing.reconciliation,
        path=view.path,
        base_commit=row.base_commit,
        last_ordinal=row.last_ordinal,
        review_id=row.review_id,
        merged_commit=row.merged_commit,
        merged_seq=row.merged_seq,
        updated_at=row.updated_at,
    )


def texts_of(uow: UnitOfWork, states: Iterable[HashedState]) -> dict[str, str]:
    """Return the bodies of these states by content hash."""
    return read_texts(uow, (state.content_hash for state in states))


def _standing(
    uow: UnitOfWork, owner: str, draft: DraftRow, base: HashedState, current: HashedState, state: HashedState
) -> Standing:
    texts = read_texts(uow, texts_needed(base, current, state))
    return judge(
        True, base, current, state, texts, occupied_by(uow, owner, draft.resource_id, state.source_id)
    )
