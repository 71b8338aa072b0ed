"""``interleaf review``: what was submitted, decided by people and published."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Annotated

import typer

from client.cli.commenting import print_comments
from client.cli.contributing import contribution_facts
from client.cli.diffing import print_diff
from client.cli.drafts_commands import state_changes
from client.cli.local import explained, wake
from client.cli.options import Json, ReviewArgument
from client.cli.organization import find_project, server
from client.cli.output import count, facts, moment, say, show, styled, table
from client.cli.taught import noun, verb
from shared_schema import org_contract as api
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.errors import ErrorCode
from shared_schema.memory import Scope
from shared_schema.reviews import FINAL_STATUSES, Decision, ReviewStatus, RuleStatus

app = noun("interleaf review list", "interleaf review diff rev_…", "interleaf review merge rev_…")

Seen = Annotated[
    int | None,
    typer.Option("--version", metavar="N", help="Only if it still is at this version, as you have read it."),
]
Remark = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why.")]


@verb(app, "list", "interleaf review list --status open", "interleaf review list --project Rocket")
def list_reviews(
    status: Annotated[ReviewStatus | None, typer.Option("--status", help="Only those.")] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT", help="Only of this Project; default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the Reviews that you may read, newest first."""
    with server() as org:
        place = None if project is None else find_project(org, project).project_id
        reviews = list(org.reviews(place, status))
    show(
        {"reviews": [review.model_dump(mode="json") for review in reviews]},
        as_json,
        lambda: table(
            ["Review", "Title, status, author"],
            [[item.review_id, styled(item.title, "bold", _summary(item))] for item in reviews],
            empty="No Review." if status is None else f"No {status.value} Review.",
        ),
    )


@verb(app, "show", "interleaf review show rev_…")
def show_review(review: ReviewArgument, as_json: Json = False) -> None:
    """Show documents, decisions and comments of a Review.

    And what a merge still needs.
    """
    with server() as org:
        detail = org.review(review)
        comments = list(org.comments(review)) if detail.comments else []
    answer = detail.model_dump(mode="json") | {
        "comments": [item.model_dump(mode="json") for item in comments]
    }
    show(answer, as_json, lambda: _print(detail, comments))


@verb(app, "diff", "interleaf review diff rev_…", "interleaf review diff rev_… | less")
def diff(review: ReviewArgument, as_json: Json = False) -> None:
    """Show what a Review changes, document by document.

    Hidden characters are spelled out as <U+202E>, so that nothing can look other than it is.
    """
    with server() as org:
        detail = org.review(review)
    answer = {
        "review_id": review,
        "version": detail.review.version,
        "entries": [entry.model_dump(mode="json") for entry in detail.entries],
    }
    show(answer, as_json, lambda: _print_diff(detail))


@verb(app, "approve", "interleaf review approve rev_… --comment 'Checked with ops'")
def approve(
    review: ReviewArgument, comment: Remark = "", version: Seen = None, as_json: Json = False
) -> None:
    """Approve a Review without publishing it yet."""
    _decide(review, Decision.APPROVED, comment, version, as_json)


@verb(app, "reject", "interleaf review reject rev_… --comment 'The runbook says otherwise'")
def reject(review: ReviewArgument, comment: Remark = "", version: Seen = None, as_json: Json = False) -> None:
    """Reject a Review for good; its Drafts go back to their author."""
    _decide(review, Decision.REJECTED, comment, version, as_json)


@verb(app, "merge", "interleaf review merge rev_…", "interleaf review merge rev_… --version 3")
def merge(review: ReviewArgument, version: Seen = None, as_json: Json = False) -> None:
    """Publish a Review.

    Every member's agents have it after their next sync. Merging an open Review approves it, too.
    When the Review or the published state changed while this command ran, nothing is published.
    """
    with server() as org, _looked_at(review):
        detail = org.review(review)
        answer = org.merge(review, version or detail.review.version, detail.ref)
    wake()
    place = "the Organization" if detail.review.scope is Scope.ORG else detail.review.project_name
    text = (
        f"Published {count(len(detail.entries), 'change')} in {place} as commit {answer.commit_id[:12]} "
        f"(number {answer.ref.seq})."
    )

    def human() -> None:
        say(text)
        if detail.org_contribution:
            say(f"What became of its Org contribution: interleaf review show {review}")

    show(answer, as_json, human)


@verb(app, "withdraw", "interleaf review withdraw rev_…")
def withdraw(review: ReviewArgument, as_json: Json = False) -> None:
    """Take your own Review back; its Drafts are open again."""
    with server() as org, _looked_at(review):
        detail = org.withdraw(review, org.review(review).review.version)
    _decided(detail, as_json)


@verb(app, "contribute", "interleaf review contribute rev_…")
def contribute(review: ReviewArgument, as_json: Json = False) -> None:
    """Offer to the Organization again what a merged Review could not.

    For its author and for those who may decide it. Where the Organization has the offer already,
    that Review is named, so that asking twice does no harm.
    """
    with server() as org:
        detail = org.contribute(review)
    wake()
    made = detail.review
    text = f"Offered to the Organization in Review {made.review_id} ({made.status.value})."
    show(detail, as_json, lambda: say(text))


