from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import ABSENT, OrgSource, ResourceState, Scope
from shared_schema.rules.chain import Change, commit_id, effective_hash, review_result_hash, verify_step
from shared_schema.rules.hashing import content_hash


def change(resource_id: str = "mem_1", **fields: Any) -> Change:
    given_fields = {
        "scope": Scope.PROJECT,
        "path": "指南/a.md",
        "description": "d",
        "content_hash": content_hash("text"),
        **fields,
    }
    return Change(resource_id=resource_id, **given_fields)


@pytest.mark.requirement("chain.commit_id")
def test_a_commit_id_is_the_hash_of_the_documented_json() -> None:
    source = OrgSource(resource_id="mem_0", commit_id="c0")
    text = json.dumps(
        {
            "changes": [
                {
                    "content_hash": content_hash("text"),
                    "description": "d",
                    "org_source": {"commit_id": "c0", "resource_id": "mem_0"},
                    "path": "指南/a.md",
                    "removed": False,
                    "resource_id": "mem_1",
                    "scope": "project",
                },
                {
                    "content_hash": content_hash("text"),
                    "description": "d",
                    "org_source": None,
                    "path": "指南/a.md",
                    "removed": True,
                    "resource_id": "mem_2",
                    "scope": "project",
                },
            ],
            "owner": "prj_1",
            "parent": None,
            "seq": 1,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )
    expected = hashlib.sha256(text.encode()).hexdigest()
    changes = [change("mem_2", removed=True), change(org_source=source)]
    assert commit_id("prj_1", 1, None, changes) == expected
    assert commit_id("prj_1", 1, None, reversed(changes)) == expected


def test_a_commit_id_never_changes_between_releases() -> None:
    assert commit_id("prj_1", 1, None, [change()]) == (
        "3daa5ec841d1c986c41da4d8cfa347485670d87583e9a4dcb0ed557fa111e6b1"
    )


@pytest.mark.parametrize(
    "other",
    [
        change("mem_2"),
        change(scope=Scope.ORG),
        change(path="b.md"),
        change(description="e"),
        change(content_hash=content_hash("other")),
        change(org_source=OrgSource(resource_id="mem_0", commit_id="c0")),
        change(removed=True),
    ],
)
def test_every_field_of_a_change_is_covered(other: Change) -> None:
    assert commit_id("prj_1", 1, None, [other]) != commit_id("prj_1", 1, None, [change()])


def test_owner_place_and_parent_are_covered() -> None:
    ids = {
        commit_id("prj_1", 1, None, [change()]),
        commit_id("prj_2", 1, None, [change()]),
        commit_id("prj_1", 2, None, [change()]),
        commit_id("prj_1", 1, "p", [change()]),
        commit_id("prj_1", 1, None, []),
    }
    assert len(ids) == 5


def test_two_changes_of_one_resource_are_no_commit() -> None:
    with pytest.raises(ValueError, match="at most once"):
        commit_id("prj_1", 1, None, [change(), change(path="b.md")])


def step(**fields: Any) -> dict[str, Any]:
    changes = [change(), change("mem_2", removed=True)]
    good: dict[str, Any] = {
        "owner": "prj_1",
        "seq": 2,
        "parent": "p",
        "claimed_id": commit_id("prj_1", 2, "p", changes),
        "changes": changes,
        "head_id": "p",
        "head_seq": 1,
        "bodies": {"mem_1": "text"},
    }
    return good | fields


@pytest.mark.requirement("chain.verify")
def test_a_step_that_follows_and_hashes_right_is_accepted() -> None:
    verify_step(**step())
    verify_step(**step(bodies=None))
    first = commit_id("prj_1", 1, None, [])
    verify_step(owner="prj_1", seq=1, parent=None, claimed_id=first, changes=[], head_id=None, head_seq=0)


@pytest.mark.requirement("chain.verify")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"head_id": "q"}, "parent"),
        ({"head_id": None}, "parent"),
        ({"parent": None}, "parent"),
        ({"head_seq": 2}, "seq"),
        ({"seq": 3}, "seq"),
        ({"owner": "prj_2"}, "id"),
        ({"claimed_id": "0" * 64}, "id"),
        ({"changes": [change()]}, "id"),
        ({"changes": [change(), change()]}, "id"),
        ({"changes": [change(), change("mem_2", removed=True, path="\ud800")]}, "id"),
        ({"bodies": {}}, "body"),
        ({"bodies": {"mem_1": "text "}}, "body"),
        ({"bodies": {"mem_1": "\ud800"}}, "body"),
    ],
)
def test_a_step_that_does_not_verify_is_refused_with_its_reason(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InterleafError) as caught:
        verify_step(**step(**fields))
    assert caught.value.code is ErrorCode.CHAIN_BROKEN
    assert caught.value.details["reason"] == reason


ITEM = {
    "resource_id": "mem_1",
    "path": "a.md",
    "description": "d",
    "content_hash": "h",
    "provenance": "draft",
}


@pytest.mark.requirement("chain.effective_hash")
def test_an_effective_hash_covers_everything_given_and_no_order() -> None:
    other = {**ITEM, "resource_id": "mem_2"}
    assert effective_hash("prj_1", "c", [ITEM, other]) == effective_hash("prj_1", "c", [other, ITEM])
    variants = [
        effective_hash("prj_1", "c", [ITEM]),
        effective_hash("prj_2", "c", [ITEM]),
        effective_hash("prj_1", None, [ITEM]),
        effective_hash("prj_1", "c", []),
        effective_hash("prj_1", "c", [ITEM, other]),
        *(effective_hash("prj_1", "c", [{**ITEM, field: "other"}]) for field in ITEM),
    ]
    assert len(set(variants)) == len(variants)
    assert all(each.startswith("sha256:") and len(each) == 71 for each in variants)


RESULT = ResourceState(exists=True, path="a.md", description="d", body="b\n")


@pytest.mark.requirement("chain.review_result_hash")
def test_a_review_result_hash_covers_states_targets_and_order() -> None:
    pair = [("mem_1", RESULT), ("mem_2", ABSENT)]
    variants = [
        review_result_hash(pair),
        review_result_hash(pair[::-1]),
        review_result_hash(pair[:1]),
        review_result_hash([("mem_3", RESULT), ("mem_2", ABSENT)]),
        *(
            review_result_hash([("mem_1", RESULT.model_copy(update=update)), ("mem_2", ABSENT)])
            for update in (
                {"path": "b.md"},
                {"description": ""},
                {"body": "b"},
                {"org_source": OrgSource(resource_id="mem_0", commit_id="c")},
            )
        ),
    ]
    assert len(set(variants)) == len(variants)
    assert review_result_hash(iter(pair)) == review_result_hash(pair)


@given(
    ids=st.lists(st.sampled_from([f"mem_{letter}" for letter in "abcdefg"]), unique=True, max_size=6),
    data=st.data(),
)
def test_the_order_of_changes_never_matters(ids: list[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(ids))
    assert commit_id("org_1", 4, "p", [change(each) for each in ids]) == commit_id(
        "org_1", 4, "p", [change(each) for each in shuffled]
    )
