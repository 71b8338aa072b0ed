"""Org contributions: what may be wished, and what a merge makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from org_server.domain.contributions import (
    Contribution,
    org_changes,
    record_entries,
    require_targets,
)
from org_server.domain.states import GONE, HashedState
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import OrgSource, Scope
from shared_schema.org_contract import ContributionEntry

PLAIN = HashedState(True, "a.md", "what it is", "sha256:a")
ADAPTED = HashedState(True, "b.md", "", "sha256:b", OrgSource(resource_id="mem_org", commit_id="c"))
DRAFTS = {"drf_plain": PLAIN, "drf_adapted": ADAPTED, "drf_gone": GONE}


def entry(draft_id: str, path: str | None = None, target_id: str | None = None) -> ContributionEntry:
    return ContributionEntry(draft_id=draft_id, path=path, target_id=target_id)


@pytest.mark.requirement("contribution.checked")
@pytest.mark.parametrize(
    ("wished", "recorded"),
    [
        (entry("drf_plain"), entry("drf_plain")),
        (entry("drf_plain", path="guides/e\u0301.md"), entry("drf_plain", path="guides/\u00e9.md")),
        (entry("drf_plain", target_id="mem_x"), entry("drf_plain", target_id="mem_x")),
        (entry("drf_adapted"), entry("drf_adapted", target_id="mem_org")),
        (entry("drf_adapted", path="new.md"), entry("drf_adapted", path="new.md")),
        (
            entry("drf_adapted", path="new.md", target_id="mem_org"),
            entry("drf_adapted", path="new.md", target_id="mem_org"),
        ),
        (entry("drf_adapted", target_id="mem_x"), entry("drf_adapted", target_id="mem_x")),
    ],
)
def test_an_entry_is_recorded_with_its_target(wished: ContributionEntry, recorded: ContributionEntry) -> None:
    assert record_entries(Scope.PROJECT, [wished], DRAFTS) == (recorded,)


@pytest.mark.requirement("contribution.checked")
@pytest.mark.parametrize(
    ("scope", "entries", "code"),
    [
        (Scope.ORG, [entry("drf_plain")], ErrorCode.INVALID_ARGUMENTS),
        (Scope.PROJECT, [entry("drf_other")], ErrorCode.INVALID_ARGUMENTS),
        (Scope.PROJECT, [entry("drf_plain"), entry("drf_plain", path="b.md")], ErrorCode.INVALID_ARGUMENTS),
        (Scope.PROJECT, [entry("drf_gone")], ErrorCode.INVALID_ARGUMENTS),
        (Scope.PROJECT, [entry("drf_plain", path="../up.md")], ErrorCode.INVALID_PATH),
        (
            Scope.PROJECT,
            [entry("drf_adapted"), entry("drf_plain", target_id="mem_org")],
            ErrorCode.INVALID_ARGUMENTS,
        ),
    ],
)
def test_a_wish_that_cannot_be_is_refused(
    scope: Scope, entries: list[ContributionEntry], code: ErrorCode
) -> None:
    with pytest.raises(InterleafError) as refused:
        record_entries(scope, entries, DRAFTS)
    assert refused.value.code is code


def test_nothing_wished_is_nothing_recorded_in_any_scope() -> None:
    assert record_entries(Scope.ORG, [], DRAFTS) == ()


@pytest.mark.requirement("contribution.checked")
def test_a_target_has_to_be_published() -> None:
    entries = [entry("drf_plain"), entry("drf_adapted", target_id="mem_org")]
    require_targets(entries, {"mem_org"})
    with pytest.raises(InterleafError) as refused:
        require_targets(entries, set())
    assert "mem_org" in refused.value.message


@pytest.mark.requirement("contribution.published")
@pytest.mark.parametrize(
    ("wished", "targets", "expected"),
    [
        (entry("drf_plain"), {}, (None, "a.md")),
        (entry("drf_plain", path="x.md"), {}, (None, "x.md")),
        (entry("drf_adapted", target_id="mem_org"), {"mem_org": PLAIN}, ("mem_org", "a.md")),
        (entry("drf_adapted", path="x.md", target_id="mem_org"), {"mem_org": PLAIN}, ("mem_org", "x.md")),
    ],
)
def test_what_was_published_becomes_an_org_state_without_a_source(
    wished: ContributionEntry, targets: dict[str, HashedState], expected: tuple[str | None, str]
) -> None:
    [change] = org_changes([wished], DRAFTS, targets)
    published = DRAFTS[wished.draft_id]
    assert (change.target_id, change.state.path) == expected
    assert change.state.content_hash == published.content_hash
    assert change.state.description == published.description
    assert change.state.org_source is None


@pytest.mark.requirement("contribution.failure")
@pytest.mark.parametrize(
    ("wished", "targets", "code"),
    [
        (entry("drf_gone"), {}, ErrorCode.DRAFT_EMPTY),
        (entry("drf_plain", target_id="mem_x"), {}, ErrorCode.MEMORY_RESOURCE_NOT_FOUND),
        (entry("drf_plain", target_id="mem_x"), {"mem_x": GONE}, ErrorCode.MEMORY_RESOURCE_NOT_FOUND),
        (entry("drf_plain", target_id="mem_x"), {"mem_x": PLAIN}, ErrorCode.DRAFT_EMPTY),
    ],
)
def test_what_cannot_be_offered_says_why(
    wished: ContributionEntry, targets: dict[str, HashedState], code: ErrorCode
) -> None:
    with pytest.raises(InterleafError) as refused:
        org_changes([wished], DRAFTS, targets)
    assert refused.value.code is code


def test_what_the_organization_has_already_is_left_out_of_the_rest() -> None:
    entries = [entry("drf_plain", target_id="mem_x"), entry("drf_adapted", target_id="mem_org")]
    changes = org_changes(entries, DRAFTS, {"mem_x": PLAIN, "mem_org": PLAIN})
    assert [change.target_id for change in changes] == ["mem_org"]


TEXTS = st.none() | st.text(min_size=1, max_size=8)


@given(
    entries=st.lists(
        st.builds(entry, st.sampled_from(["drf_1", "drf_2", "drf_3"]), TEXTS, TEXTS),
        min_size=1,
        max_size=3,
        unique_by=lambda each: each.draft_id,
    ),
    outcome=st.sampled_from(["none", "opened", "failed"]),
)
def test_a_record_survives_its_stored_form_and_a_draft_that_leaves(
    entries: list[ContributionEntry], outcome: str
) -> None:
    record = Contribution(tuple(entries))
    if outcome != "none":
        record = record.failed(InterleafError(ErrorCode.FORBIDDEN, "no"))
    if outcome == "opened":
        record = record.opened("rev_1")
    stored: dict[str, Any] = record.as_json()
    assert Contribution.from_json(stored) == record
    assert (record.review_id is not None, record.error is not None) == (
        outcome == "opened",
        outcome == "failed",
    )
    left = record.without(entries[0].draft_id)
    assert (left is None) == (len(entries) == 1)
    if left is not None:
        assert left.entries == tuple(entries[1:])