@verb(app, "comment", "interleaf review comment rev_… 'Which clusters does this hold for?'")
def comment(
    review: ReviewArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The comment.")],
    draft: Annotated[
        str | None, typer.Option("--draft", metavar="DRAFT", help="About this Draft of the Review.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="PATH", help="About the document at this path.")
    ] = None,
    line: Annotated[
        int | None, typer.Option("--line", metavar="N", help="About this line of its new text.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Comment a Review, or a line of a document in it.

    The comment follows its line when the document changes.
    """
    with server() as org:
        made = org.add_comment(review, api.CommentCreate(body=text, draft_id=draft, path=path, line=line))
    show(made, as_json, lambda: say(f"Commented ({made.comment_id})."))


@verb(app, "resolve", "interleaf review resolve rev_… cmt_…", "interleaf review resolve rev_… cmt_… --reopen")
def resolve(
    review: ReviewArgument,
    comment: Annotated[str, typer.Argument(metavar="COMMENT", help="Comment id, as `review show` names it.")],
    reopen: Annotated[bool, typer.Option("--reopen", help="Open it again.")] = False,
    as_json: Json = False,
) -> None:
    """Resolve a comment, or open it again.

    For its author, the author of the Review and those who may decide the Review.
    """
    with server() as org:
        answer = org.resolve_comment(review, comment, not reopen)
    show(answer, as_json, lambda: say("Opened again." if reopen else "Resolved."))


def _decide(review: str, decision: Decision, comment: str, version: int | None, as_json: bool) -> None:
    with server() as org, _looked_at(review):
        seen = version or org.review(review).review.version
        detail = org.decide(review, api.DecisionCreate(decision=decision, version=seen, comment=comment))
    _decided(detail, as_json)


def _decided(detail: api.ReviewDetail, as_json: bool) -> None:
    wake()
    review = detail.review
    answer = {"review_id": review.review_id, "status": review.status.value, "version": review.version}

    def human() -> None:
        say(f"{review.title}: {review.status.value}.")
        if review.status is ReviewStatus.APPROVED:
            say(f"Publish it with: interleaf review merge {review.review_id}")

    show(answer, as_json, human)


def _looked_at(review: str) -> AbstractContextManager[None]:
    """Explain that a Review or a ref moved since it was read: a person has to look again."""
    hint = f"Nothing was changed. Look again: interleaf review diff {review}"
    return explained(hint, ErrorCode.VERSION_CONFLICT, ErrorCode.PRECONDITION_FAILED)


def _summary(item: api.ReviewSummary) -> str:
    place = "Organization" if item.scope is Scope.ORG else item.project_name
    return f"{item.status.value}, {item.author_email}, {place}, {count(item.drafts, 'Draft')}"


def _print(detail: api.ReviewDetail, comments: list[api.Comment]) -> None:
    review = detail.review
    say(review.title, style="bold")
    facts(
        [
            ("Review", review.review_id),
            ("Status", f"{review.status.value} (version {review.version})"),
            ("Author", review.author_email),
            ("Into", "the Organization" if review.scope is Scope.ORG else review.project_name),
            ("Opened", moment(review.created_at)),
            ("Description", detail.description or None),
            ("Commit", detail.commit_id),
            *contribution_facts(detail),
        ]
    )
    say("\nDocuments", style="bold")
    for entry in detail.entries:
        say(f"  {_what(entry)}{_standing(entry)}")
    unmet = [rule for rule in detail.rules if rule.status is RuleStatus.UNSATISFIED]
    if unmet and review.status not in FINAL_STATUSES:
        say("\nA merge still needs", style="bold")
        for rule in unmet:
            say(f"  {rule.rule}: {rule.reason}")
    if detail.approvals:
        say("\nDecisions", style="bold")
        for approval in detail.approvals:
            outdated = "" if approval.counts else " (of an earlier content)"
            remark = f": {approval.comment}" if approval.comment else ""
            say(f"  {approval.decision.value} by {approval.email}, {moment(approval.at)}{outdated}{remark}")
    if comments:
        say("\nComments", style="bold")
        print_comments(comments)
    if review.status not in FINAL_STATUSES:
        say(f"\nRead the changes: interleaf review diff {review.review_id}")


def _print_diff(detail: api.ReviewDetail) -> None:
    for position, entry in enumerate(detail.entries):
        if position:
            say()
        say(f"{_what(entry)}{_standing(entry)}", style="bold")
        before, after = entry.before, entry.after
        changes = state_changes(before.path, after.path, before.description, after.description)
        for name, text in changes[1:]:
            if text is not None:
                say(f"{name}: {text}")
        if entry.diff:
            print_diff(entry.diff)


def _what(entry: api.ReviewEntry) -> str:
    before, after = entry.before, entry.after
    if not after.exists:
        return f"delete {before.path}"
    if not before.exists:
        return f"{'adapt' if after.org_source else 'create'} {after.path}"
    if before.path != after.path:
        return f"move {before.path} → {after.path}"
    return f"update {after.path}"


def _standing(entry: api.ReviewEntry) -> str:
    words = []
    if entry.freshness is not Freshness.CURRENT:
        words.append(entry.freshness.value)
    if entry.reconciliation is Reconciliation.CONFLICTS:
        words.append(entry.reconciliation.value)
    return f" ({', '.join(words)})" if words else ""
