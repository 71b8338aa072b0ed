"""Org contributions carried out: what a Project Review published becomes an Org Review of its author.

Always in a transaction of its own, after the merge, which it never touches. Writing transactions are
serialised and ``review.contribution_of`` is unique, so however often and from wherever it is tried,
there is one Org Review.
"""

from collections.abc import Sequence
from typing import Final

import structlog
from sqlmodel import col, select

from org_server.domain.contributions import Contribution, OrgChange, org_changes
from org_server.domain.permissions import Action, Actor
from org_server.domain.reviews import require_active
from org_server.services import access
from org_server.services.read_reviews import detail
from org_server.services.review_content import begin, result_hash_of
from org_server.services.review_views import decide_action
from org_server.store.commits import read_ref
from org_server.store.drafts import get_drafts, put_state
from org_server.store.reviews import get_review
from org_server.store.tables import DraftOperationRow, DraftRow, ProjectRow, ReviewRow, UserRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import current_versions, find_clashes, state_of, versions_at
from shared_schema import ids
from shared_schema.drafts import OperationKind
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.org_contract import FeedEventType, ReviewDetail
from shared_schema.reviews import ReviewStatus
from shared_schema.rules.hashing import fingerprint

INSTALLATION: Final = "ins_server"
"""The installation of Drafts that no machine made."""

_log = structlog.get_logger("interleaf.server")


def contribute_after_merge(units: UnitOfWorkFactory, actor: Actor, review_id: str) -> None:
    """Try the contribution of a Review that was merged just now.

    Nothing is raised: the merge is done, and what fails here is recorded, or, where even that is
    not possible, stays to be tried again.
    """
    try:
        with units.write() as uow:
            _try(uow, get_review(uow, review_id), actor.user_id)
    except Exception as error:  # noqa: BLE001 - whatever it is, the merge stands and its answer is due
        _log.error("org_contribution_failed", review_id=review_id, error=type(error).__qualname__)


def retry_contribution(units: UnitOfWorkFactory, actor: Actor, review_id: str) -> ReviewDetail:
    """POST /reviews/{review_id}/org-contribution: its author, or who decides the Review, tries again.

    Answers the Org Review, also when there is one already. Raises ``not_found`` for a Review without
    a contribution, ``review_not_approved`` before the merge, ``review_closed`` where there will be
    none, and what stops the contribution, which is recorded, too: ``path_occupied``,
    ``memory_resource_not_found``, ``draft_empty``, ``forbidden``.
    """
    with units.write() as uow:
        review = get_review(uow, review_id)
        seen = access.require_project(uow, actor, Action.REVIEW_READ, review.project_id)
        own = review.author_id == actor.user_id
        access.require_project(
            uow, actor, Action.DRAFT_WRITE if own else decide_action(review), review.project_id
        )
        _require_due(review)
        outcome = _try(uow, review, actor.user_id)
        answer = detail(uow, outcome, seen.project) if isinstance(outcome, ReviewRow) else None
    if isinstance(outcome, InterleafError):
        raise outcome
    if answer is None:
        raise RuntimeError("a contribution came to nothing and said nothing")
    return answer


def _require_due(review: ReviewRow) -> None:
    if review.contribution is None:
        raise InterleafError(
            ErrorCode.NOT_FOUND,
            "This Review has no Org contribution. Propose the content with: "
            "interleaf draft create --scope org",
        )
    if review.status == ReviewStatus.MERGED.value:
        return
    require_active(ReviewStatus(review.status))
    raise InterleafError(
        ErrorCode.REVIEW_NOT_APPROVED,
        "The contribution follows the merge. Merge the Review first.",
        details={"status": review.status},
    )


def _try(uow: UnitOfWork, review: ReviewRow, actor_id: str) -> ReviewRow | InterleafError:
    """Open the Org Review, or record why not; return either."""
    if review.contribution is None:
        raise RuntimeError("there is no contribution to try")
    wish = Contribution.from_json(review.contribution)
    existing = uow.session.exec(select(ReviewRow).where(col(ReviewRow.contribution_of) == review.id)).first()
    if existing is not None:
        return existing
    try:
        changes = _plan(uow, review, wish)
    except InterleafError as error:
        # Nothing was written yet, so this transaction can carry the failure.
        review.contribution = wish.failed(error).as_json()
        uow.session.add(review)
        uow.audit(actor_id, "contribution.failed", review.id, {"code": error.code.value})
        return error
    made = _open(uow, review, changes, actor_id)
    review.contribution = wish.opened(made.id).as_json()
    uow.session.add(review)
    uow.session.flush()
    return made


