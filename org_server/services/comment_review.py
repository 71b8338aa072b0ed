"""Comments on a Review, on the whole or at a line of a Draft's result."""

from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.services.draft_views import texts_of
from org_server.services.pages import PageQuery
from org_server.store.drafts import state_of_draft
from org_server.store.reviews import drafts_of_review, emails, get_review, page_of_comments
from org_server.store.tables import ReviewCommentRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import ids
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Comment, CommentCreate, CommentPage, FeedEventType
from shared_schema.rules.line_diff import split_lines

_LISTING = "comments"


def comment_review(units: UnitOfWorkFactory, actor: Actor, review_id: str, request: CommentCreate) -> Comment:
    """POST /reviews/{review_id}/comments; final Reviews take comments too."""
    with units.write() as uow:
        review = get_review(uow, review_id)
        access.require_project(uow, actor, Action.REVIEW_COMMENT, review.project_id)
        _check_anchor(uow, review, request)
        if not request.body.strip():
            raise _invalid("body", "is blank")
        row = ReviewCommentRow(
            id=ids.new_id("cmt"),
            review_id=review.id,
            author_id=actor.user_id,
            body=request.body,
            draft_id=request.draft_id,
            line=request.line,
            created_at=uow.now,
        )
        uow.add(row)
        uow.emit(FeedEventType.REVIEW_COMMENTED, project_id=review.project_id, review_id=review.id)
        return _answer(row, actor.email)


def list_comments(units: UnitOfWorkFactory, actor: Actor, review_id: str, query: PageQuery) -> CommentPage:
    """GET /reviews/{review_id}/comments, oldest first."""
    with units.read() as uow:
        review = get_review(uow, review_id)
        access.require_project(uow, actor, Action.REVIEW_READ, review.project_id)
        after = query.after(_LISTING, int, str)
        rows = page_of_comments(uow, review_id, after, query.limit + 1)
        page, cursor = query.cut(_LISTING, rows, lambda row: (row.created_at, row.id))
        addresses = emails(uow, (row.author_id for row in page))
        return CommentPage(
            comments=[_answer(row, addresses[row.author_id]) for row in page], next_cursor=cursor
        )


def _check_anchor(uow: UnitOfWork, review: ReviewRow, request: CommentCreate) -> None:
    if request.draft_id is None:
        if request.line is not None:
            raise _invalid("line", "needs a draft_id")
        return
    draft = next((row for row in drafts_of_review(uow, review.id) if row.id == request.draft_id), None)
    if draft is None:
        raise _invalid("draft_id", "is no Draft of this Review")
    if request.line is not None:
        state = state_of_draft(draft)
        lines = len(split_lines(state.with_body(texts_of(uow, [state])).body))
        if request.line > lines:
            raise _invalid("line", f"is beyond the {lines} lines of the result")


def _answer(row: ReviewCommentRow, email: str) -> Comment:
    return Comment(
        comment_id=row.id,
        author_id=row.author_id,
        author_email=email,
        body=row.body,
        draft_id=row.draft_id,
        line=row.line,
        resolved=row.resolved,
        created_at=row.created_at,
    )


def _invalid(field: str, problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"The field {field} {problem}.",
        details={"fields": [{"field": field, "problem": problem}]},
    )
