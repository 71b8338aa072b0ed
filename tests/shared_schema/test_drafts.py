from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared_schema import limits
from shared_schema.drafts import DraftHeader, DraftOperation, OperationKind, apply_operation
from shared_schema.memory import ABSENT, OrgSource, ResourceState

STATE = ResourceState(exists=True, path="a.md", description="d", body="text\n")
SOURCE = OrgSource(resource_id="mem_0", commit_id="c")
VALUES: dict[str, Any] = {
    "path": "b.md",
    "description": "e",
    "body": "other\n",
    "base_commit": "c2",
    "state": STATE,
}
REQUIRED = {"create": {"path", "body"}, "rename": {"path"}, "rebase": {"base_commit", "state"}}
ALLOWED = {
    "create": {"path", "body", "description"},
    "update": {"body", "description"},
    "rename": {"path", "description"},
    "delete": {"description"},
    "rebase": {"base_commit", "state"},
    "discard": set[str](),
}


def operation(kind: str, ordinal: int = 1, **fields: Any) -> DraftOperation:
    return DraftOperation.model_validate(
        {"operation_id": "lop_1", "ordinal": ordinal, "kind": kind, **fields}
    )


@pytest.mark.requirement("drafts.operation_fields")
@pytest.mark.parametrize("kind", [kind.value for kind in OperationKind])
def test_an_operation_takes_exactly_the_fields_of_its_kind(kind: str) -> None:
    for size in range(len(VALUES) + 1):
        for names in map(set, combinations(VALUES, size)):
            fits = REQUIRED.get(kind, set()) <= names <= ALLOWED[kind] and (kind != "update" or bool(names))
            fields = {name: VALUES[name] for name in names}
            if fits:
                made = operation(kind, **fields)
                assert DraftOperation.model_validate_json(made.model_dump_json()) == made
            else:
                with pytest.raises(ValidationError, match=kind):
                    operation(kind, **fields)


def test_a_create_is_always_the_first_operation() -> None:
    with pytest.raises(ValidationError, match="first operation"):
        operation("create", 2, path="a.md", body="text")
    assert operation("update", 2, body="text").ordinal == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"ordinal": 0},
        {"ordinal": True},
        {"ordinal": "1"},
        {"operation_id": "drf_1"},
        {"operation_id": "lop_"},
        {"operation_id": "lop_a/b"},
        {"operation_id": "lop_1\n"},
        {"kind": "publish"},
        {"body": 7},
        {"description": "d" * (limits.DESCRIPTION_CHARACTERS + 1)},
        {"author": "somebody"},
    ],
)
def test_an_operation_out_of_form_is_refused(fields: dict[str, Any]) -> None:
    good = {"operation_id": "lop_1", "ordinal": 1, "kind": "update", "body": "text"}
    DraftOperation.model_validate(good)
    with pytest.raises(ValidationError):
        DraftOperation.model_validate(good | fields)


def test_a_rebase_onto_an_authority_without_commits_has_an_empty_base() -> None:
    assert operation("rebase", base_commit="", state=ABSENT).base_commit == ""


@pytest.mark.requirement("drafts.apply")
@pytest.mark.parametrize(
    ("before", "kind", "fields", "after"),
    [
        (ABSENT, "create", {"path": "a.md", "body": "t"}, ResourceState(exists=True, path="a.md", body="t")),
        (STATE, "update", {"body": "new"}, STATE.model_copy(update={"body": "new"})),
        (STATE, "update", {"description": ""}, STATE.model_copy(update={"description": ""})),
        (STATE, "rename", {"path": "b.md"}, STATE.model_copy(update={"path": "b.md"})),
        (
            STATE,
            "rename",
            {"path": "b.md", "description": "moved"},
            STATE.model_copy(update={"path": "b.md", "description": "moved"}),
        ),
        (STATE, "delete", {}, ABSENT),
        (STATE, "delete", {"description": "not needed any more"}, ABSENT),
        (STATE, "discard", {}, ABSENT),
        (ABSENT, "rebase", {"base_commit": "c", "state": STATE}, STATE),
        (STATE, "rebase", {"base_commit": "c", "state": ABSENT}, ABSENT),
    ],
)
def test_an_operation_makes_the_state_that_its_kind_says(
    before: ResourceState, kind: str, fields: dict[str, Any], after: ResourceState
) -> None:
    assert apply_operation(before, operation(kind, **fields)) == after


def test_only_a_create_takes_the_source_of_the_draft() -> None:
    created = apply_operation(ABSENT, operation("create", path="a.md", body="t"), SOURCE)
    assert created.org_source == SOURCE
    assert apply_operation(created, operation("update", 2, body="u")).org_source == SOURCE
    assert apply_operation(STATE, operation("update", 2, body="u"), SOURCE).org_source is None


@given(
    fields=st.lists(
        st.one_of(
            st.fixed_dictionaries({"kind": st.just("update"), "body": st.text()}),
            st.fixed_dictionaries({"kind": st.just("update"), "description": st.text(max_size=20)}),
            st.fixed_dictionaries({"kind": st.just("rename"), "path": st.text(min_size=1)}),
        ),
        max_size=6,
    )
)
def test_the_last_value_of_every_field_wins(fields: list[dict[str, Any]]) -> None:
    state, expected = STATE, STATE.model_dump()
    for ordinal, each in enumerate(fields, 1):
        state = apply_operation(
            state, operation(each["kind"], ordinal, **{k: v for k, v in each.items() if k != "kind"})
        )
        expected |= {name: value for name, value in each.items() if name != "kind"}
    assert state.model_dump() == expected
    assert STATE.body == "text\n"


@pytest.mark.parametrize(
    "fields",
    [
        {"draft_id": "mem_1"},
        {"scope": "team"},
        {"base_commit": 1},
        {"status": "open"},
        {"org_source": "mem_1"},
    ],
)
def test_a_header_out_of_form_is_refused(fields: dict[str, Any]) -> None:
    good = {"draft_id": "drf_1", "project_id": "prj_1", "scope": "project", "resource_id": "mem_1"}
    assert DraftHeader.model_validate(good).base_commit is None
    with pytest.raises(ValidationError):
        DraftHeader.model_validate(good | fields)
