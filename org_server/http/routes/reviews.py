"""Reviews: submitted, read, decided, merged, withdrawn, commented."""

from __future__ import annotations

from org_server.http.openapi import Answer, Call, RouteTable
from org_server.services import (
    comment_review,
    contribute,
    decide_review,
    merge_review,
    open_review,
    read_reviews,
    revert_review,
)
from org_server.services.pages import PageQuery
from shared_schema.errors import ErrorCode
from shared_schema.org_contract import (
    Comment,
    CommentChange,
    CommentCreate,
    CommentPage,
    DecisionCreate,
    MergeAnswer,
    ReviewCreate,
    ReviewDetail,
    ReviewPage,
    ReviewRevert,
    VersionBody,
)

routes = RouteTable()


@routes.route(
    "GET", "/reviews", query=read_reviews.ReviewQuery, answer=ReviewPage, summary="Reviews, newest first."
)
def list_(call: Call, query: read_reviews.ReviewQuery) -> ReviewPage:
    """List the Reviews that the caller may read."""
    return read_reviews.list_reviews(call.units, call.actor, query)


@routes.route(
    "POST",
    "/reviews",
    request=ReviewCreate,
    answer=ReviewDetail,
    status=201,
    summary="Submit Drafts.",
)
def create(call: Call, body: ReviewCreate) -> ReviewDetail:
    """Open a Review."""
    return open_review.open_review(call.units, call.actor, body)


@routes.route(
    "GET",
    "/reviews/<review_id>",
    answer=ReviewDetail,
    tagged=True,
    summary="A Review with the states before and after, a diff and how every rule stands.",
)
def read(call: Call, review_id: str) -> Answer:
    """Read one Review."""
    found = read_reviews.read_review(call.units, call.actor, review_id)
    return Answer(found, version=found.review.version)


@routes.route(
    "POST",
    "/reviews/<review_id>/decisions",
    request=DecisionCreate,
    answer=ReviewDetail,
    summary="Approve or reject the version that was inspected.",
)
def decide(call: Call, review_id: str, body: DecisionCreate) -> ReviewDetail:
    """Decide a Review."""
    return decide_review.decide_review(call.units, call.actor, review_id, body)


@routes.route(
    "POST",
    "/reviews/<review_id>/merges",
    request=VersionBody,
    answer=MergeAnswer,
    precondition="ref",
    summary="Publish a Review onto the ref that was inspected.",
)
def merge(call: Call, review_id: str, body: VersionBody) -> MergeAnswer:
    """Merge a Review."""
    expected = call.if_match_ref()
    return merge_review.merge_review(call.units, call.actor, review_id, body, expected)


@routes.route(
    "POST",
    "/reviews/<review_id>/withdrawals",
    request=VersionBody,
    answer=ReviewDetail,
    summary="Take an own Review back; its Drafts are open again.",
)
def withdraw(call: Call, review_id: str, body: VersionBody) -> ReviewDetail:
    """Withdraw a Review of the caller."""
    return decide_review.withdraw_review(call.units, call.actor, review_id, body)


@routes.route(
    "POST",
    "/reviews/<review_id>/org-contribution",
    answer=ReviewDetail,
    summary="Try a merged Review's Org contribution again; answers its one Org Review.",
)
def retry_contribution(call: Call, review_id: str) -> ReviewDetail:
    """Retry the Org contribution."""
    return contribute.retry_contribution(call.units, call.actor, review_id)


@routes.route(
    "POST",
    "/reviews/<review_id>/revert",
    request=ReviewRevert,
    answer=ReviewDetail,
    status=201,
    summary="Open a Review that takes a merged one back.",
)
def revert(call: Call, review_id: str, body: ReviewRevert) -> ReviewDetail:
    """Open the inverse of a merged Review."""
    return revert_review.revert_review(call.units, call.actor, review_id, body)


@routes.route(
    "GET",
    "/reviews/<review_id>/comments",
    query=PageQuery,
    answer=CommentPage,
    summary="A Review's comments, oldest first.",
)
def list_comments(call: Call, review_id: str, query: PageQuery) -> CommentPage:
    """List comments."""
    return comment_review.list_comments(call.units, call.actor, review_id, query)


@routes.route(
    "POST",
    "/reviews/<review_id>/comments",
    request=CommentCreate,
    answer=Comment,
    status=201,
    summary="Comment on a Review, or on a line of a Draft's result.",
)
def comment(call: Call, review_id: str, body: CommentCreate) -> Comment:
    """Add a comment."""
    return comment_review.comment_review(call.units, call.actor, review_id, body)


@routes.route(
    "PATCH",
    "/reviews/<review_id>/comments/<comment_id>",
    request=CommentChange,
    answer=Comment,
    summary="Resolve a comment, or open it again.",
    errors=(ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN),
)
def resolve(call: Call, review_id: str, comment_id: str, body: CommentChange) -> Comment:
    """Resolve a comment or open it again."""
    return comment_review.resolve_comment(call.units, call.actor, review_id, comment_id, body)