def _plan(uow: UnitOfWork, review: ReviewRow, wish: Contribution) -> list[OrgChange]:
    """Return what is to be proposed; raises whatever stands in the way, and writes nothing."""
    _require_author(uow, review)
    drafts = get_drafts(uow, [entry.draft_id for entry in wish.entries])
    points = {each: (draft.resource_id, draft.merged_seq or 0) for each, draft in drafts.items()}
    versions = versions_at(uow, review.project_id, points.values())
    published = {each: state_of(versions.get(point)) for each, point in points.items()}
    targets = current_versions(
        uow, uow.org.id, [entry.target_id for entry in wish.entries if entry.target_id]
    )
    changes = org_changes(wish.entries, published, {each: state_of(row) for each, row in targets.items()})
    # A new resource has no id yet, so its Draft's stands for it.
    wanted = {change.target_id or change.entry.draft_id: change.state.path for change in changes}
    for name, holder in find_clashes(uow, uow.org.id, wanted, list(wanted)).items():
        raise InterleafError(
            ErrorCode.PATH_OCCUPIED,
            f"The Organization has another resource at, above or below {wanted[name]}. Free the path and "
            "try again, or propose the content elsewhere with: interleaf draft create --scope org",
            details={"path": wanted[name], "resource_id": holder},
        )
    return changes


def _require_author(uow: UnitOfWork, review: ReviewRow) -> None:
    """Raise ``forbidden`` unless the author could open the Org Review by hand."""
    user = uow.session.get(UserRow, review.author_id)
    project = uow.session.get(ProjectRow, review.project_id)
    if user is None or user.disabled:
        problem = "is disabled"
    elif project is None or project.deleted_at is not None:
        problem = "has no such Project any more"
    elif access.project_role(uow, review.project_id, user.id) is None:
        problem = "is no member of the Project any more"
    else:
        return
    raise InterleafError(
        ErrorCode.FORBIDDEN,
        f"The author of the Review {problem}, and the Org Review would be theirs. "
        "Give the access back and try again.",
        details={"author_id": review.author_id},
    )


def _open(uow: UnitOfWork, review: ReviewRow, changes: Sequence[OrgChange], actor_id: str) -> ReviewRow:
    drafts = [_draft(uow, review, change) for change in changes]
    made = ReviewRow(
        id=ids.new_id("rev"),
        project_id=review.project_id,
        scope=Scope.ORG.value,
        owner=uow.org.id,
        title=review.title,
        description=review.description,
        author_id=review.author_id,
        result_hash=result_hash_of(uow, drafts),
        contribution_of=review.id,
        created_at=uow.now,
        updated_at=uow.now,
    )
    begin(uow, made, drafts, actor_id)
    return made


def _draft(uow: UnitOfWork, review: ReviewRow, change: OrgChange) -> DraftRow:
    """Insert the Org Draft of one change, on the Organization's newest commit."""
    head = read_ref(uow, uow.org.id)
    draft = DraftRow(
        id=ids.new_id("drf"),
        project_id=review.project_id,
        scope=Scope.ORG.value,
        resource_id=change.target_id or ids.new_id("mem"),
        author_id=review.author_id,
        installation_id=INSTALLATION,
        base_commit=head.commit_id,
        base_seq=head.seq,
        last_ordinal=1,
        created_at=uow.now,
        updated_at=uow.now,
    )
    put_state(draft, change.state)
    uow.add(draft)
    kind = OperationKind.CREATE if change.target_id is None else OperationKind.UPDATE
    payload = {
        "kind": kind.value,
        "path": change.state.path,
        "description": change.state.description,
        "content_hash": change.state.content_hash,
    }
    operation_id = ids.new_id("lop")
    uow.add(
        DraftOperationRow(
            draft_id=draft.id,
            ordinal=1,
            installation_id=INSTALLATION,
            operation_id=operation_id,
            fingerprint=fingerprint({"draft_id": draft.id, "operation": payload}),
            kind=kind.value,
            payload=payload | {"operation_id": operation_id, "ordinal": 1},
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
