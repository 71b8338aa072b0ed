"""Taking a merged Review back: its inverse on what is published now, as an ordinary Review.

Nothing is published here. Where later changes go together with the inverse, its Drafts stand on the
newest commit; where they touch the same, the Draft stands on the commit that is reverted and is in
conflict, so its author has to look and nothing is overwritten unseen.
"""

from collections.abc import Sequence
from typing import Final

from org_server.domain.permissions import Action, Actor
from org_server.domain.reconciliation import merge_states
from org_server.domain.refs import RefValue
from org_server.domain.reverting import inverse_operations, revert_title
from org_server.domain.states import HashedState
from org_server.services import access
from org_server.services.draft_views import occupied_by, texts_of
from org_server.services.read_reviews import detail
from org_server.services.review_content import begin, result_hash_of
from org_server.store.blobs import put_text
from org_server.store.commits import read_ref
from org_server.store.drafts import own_state, published_states, put_state
from org_server.store.reviews import drafts_of_review, get_review
from org_server.store.tables import DraftOperationRow, DraftRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import versions_at
from shared_schema import ids
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.org_contract import FeedEventType, ReviewDetail, ReviewRevert
from shared_schema.reviews import ReviewStatus
from shared_schema.rules.hashing import fingerprint

INSTALLATION: Final = "ins_server"
"""The installation of Drafts that no machine made."""


def revert_review(
    units: UnitOfWorkFactory, actor: Actor, review_id: str, request: ReviewRevert
) -> ReviewDetail:
    """POST /reviews/{review_id}/revert: the caller's own new Review, which needs approval as any other.

    What the Review created is deleted, what it deleted is created again under the same id, and every
    other change is taken out of what is published now. Raises ``review_not_approved`` for a Review
    that is not merged (``review_closed`` where it never will be) and ``draft_empty`` where nothing of
    it is left.
    """
    with units.write() as uow:
        review = get_review(uow, review_id)
        seen = access.require_project(uow, actor, Action.DRAFT_WRITE, review.project_id)
        _require_merged(review)
        drafts = _inverse(uow, review, actor.user_id)
        if not drafts:
            raise InterleafError(
                ErrorCode.DRAFT_EMPTY,
                "Nothing of this Review is left to take back: later changes have replaced it all.",
                details={"review_id": review.id},
            )
        made = ReviewRow(
            id=ids.new_id("rev"),
            project_id=review.project_id,
            scope=review.scope,
            owner=review.owner,
            title=revert_title(review.title),
            description=request.description,
            author_id=actor.user_id,
            result_hash=result_hash_of(uow, drafts),
            reverts=review.id,
            created_at=uow.now,
            updated_at=uow.now,
        )
        begin(uow, made, drafts, actor.user_id)
        return detail(uow, made, seen.project)


def _require_merged(review: ReviewRow) -> None:
    status = ReviewStatus(review.status)
    if status is ReviewStatus.MERGED:
        return
    open_still = status in (ReviewStatus.OPEN, ReviewStatus.APPROVED)
    raise InterleafError(
        ErrorCode.REVIEW_NOT_APPROVED if open_still else ErrorCode.REVIEW_CLOSED,
        "The Review is not merged, so there is nothing to take back. Withdraw it instead."
        if open_still
        else f"The Review was {status.value} and never published anything.",
        details={"status": status.value},
    )


def _inverse(uow: UnitOfWork, review: ReviewRow, author_id: str) -> Sequence[DraftRow]:
    """Insert the Drafts that take the Review's changes back, leaving out what is taken back already."""
    merged = drafts_of_review(uow, review.id)
    points = {draft.id: (draft.resource_id, draft.merged_seq or 0) for draft in merged}
    earlier = {each: (resource_id, seq - 1) for each, (resource_id, seq) in points.items()}
    versions = versions_at(uow, review.owner, [*points.values(), *earlier.values()])
    currents = published_states(uow, review.owner, merged)
    scope = Scope(review.scope)
    head = read_ref(uow, review.owner)
    made = []
    for draft in merged:
        before = own_state(versions.get(earlier[draft.id]), scope)
        after = own_state(versions.get(points[draft.id]), scope)
        state = _taken_back(uow, review.owner, draft.resource_id, before, after, currents[draft.id])
        if state is None:
            onto = RefValue(draft.merged_commit, points[draft.id][1])
            made.append(_insert(uow, draft, author_id, onto, after, before))
        elif state != currents[draft.id]:
            made.append(_insert(uow, draft, author_id, head, currents[draft.id], state))
    return made


def _taken_back(
    uow: UnitOfWork,
    owner: str,
    resource_id: str,
    before: HashedState,
    after: HashedState,
    current: HashedState,
) -> HashedState | None:
    """Return what is published now without the change from ``before`` to ``after``; None in conflict."""
    texts = texts_of(uow, [before, after, current])
    occupied = occupied_by(uow, owner, resource_id, before.source_id)
    found = merge_states(after, current, before, texts, occupied).state
    if found is None:
        return None
    if found.exists:
        put_text(uow, found.body)
    return HashedState.of(found)


def _insert(
    uow: UnitOfWork,
    reverted: DraftRow,
    author_id: str,
    onto: RefValue,
    base: HashedState,
    state: HashedState,
) -> DraftRow:
    """Insert the Draft that turns ``base``, as the commit ``onto`` has it, into ``state``."""
    source = None if base.exists else state.org_source
    draft = DraftRow(
        id=ids.new_id("drf"),
        project_id=reverted.project_id,
        scope=reverted.scope,
        resource_id=reverted.resource_id,
        author_id=author_id,
        installation_id=INSTALLATION,
        base_commit=onto.commit_id,
        base_seq=onto.seq,
        org_source_resource_id=None if source is None else source.resource_id,
        org_source_commit_id=None if source is None else source.commit_id,
        created_at=uow.now,
        updated_at=uow.now,
    )
    put_state(draft, state)
    operations = inverse_operations(base, state, onto.commit_id)
    draft.last_ordinal = len(operations)
    uow.add(draft)
    for ordinal, payload in enumerate(operations, 1):
        operation_id = ids.new_id("lop")
        uow.add(
            DraftOperationRow(
                draft_id=draft.id,
                ordinal=ordinal,
                installation_id=INSTALLATION,
                operation_id=operation_id,
                fingerprint=fingerprint({"draft_id": draft.id, "operation": payload}),
                kind=payload["kind"],
                payload=payload | {"operation_id": operation_id, "ordinal": ordinal},
                answer={"accepted": operation_id},
                created_at=uow.now,
            )
        )
    uow.emit(
        FeedEventType.DRAFT_CREATED,
        project_id=draft.project_id,
        user_id=draft.author_id,
        draft_id=draft.id,
        resource_id=draft.resource_id,
    )
    return draft
