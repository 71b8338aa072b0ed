"""Reading Reviews: lists, and one with its states, its diff and how every rule stands."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from org_server.domain.contributions import Contribution
from org_server.domain.permissions import Action, Actor
from org_server.domain.states import HashedState
from org_server.domain.submit_rules import counted_approvers, judge
from org_server.services import access
from org_server.services.draft_views import texts_of
from org_server.services.pages import PageQuery
from org_server.services.review_content import freeze
from org_server.services.review_views import OpenReview, examine, policy_of, summarise
from org_server.store.commits import ref_answer, seq_of
from org_server.store.readable import readable_projects
from org_server.store.reviews import approvals_of, count_comments, emails, get_review, page_of_reviews
from org_server.store.tables import ProjectRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from org_server.store.versions import state_of, versions_at
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import Scope
from shared_schema.org_contract import (
    Approval,
    Policy,
    ReviewDetail,
    ReviewEntry,
    ReviewPage,
    SubmitRule,
)
from shared_schema.reviews import FINAL_STATUSES, Decision, ReviewStatus
from shared_schema.rules.diffs import unified_diff

_LISTING = "reviews"


class ReviewQuery(PageQuery):
    """The query of GET /reviews."""

    project_id: str | None = None
    status: ReviewStatus | None = Field(default=None, strict=False)
    scope: Scope | None = Field(default=None, strict=False)


def list_reviews(units: UnitOfWorkFactory, actor: Actor, query: ReviewQuery) -> ReviewPage:
    """GET /reviews: those of Projects that the caller may read, newest first."""
    with units.read() as uow:
        now = access.refresh(uow, actor)
        names = {item.project.id: item.project.name for item in readable_projects(uow, now)}
        if query.project_id is not None:
            access.require_project(uow, actor, Action.REVIEW_READ, query.project_id)
            names = {query.project_id: names[query.project_id]}
        rows = page_of_reviews(
            uow,
            names,
            status=None if query.status is None else query.status.value,
            scope=None if query.scope is None else query.scope.value,
            before=query.after(_LISTING, int, str),
            limit=query.limit + 1,
        )
        page, cursor = query.cut(_LISTING, rows, lambda row: (row.created_at, row.id))
        return ReviewPage(reviews=summarise(uow, page, names), next_cursor=cursor)


def read_review(units: UnitOfWorkFactory, actor: Actor, review_id: str) -> ReviewDetail:
    """GET /reviews/{review_id}."""
    with units.read() as uow:
        review = get_review(uow, review_id)
        seen = access.require_project(uow, actor, Action.REVIEW_READ, review.project_id)
        return detail(uow, review, seen.project)


def detail(uow: UnitOfWork, review: ReviewRow, project: ProjectRow) -> ReviewDetail:
    """Return all of a Review; of a final one the frozen copy of what was judged."""
    if ReviewStatus(review.status) in FINAL_STATUSES:
        policy = policy_of(uow, review, project)
        frozen = review.frozen or {"entries": [], "rules": []}
        rules = [SubmitRule.model_validate(rule, strict=False) for rule in frozen["rules"]]
        counted: frozenset[str] | None = None
        entries = frozen["entries"]
    else:
        found = examine(uow, review, project)
        policy, rules, counted, entries = _present(found)
    wish = None if review.contribution is None else Contribution.from_json(review.contribution)
    return ReviewDetail(
        review=summarise(uow, [review], {project.id: project.name})[0],
        description=review.description,
        entries=_entries(uow, entries),
        result_hash=review.result_hash,
        ref=ref_answer(uow, review.owner),
        policy=policy,
        rules=rules,
        approvals=_approvals(uow, review, counted),
        comments=count_comments(uow, review.id),
        commit_id=review.commit_id,
        org_contribution=[] if wish is None else list(wish.entries),
        contribution_review_id=None if wish is None else wish.review_id,
        contribution_error_code=None if wish is None else wish.error_code,
        contribution_error=None if wish is None else wish.error,
        contribution_of=review.contribution_of,
        reverts=review.reverts,
    )


def _present(
    found: OpenReview,
) -> tuple[Policy, list[SubmitRule], frozenset[str], Sequence[dict[str, Any]]]:
    entries = freeze(found.drafts, [])["entries"]
    return found.policy, judge(found.facts), counted_approvers(found.facts), entries


def _entries(uow: UnitOfWork, entries: Sequence[dict[str, Any]]) -> list[ReviewEntry]:
    pairs = [
        (HashedState.from_json(entry["before"]), HashedState.from_json(entry["after"])) for entry in entries
    ]
    compared = [_compared(uow, before, after) for before, after in pairs]
    texts = texts_of(uow, (*(state for pair in pairs for state in pair), *compared))
    answers = []
    for position, (entry, pair, origin) in enumerate(zip(entries, pairs, compared, strict=True)):
        before, after = (state.with_body(texts) for state in pair)
        answers.append(
            ReviewEntry(
                draft_id=entry["draft_id"],
                resource_id=entry["resource_id"],
                position=position,
                freshness=Freshness(entry["freshness"]),
                reconciliation=Reconciliation(entry["reconciliation"]),
                before=before,
                after=after,
                diff=unified_diff(origin.with_body(texts), after),
            )
        )
    return answers


def _compared(uow: UnitOfWork, before: HashedState, after: HashedState) -> HashedState:
    """Return what a reviewer compares with: of a new adaptation, the source version that it changes."""
    if before.exists or after.org_source is None:
        return before
    source = after.org_source
    point = (source.resource_id, seq_of(uow, uow.org.id, source.commit_id))
    version = versions_at(uow, uow.org.id, [point]).get(point)
    return before if version is None else state_of(version)


def _approvals(uow: UnitOfWork, review: ReviewRow, counted: frozenset[str] | None) -> list[Approval]:
    rows = approvals_of(uow, review.id)
    addresses = emails(uow, (row.user_id for row in rows))
    return [
        Approval(
            user_id=row.user_id,
            email=addresses[row.user_id],
            decision=Decision(row.decision),
            comment=row.comment,
            at=row.at,
            counts=row.result_hash == review.result_hash and (counted is None or row.user_id in counted),
        )
        for row in rows
    ]
