"""What keeps a Review from being merged, rule by rule."""

from dataclasses import replace

import pytest

from org_server.domain.submit_rules import RULES, DraftFacts, ReviewFacts, judge, require_mergeable
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import Policy
from shared_schema.reviews import ReviewStatus, RuleStatus

DRAFT = DraftFacts(draft_id="drf_1", resource_id="mem_1", empty=False, behind=False, moved=False, path="a.md")
READY = ReviewFacts(
    status=ReviewStatus.OPEN,
    author_id="usr_author",
    policy=Policy(),
    approvers=frozenset({"usr_reviewer"}),
    drafts=(DRAFT,),
)
STRICT = Policy(allow_self_approval=False)


def with_draft(**changes: object) -> ReviewFacts:
    return replace(READY, drafts=(replace(DRAFT, **changes),))  # type: ignore[arg-type]  # names of fields


BLOCKED = [
    ("active", replace(READY, status=ReviewStatus.REJECTED), ErrorCode.REVIEW_CLOSED),
    ("not_empty", with_draft(empty=True), ErrorCode.DRAFT_EMPTY),
    ("base_current", with_draft(behind=True, moved=True), ErrorCode.RECONCILIATION_REQUIRED),
    ("one_adaptation", with_draft(rival="mem_2"), ErrorCode.ADAPTATION_EXISTS),
    ("path_free", with_draft(clash="mem_2"), ErrorCode.PATH_OCCUPIED),
    (
        "not_author",
        replace(READY, policy=STRICT, approvers=frozenset({"usr_author"})),
        ErrorCode.SELF_APPROVAL_NOT_ALLOWED,
    ),
    ("approvals", replace(READY, approvers=frozenset()), ErrorCode.REVIEW_NOT_APPROVED),
    (
        "approvals",
        replace(READY, policy=Policy(required_approvals=3), approvers=frozenset({"usr_a", "usr_b"})),
        ErrorCode.REVIEW_NOT_APPROVED,
    ),
    (
        "approvals",
        replace(
            READY,
            policy=Policy(required_approvals=2, allow_self_approval=False),
            approvers=frozenset({"usr_author", "usr_b"}),
        ),
        ErrorCode.REVIEW_NOT_APPROVED,
    ),
]

FREE = [
    READY,
    replace(READY, status=ReviewStatus.APPROVED),
    with_draft(behind=True),
    replace(READY, approvers=frozenset({"usr_author"})),
    replace(READY, policy=Policy(required_approvals=0, allow_self_approval=False), approvers=frozenset()),
    replace(READY, policy=STRICT, approvers=frozenset({"usr_author", "usr_b"})),
]


@pytest.mark.requirement("review.submit_rules")
@pytest.mark.parametrize(("rule", "facts", "code"), BLOCKED)
def test_an_unsatisfied_rule_stops_the_merge_with_its_own_code(
    rule: str, facts: ReviewFacts, code: ErrorCode
) -> None:
    with pytest.raises(InterleafError) as raised:
        require_mergeable(facts)
    assert raised.value.code is code
    assert raised.value.details["rule"] == rule
    unsatisfied = [item.rule for item in judge(facts) if item.status is RuleStatus.UNSATISFIED]
    assert unsatisfied[0] == rule


@pytest.mark.requirement("review.submit_rules")
@pytest.mark.parametrize("facts", FREE)
def test_a_review_that_fulfils_all_rules_may_be_merged(facts: ReviewFacts) -> None:
    require_mergeable(facts)
    assert [item.rule for item in judge(facts)] == [rule.name for rule in RULES]
    assert RuleStatus.UNSATISFIED not in {item.status for item in judge(facts)}


def test_every_rule_is_seen_to_fail() -> None:
    assert {rule for rule, _, _ in BLOCKED} == {rule.name for rule in RULES}


def test_moved_drafts_are_named_with_their_conflicts() -> None:
    facts = replace(
        READY,
        drafts=(
            replace(DRAFT, behind=True, moved=True, conflicts=("content",)),
            replace(DRAFT, draft_id="drf_2", resource_id="mem_2", behind=True, moved=True),
            replace(DRAFT, draft_id="drf_3", resource_id="mem_3", behind=True),
        ),
    )
    with pytest.raises(InterleafError) as raised:
        require_mergeable(facts)
    assert raised.value.details["drafts"] == [
        {
            "draft_id": "drf_1",
            "resource_id": "mem_1",
            "reconciliation": "conflicts",
            "conflicts": ["content"],
        },
        {"draft_id": "drf_2", "resource_id": "mem_2", "reconciliation": "clean", "conflicts": []},
    ]
