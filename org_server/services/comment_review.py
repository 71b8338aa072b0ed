"""Comments on a Review, on the whole or at a line of a Draft's result, and their resolution."""

from org_server.domain.permissions import Action, Actor
from org_server.domain.states import HashedState
from org_server.services import access
from org_server.services.comment_anchors import answer_comments, results_of
from org_server.services.draft_views import texts_of
from org_server.services.pages import PageQuery
from org_server.services.review_views import decide_action
from org_server.store.reviews import get_comment, get_review, page_of_comments
from org_server.store.tables import ReviewCommentRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import ids
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Comment, CommentChange, CommentCreate, CommentPage, FeedEventType
from shared_schema.rules.line_diff import split_lines

_LISTING = "comments"


def comment_review(units: UnitOfWorkFactory, actor: Actor, review_id: str, request: CommentCreate) -> Comment:
    """POST /reviews/{review_id}/comments; final Reviews take comments too."""
    with units.write() as uow:
        review = get_review(uow, review_id)
        access.require_project(uow, actor, Action.REVIEW_COMMENT, review.project_id)
        draft_id, state = _anchor(uow, review, request)
        if not request.body.strip():
            raise _invalid("body", "is blank")
        row = ReviewCommentRow(
            id=ids.new_id("cmt"),
            review_id=review.id,
            author_id=actor.user_id,
            body=request.body,
            draft_id=draft_id,
            path=state.path if state is not None and state.exists else None,
            line=request.line,
            anchor_hash=None if state is None or request.line is None else state.content_hash,
            created_at=uow.now,
        )
        uow.add(row)
        uow.emit(FeedEventType.REVIEW_COMMENTED, project_id=review.project_id, review_id=review.id)
        return answer_comments(uow, review, [row])[0]


def list_comments(units: UnitOfWorkFactory, actor: Actor, review_id: str, query: PageQuery) -> CommentPage:
    """GET /reviews/{review_id}/comments, oldest first."""
    with units.read() as uow:
        review = get_review(uow, review_id)
        access.require_project(uow, actor, Action.REVIEW_READ, review.project_id)
        after = query.after(_LISTING, int, str)
        rows = page_of_comments(uow, review_id, after, query.limit + 1)
        page, cursor = query.cut(_LISTING, rows, lambda row: (row.created_at, row.id))
        return CommentPage(comments=answer_comments(uow, review, page), next_cursor=cursor)


def resolve_comment(
    units: UnitOfWorkFactory, actor: Actor, review_id: str, comment_id: str, request: CommentChange
) -> Comment:
    """PATCH /reviews/{review_id}/comments/{comment_id}: resolve it, or open it again.

    For the author of the Review, the author of the comment and those who may decide the Review;
    ``forbidden`` for other members. Asking for what already is changes nothing and tells nobody.
    """
    with units.write() as uow:
        review = get_review(uow, review_id)
        access.require_project(uow, actor, Action.REVIEW_COMMENT, review.project_id)
        row = get_comment(uow, review_id, comment_id)
        if actor.user_id not in (review.author_id, row.author_id):
            access.require_project(uow, actor, decide_action(review), review.project_id)
        if row.resolved != request.resolved:
            row.resolved = request.resolved
            row.resolved_by = actor.user_id if request.resolved else None
            row.resolved_at = uow.now if request.resolved else None
            uow.session.add(row)
            uow.session.flush()
            uow.emit(FeedEventType.REVIEW_COMMENTED, project_id=review.project_id, review_id=review.id)
        return answer_comments(uow, review, [row])[0]


def _anchor(
    uow: UnitOfWork, review: ReviewRow, request: CommentCreate
) -> tuple[str | None, HashedState | None]:
    """Return the Draft that is commented and its result; neither for a comment on the whole."""
    if request.draft_id is None and request.path is None:
        if request.line is not None:
            raise _invalid("line", "needs a draft_id or a path")
        return None, None
    results = results_of(uow, review)
    if request.draft_id is not None:
        draft_id = request.draft_id if request.draft_id in results else None
    else:
        named = (each for each, state in results.items() if state.exists and state.path == request.path)
        draft_id = next(named, None)
    if draft_id is None:
        field = "path" if request.draft_id is None else "draft_id"
        raise _invalid(field, "is no Draft of this Review" if field == "draft_id" else "is no result of it")
    state = results[draft_id]
    if request.path is not None and state.path != request.path:
        raise _invalid("path", "is not that of the Draft's result")
    if request.line is not None:
        lines = len(split_lines(state.with_body(texts_of(uow, [state])).body))
        if request.line > lines:
            raise _invalid("line", f"is beyond the {lines} lines of the result")
    return draft_id, state


def _invalid(field: str, problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"The field {field} {problem}.",
        details={"fields": [{"field": field, "problem": problem}]},
    )
