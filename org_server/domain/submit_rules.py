"""What a Review needs before it may be merged: named rules over plain facts.

Each rule is one row of `RULES`: its name, the error code of a merge that it stops, and a function
from the facts to ``(status, reason)``. Readers of a Review see all of them; a merge raises the
first unsatisfied one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Policy, SubmitRule
from shared_schema.reviews import FINAL_STATUSES, ReviewStatus, RuleStatus


@dataclass(frozen=True)
class DraftFacts:
    """How one Draft of the Review stands against the head.

    ``moved`` says that its own resource changed since its base, ``conflicts`` names the kinds of
    conflict that reconciling it has, ``clash`` is the resource that holds its path, and
    ``rival`` the other adaptation of its source.
    """

    draft_id: str
    resource_id: str
    empty: bool
    behind: bool
    moved: bool
    conflicts: tuple[str, ...] = ()
    path: str = ""
    clash: str | None = None
    clash_project: str | None = None
    """The Project whose selection makes an Org path clash; None within the target itself."""
    rival: str | None = None


@dataclass(frozen=True)
class ReviewFacts:
    """All that the rules look at. ``approvers``: distinct users with an approval that counts."""

    status: ReviewStatus
    author_id: str
    policy: Policy
    approvers: frozenset[str]
    drafts: Sequence[DraftFacts]


Verdict = tuple[RuleStatus, str]
_OK = RuleStatus.SATISFIED
_NO = RuleStatus.UNSATISFIED


def counted_approvers(facts: ReviewFacts) -> frozenset[str]:
    """Return the users whose approval counts under the policy."""
    if facts.policy.allow_self_approval:
        return facts.approvers
    return facts.approvers - {facts.author_id}


def _active(facts: ReviewFacts) -> Verdict:
    if facts.status in FINAL_STATUSES:
        return _NO, f"The Review is {facts.status.value}."
    return _OK, "The Review is not final."


def _not_empty(facts: ReviewFacts) -> Verdict:
    empty = [draft.draft_id for draft in facts.drafts if draft.empty]
    if empty:
        return _NO, f"Nothing is left to publish of {', '.join(empty)}."
    return _OK, "Every Draft changes something."


def _base_current(facts: ReviewFacts) -> Verdict:
    moved = [draft.draft_id for draft in facts.drafts if draft.moved]
    if moved:
        return _NO, f"The own resource moved since the base of {', '.join(moved)}."
    if any(draft.behind for draft in facts.drafts):
        return _OK, "Only other resources moved; the merge rebases."
    return _OK, "Every Draft is on the newest commit."


def _path_free(facts: ReviewFacts) -> Verdict:
    taken = [draft.path for draft in facts.drafts if draft.clash is not None]
    if taken:
        return _NO, f"Another resource has, or stands above or below: {', '.join(taken)}."
    return _OK, "Every path is free."


def _one_adaptation(facts: ReviewFacts) -> Verdict:
    rivals = [draft.draft_id for draft in facts.drafts if draft.rival is not None]
    if rivals:
        return _NO, f"The source of {', '.join(rivals)} has another adaptation in this Project."
    return _OK, "No Org resource is adapted twice."


def _not_author(facts: ReviewFacts) -> Verdict:
    if facts.policy.allow_self_approval:
        return RuleStatus.NOT_APPLICABLE, "Authors may approve their own Reviews here."
    if facts.policy.required_approvals == 0:
        return RuleStatus.NOT_APPLICABLE, "No approval is needed here."
    if facts.author_id in facts.approvers and not counted_approvers(facts):
        return _NO, "The only approval is the author's own, which does not count here."
    return _OK, "The author's own approval does not count here."


def _approvals(facts: ReviewFacts) -> Verdict:
    needed = facts.policy.required_approvals
    have = len(counted_approvers(facts))
    if needed == 0:
        return RuleStatus.NOT_APPLICABLE, "No approval is needed here."
    return (_OK if have >= needed else _NO), f"{have} of {needed} approvals on the present content."


class Rule(NamedTuple):
    """One named rule and the error code of a merge that it stops."""

    name: str
    code: ErrorCode
    judge: Callable[[ReviewFacts], Verdict]


RULES: Final = (
    Rule("active", ErrorCode.REVIEW_CLOSED, _active),
    Rule("not_empty", ErrorCode.DRAFT_EMPTY, _not_empty),
    Rule("base_current", ErrorCode.RECONCILIATION_REQUIRED, _base_current),
    Rule("one_adaptation", ErrorCode.ADAPTATION_EXISTS, _one_adaptation),
    Rule("path_free", ErrorCode.PATH_OCCUPIED, _path_free),
    Rule("not_author", ErrorCode.SELF_APPROVAL_NOT_ALLOWED, _not_author),
    Rule("approvals", ErrorCode.REVIEW_NOT_APPROVED, _approvals),
)


def judge(facts: ReviewFacts) -> list[SubmitRule]:
    """Return how every rule stands, in the order in which a merge checks them."""
    return [SubmitRule(rule=rule.name, status=status, reason=reason) for rule, status, reason in _all(facts)]


def require_mergeable(facts: ReviewFacts) -> None:
    """Raise the code of the first unsatisfied rule; its details name ``rule`` and the Drafts."""
    for rule, status, reason in _all(facts):
        if status is RuleStatus.UNSATISFIED:
            raise InterleafError(rule.code, reason, details={"rule": rule.name} | _details(rule.code, facts))


def _all(facts: ReviewFacts) -> list[tuple[Rule, RuleStatus, str]]:
    return [(rule, *rule.judge(facts)) for rule in RULES]


def _details(code: ErrorCode, facts: ReviewFacts) -> dict[str, Any]:
    match code:
        case ErrorCode.REVIEW_CLOSED:
            return {"status": facts.status.value}
        case ErrorCode.DRAFT_EMPTY:
            return {"draft_ids": [draft.draft_id for draft in facts.drafts if draft.empty]}
        case ErrorCode.RECONCILIATION_REQUIRED:
            return {"drafts": [_moved(draft) for draft in facts.drafts if draft.moved]}
        case ErrorCode.ADAPTATION_EXISTS:
            return {"drafts": [_rival(draft) for draft in facts.drafts if draft.rival is not None]}
        case ErrorCode.PATH_OCCUPIED:
            return {"drafts": [_clash(draft) for draft in facts.drafts if draft.clash is not None]}
        case _:
            return {"required": facts.policy.required_approvals, "counted": len(counted_approvers(facts))}


def _moved(draft: DraftFacts) -> dict[str, Any]:
    return {
        "draft_id": draft.draft_id,
        "resource_id": draft.resource_id,
        "reconciliation": "conflicts" if draft.conflicts else "clean",
        "conflicts": list(draft.conflicts),
    }


def _rival(draft: DraftFacts) -> dict[str, Any]:
    return {"draft_id": draft.draft_id, "adapted_by": draft.rival}


def _clash(draft: DraftFacts) -> dict[str, Any]:
    return {
        "draft_id": draft.draft_id,
        "path": draft.path,
        "resource_id": draft.clash,
        "project_id": draft.clash_project,
    }
