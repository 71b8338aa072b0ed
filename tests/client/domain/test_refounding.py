from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from client.domain.carry_over import carry_over
from client.domain.local_draft import LocalDraft
from client.domain.refounding import Ground, refound
from shared_schema.drafts import DraftOperation, DraftStatus, OperationKind
from shared_schema.memory import ABSENT, ResourceState, Scope

TEXTS = st.text("ab\n", max_size=6).map(lambda text: "# T\n" + text)
PATHS = st.sampled_from(["a.md", "b.md", "c/d.md"])
STATES = st.builds(
    lambda path, body: ResourceState(exists=True, path=path, body=body, description=""), PATHS, TEXTS
)
STEPS = st.lists(
    st.one_of(
        TEXTS.map(lambda body: {"kind": OperationKind.UPDATE, "body": body}),
        PATHS.map(lambda path: {"kind": OperationKind.RENAME, "path": path}),
    ),
    max_size=5,
)


def draft(base: ResourceState, steps: list[dict[str, object]]) -> LocalDraft:
    operations = tuple(
        DraftOperation.model_validate({"operation_id": f"lop_{place}", "ordinal": place, **step})
        for place, step in enumerate(steps, start=1)
    )
    return LocalDraft("drf_1", "prj_1", Scope.PROJECT, "mem_1", "c1", base, 1, 1, operations=operations)


@given(base=STATES, ground=st.one_of(STATES, st.just(ABSENT)), steps=STEPS.filter(bool), data=st.data())
def test_a_draft_founded_anew_says_the_same_and_keeps_what_was_taken(
    base: ResourceState, ground: ResourceState, steps: list[dict[str, object]], data: st.DataObject
) -> None:
    before = draft(base, steps)
    taken = data.draw(st.integers(0, len(steps) - 1))
    names = iter(f"lop_new{number}" for number in range(9))
    founded = refound(before, taken, Ground(ground, "c2"), lambda: next(names), lambda _path: None)
    assert founded.draft.state() == before.state()
    assert founded.draft.operations[:taken] == before.operations[:taken]
    assert founded.draft.operations[-1].operation_id == before.operations[-1].operation_id
    assert [each.ordinal for each in founded.draft.operations] == [
        *range(1, len(founded.draft.operations) + 1)
    ]
    assert (founded.draft.base, founded.draft.base_commit) == (ground, "c2")


def test_a_removal_of_what_is_gone_already_leaves_nothing_to_propose() -> None:
    base = ResourceState(exists=True, path="a.md", body="# A\n", description="")
    before = draft(base, [{"kind": OperationKind.DELETE}])
    founded = refound(before, 0, Ground(ABSENT, "c2"), lambda: "lop_new", lambda _path: None)
    assert founded.draft.status is DraftStatus.DISCARDED
    assert founded.operations == ()


def test_a_path_that_another_one_has_now_is_told_as_a_conflict() -> None:
    base = ResourceState(exists=True, path="a.md", body="# A\n", description="")
    before = draft(base, [{"kind": OperationKind.UPDATE, "body": "# B\n"}])
    founded = refound(before, 0, Ground(ABSENT, "c2"), lambda: "lop_new", lambda _path: "mem_other")
    assert founded.draft.conflicts == ("path_occupied",)


@given(base=STATES, steps=STEPS, data=st.data())
def test_a_split_draft_says_together_what_it_said(
    base: ResourceState, steps: list[dict[str, object]], data: st.DataObject
) -> None:
    whole = replace(draft(base, steps), status=DraftStatus.MERGED, merged_commit="c9")
    last = data.draw(st.integers(0, len(steps)))
    split = carry_over(whole, last, "drf_2", 5)
    if last == len(steps):
        assert split is None
        return
    assert split is not None
    assert split.successor is not None
    assert split.successor.base == split.published.state()
    assert split.successor.state() == whole.state()
    assert split.successor.base_commit == "c9"
