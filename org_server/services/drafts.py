"""A Draft in its author's hands: listed, read, reconciled, discarded."""

from pydantic import Field

from org_server.domain.permissions import Action, Actor
from org_server.domain.reconciliation import merge_states
from org_server.domain.states import GONE
from org_server.services import access
from org_server.services.draft_views import answer_drafts, as_answer, occupied_by, texts_of, view_drafts
from org_server.services.pages import PageQuery
from org_server.services.review_content import drop_draft
from org_server.store.commits import ref_answer
from org_server.store.drafts import page_of_drafts, put_state
from org_server.store.readable import readable_projects
from org_server.store.tables import DraftRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema.drafts import ACTIVE_STATUSES, DraftStatus
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Candidate, Draft, DraftDetail, DraftPage, FeedEventType

_LISTING = "drafts"


class DraftQuery(PageQuery):
    """The query of GET /drafts."""

    project_id: str | None = None
    status: DraftStatus | None = Field(default=None, strict=False)


def list_drafts(units: UnitOfWorkFactory, actor: Actor, query: DraftQuery) -> DraftPage:
    """GET /drafts: the caller's own, in the Projects that it may read."""
    with units.read() as uow:
        now = access.refresh(uow, actor)
        project_ids = {item.project.id for item in readable_projects(uow, now)}
        if query.project_id is not None:
            access.require_project(uow, actor, Action.PROJECT_READ, query.project_id)
            project_ids = {query.project_id}
        after = query.after(_LISTING, str)
        rows = page_of_drafts(
            uow,
            actor.user_id,
            project_ids,
            None if query.status is None else query.status.value,
            None if after is None else after[0],
            query.limit + 1,
        )
        page, cursor = query.cut(_LISTING, rows, lambda row: (row.id,))
        return DraftPage(drafts=answer_drafts(uow, page), next_cursor=cursor)


def read_draft(units: UnitOfWorkFactory, actor: Actor, draft_id: str) -> DraftDetail:
    """GET /drafts/{draft_id}: its author only; ``draft_not_found`` for everybody else."""
    with units.read() as uow:
        view = view_drafts(uow, [_own(uow, actor, draft_id, Action.PROJECT_READ)])[0]
        texts = texts_of(uow, [view.base, view.state])
        return DraftDetail(
            draft=as_answer(view), base=view.base.with_body(texts), state=view.state.with_body(texts)
        )


def reconcile_draft(units: UnitOfWorkFactory, actor: Actor, draft_id: str) -> Candidate:
    """POST /drafts/{draft_id}/reconciliation: what comes of the Draft on the newest commit.

    Nothing is changed; a ``rebase`` operation applies a result. Raises ``draft_not_found`` and
    ``draft_not_open``.
    """
    with units.read() as uow:
        draft = _own(uow, actor, draft_id, Action.PROJECT_READ)
        _require_active(draft)
        view = view_drafts(uow, [draft])[0]
        texts = texts_of(uow, [view.base, view.current, view.state])
        occupied = occupied_by(uow, view.owner, draft.resource_id, view.state.source_id)
        merged = merge_states(view.base, view.current, view.state, texts, occupied)
        return Candidate(
            draft_id=draft.id,
            onto=ref_answer(uow, view.owner),
            base=view.base.with_body(texts),
            current=view.current.with_body(texts),
            draft=view.state.with_body(texts),
            result=merged.state,
            conflicts=list(merged.conflicts),
        )


def discard_draft(units: UnitOfWorkFactory, actor: Actor, draft_id: str) -> Draft:
    """DELETE /drafts/{draft_id}: nothing of it is published; again is fine.

    A submitted Draft leaves its Review, which is withdrawn when it was the only one. Raises
    ``draft_not_found``, and ``draft_not_open`` for a merged Draft.
    """
    with units.write() as uow:
        draft = _own(uow, actor, draft_id, Action.DRAFT_WRITE)
        if draft.status != DraftStatus.DISCARDED.value:
            _require_active(draft)
            draft.status = DraftStatus.DISCARDED.value
            put_state(draft, GONE)
            draft.updated_at = uow.now
            uow.session.add(draft)
            uow.session.flush()
            uow.emit(
                FeedEventType.DRAFT_DISCARDED,
                project_id=draft.project_id,
                user_id=draft.author_id,
                draft_id=draft.id,
                review_id=draft.review_id,
                resource_id=draft.resource_id,
            )
            drop_draft(uow, draft)
        return answer_drafts(uow, [draft])[0]


def _own(uow: UnitOfWork, actor: Actor, draft_id: str, action: Action) -> DraftRow:
    draft = uow.session.get(DraftRow, draft_id)
    if draft is None or draft.author_id != actor.user_id:
        raise InterleafError(ErrorCode.DRAFT_NOT_FOUND, "There is no such Draft, or it is not yours.")
    access.require_project(uow, actor, action, draft.project_id)
    return draft


def _require_active(draft: DraftRow) -> None:
    if DraftStatus(draft.status) not in ACTIVE_STATUSES:
        raise InterleafError(
            ErrorCode.DRAFT_NOT_OPEN,
            f"The Draft is {draft.status}. Make a new Draft.",
            details={"draft_id": draft.id, "status": draft.status},
        )
