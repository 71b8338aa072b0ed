"""One Review with everything that decisions and readers need of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from org_server.domain.permissions import Action
from org_server.domain.submit_rules import DraftFacts, ReviewFacts
from org_server.services.draft_views import DraftView, view_drafts
from org_server.services.merge_plan import MergePlan, plan_merge
from org_server.store.reviews import approvers, count_drafts, drafts_of_review, emails
from org_server.store.tables import ProjectRow, ReviewRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.drafts import Freshness
from shared_schema.memory import Scope
from shared_schema.org_contract import Policy, ReviewSummary
from shared_schema.reviews import ReviewStatus


@dataclass(frozen=True)
class OpenReview:
    """A Review that is not final, with its Drafts as they stand and what merging it would do."""

    row: ReviewRow
    policy: Policy
    drafts: Sequence[DraftView]
    plan: MergePlan
    facts: ReviewFacts


def decide_action(review: ReviewRow) -> Action:
    """Return the action that deciding and merging this Review is."""
    return Action.ORG_REVIEW_DECIDE if review.scope == Scope.ORG.value else Action.PROJECT_REVIEW_DECIDE


def policy_of(uow: UnitOfWork, review: ReviewRow, project: ProjectRow) -> Policy:
    """Return the policy of the authority that the Review publishes to."""
    if review.scope == Scope.ORG.value:
        return Policy(
            required_approvals=uow.org.policy_required_approvals,
            allow_self_approval=uow.org.policy_allow_self_approval,
        )
    return Policy(
        required_approvals=project.required_approvals, allow_self_approval=project.allow_self_approval
    )


def examine(
    uow: UnitOfWork, review: ReviewRow, project: ProjectRow, also_approved_by: str | None = None
) -> OpenReview:
    """Return how a Review stands now; ``also_approved_by`` counts an approval that is being given."""
    views = view_drafts(uow, drafts_of_review(uow, review.id))
    plan = plan_merge(uow, review, views)
    policy = policy_of(uow, review, project)
    given = approvers(uow, review)
    facts = ReviewFacts(
        status=ReviewStatus(review.status),
        author_id=review.author_id,
        policy=policy,
        approvers=given if also_approved_by is None else given | {also_approved_by},
        drafts=[_facts(view, plan) for view in views],
    )
    return OpenReview(review, policy, views, plan, facts)


def _facts(view: DraftView, plan: MergePlan) -> DraftFacts:
    clash = plan.clashes.get(view.row.resource_id)
    return DraftFacts(
        draft_id=view.row.id,
        resource_id=view.row.resource_id,
        empty=view.state == view.base,
        behind=view.standing.freshness is Freshness.BEHIND,
        moved=view.standing.moved,
        conflicts=view.standing.conflicts,
        path=view.path if clash is None else clash.path,
        clash=None if clash is None else clash.holder,
        clash_project=None if clash is None else clash.project_id,
        rival=plan.rivals.get(view.row.resource_id),
    )


def summarise(
    uow: UnitOfWork, reviews: Sequence[ReviewRow], project_names: Mapping[str, str]
) -> list[ReviewSummary]:
    """Return the Reviews as a list shows them, in the same order."""
    authors = emails(uow, (review.author_id for review in reviews))
    counts = count_drafts(uow, (review.id for review in reviews))
    return [
        ReviewSummary(
            review_id=review.id,
            project_id=review.project_id,
            project_name=project_names[review.project_id],
            scope=Scope(review.scope),
            title=review.title,
            status=ReviewStatus(review.status),
            author_id=review.author_id,
            author_email=authors[review.author_id],
            version=review.version,
            drafts=counts.get(review.id, 0),
            created_at=review.created_at,
            updated_at=review.updated_at,
        )
        for review in reviews
    ]
