from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.memory import ABSENT, OrgSource, ResourceState
from shared_schema.rules.merge import merge_text
from shared_schema.rules.reconcile import reconcile

BODY = "one\ntwo\nthree\nfour\nfive\n"
BASE = ResourceState(exists=True, path="guides/a.md", description="about", body=BODY)
SOURCE = OrgSource(resource_id="mem_1", commit_id="c1")


def changed(**fields: object) -> ResourceState:
    return BASE.model_copy(update=fields)


EDITED_TOP = changed(body=BODY.replace("one", "ONE"))
EDITED_END = changed(body=BODY.replace("five", "FIVE"))
EDITED_TOP_TOO = changed(body=BODY.replace("one", "eins"))
MOVED = changed(path="guides/b.md")
MOVED_ELSEWHERE = changed(path="guides/c.md")
DESCRIBED = changed(description="more")
DESCRIBED_OTHERWISE = changed(description="less")
ADAPTED = changed(org_source=SOURCE)
ADAPTED_NEWER = changed(org_source=OrgSource(resource_id="mem_1", commit_id="c2"))


@pytest.mark.requirement("reconcile.clean")
@pytest.mark.parametrize(
    ("base", "current", "draft", "result"),
    [
        (BASE, BASE, EDITED_TOP, EDITED_TOP),
        (BASE, EDITED_TOP, BASE, EDITED_TOP),
        (BASE, EDITED_TOP, EDITED_TOP, EDITED_TOP),
        (BASE, EDITED_TOP, EDITED_END, changed(body="ONE\ntwo\nthree\nfour\nFIVE\n")),
        (BASE, MOVED, EDITED_END, changed(path="guides/b.md", body=EDITED_END.body)),
        (BASE, MOVED, MOVED, MOVED),
        (BASE, DESCRIBED, MOVED, changed(path="guides/b.md", description="more")),
        (BASE, ADAPTED, DESCRIBED, changed(description="more", org_source=SOURCE)),
        (ADAPTED, ADAPTED_NEWER, ADAPTED, ADAPTED_NEWER),
        (ADAPTED, BASE, ADAPTED.model_copy(update={"path": "x.md"}), changed(path="x.md")),
        (BASE, ABSENT, BASE, ABSENT),
        (BASE, BASE, ABSENT, ABSENT),
        (BASE, ABSENT, ABSENT, ABSENT),
        (ABSENT, ABSENT, BASE, BASE),
        (ABSENT, BASE, BASE, BASE),
        (ABSENT, BASE, ABSENT, BASE),
    ],
)
def test_changes_that_go_together_are_clean(
    base: ResourceState, current: ResourceState, draft: ResourceState, result: ResourceState
) -> None:
    merged = reconcile(base, current, draft)
    assert merged.conflicts == ()
    assert merged.clean
    assert merged.state == result


@pytest.mark.requirement("reconcile.conflicts")
@pytest.mark.parametrize(
    ("base", "current", "draft", "conflicts"),
    [
        (BASE, EDITED_TOP, EDITED_TOP_TOO, [("content", "one\n", "ONE\n", "eins\n")]),
        (BASE, MOVED, MOVED_ELSEWHERE, [("path", "guides/a.md", "guides/b.md", "guides/c.md")]),
        (BASE, DESCRIBED, DESCRIBED_OTHERWISE, [("description", "about", "more", "less")]),
        (BASE, ADAPTED, ADAPTED_NEWER, [("org_source", "", "mem_1@c1", "mem_1@c2")]),
        (ADAPTED, BASE, ADAPTED_NEWER, [("org_source", "mem_1@c1", "", "mem_1@c2")]),
        (BASE, ABSENT, EDITED_TOP, [("existence", "present", "absent", "present")]),
        (BASE, MOVED, ABSENT, [("existence", "present", "present", "absent")]),
        (ABSENT, BASE, MOVED, [("path", "", "guides/a.md", "guides/b.md")]),
        (ABSENT, EDITED_TOP, EDITED_TOP_TOO, [("content", "", EDITED_TOP.body, EDITED_TOP_TOO.body)]),
        (
            BASE,
            changed(body="1\ntwo\n3\nfour\nfive\n", path="x.md", description="p"),
            changed(body="I\ntwo\nIII\nfour\nfive\n", path="y.md", description="q"),
            [
                ("path", "guides/a.md", "x.md", "y.md"),
                ("description", "about", "p", "q"),
                ("content", "one\n", "1\n", "I\n"),
                ("content", "three\n", "3\n", "III\n"),
            ],
        ),
    ],
)
def test_changes_that_do_not_go_together_come_back_as_values(
    base: ResourceState, current: ResourceState, draft: ResourceState, conflicts: list[tuple[str, ...]]
) -> None:
    merged = reconcile(base, current, draft)
    assert merged.state is None
    assert not merged.clean
    assert [(each.kind, each.base, each.current, each.draft) for each in merged.conflicts] == conflicts


def test_fields_of_an_absent_state_do_not_matter() -> None:
    leftover = ResourceState(exists=False, path="old.md", body="old")
    assert reconcile(BASE, leftover, ABSENT).state == ABSENT


@pytest.mark.requirement("reconcile.path_occupied")
def test_a_result_in_the_way_of_another_resource_is_a_conflict() -> None:
    asked: list[str] = []

    def occupied(path: str) -> str | None:
        asked.append(path)
        return "mem_9" if path == "guides/b.md" else None

    [conflict] = reconcile(BASE, EDITED_TOP, MOVED, occupied).conflicts
    assert (conflict.kind, conflict.current, conflict.draft) == ("path_occupied", "mem_9", "guides/b.md")
    kinds = [
        each.kind
        for each in reconcile(
            BASE, EDITED_TOP, EDITED_TOP_TOO.model_copy(update={"path": "guides/b.md"}), occupied
        ).conflicts
    ]
    assert kinds == ["content", "path_occupied"]
    asked.clear()
    assert reconcile(BASE, EDITED_TOP, EDITED_END, occupied).clean
    assert asked == ["guides/a.md"]


def test_the_path_of_a_deletion_or_of_undecided_renames_is_not_asked_for() -> None:
    def occupied(path: str) -> str | None:
        raise AssertionError(path)

    assert reconcile(BASE, BASE, ABSENT, occupied).state == ABSENT
    assert [each.kind for each in reconcile(BASE, MOVED, MOVED_ELSEWHERE, occupied).conflicts] == ["path"]
    assert [each.kind for each in reconcile(BASE, ABSENT, MOVED, occupied).conflicts] == ["existence"]


STATES = st.one_of(
    st.just(ABSENT),
    st.builds(
        ResourceState,
        exists=st.just(True),
        path=st.sampled_from(["a.md", "b.md", "c.md"]),
        description=st.sampled_from(["", "d", "e"]),
        body=st.sampled_from([BODY, EDITED_TOP.body, EDITED_END.body, EDITED_TOP_TOO.body]),
        org_source=st.sampled_from([None, SOURCE]),
    ),
)


@pytest.mark.requirement("reconcile.laws")
@given(base=STATES, current=STATES, draft=STATES)
def test_reconciliation_obeys_the_laws_of_a_merge(
    base: ResourceState, current: ResourceState, draft: ResourceState
) -> None:
    merged, mirrored = reconcile(base, current, draft), reconcile(base, draft, current)
    assert merged.state == mirrored.state
    assert [each.kind for each in merged.conflicts] == [each.kind for each in mirrored.conflicts]
    assert (merged.state is None) == bool(merged.conflicts)
    assert reconcile(base, base, draft).state == draft
    assert reconcile(base, current, base).state == current
    assert reconcile(base, draft, draft).state == draft
    if merged.state is not None and base.exists and current.exists and draft.exists:
        assert merged.state.body == merge_text(base.body, current.body, draft.body)


@given(base=STATES, current=STATES, draft=STATES)
def test_a_draft_rebased_onto_the_current_state_is_not_behind_any_more(
    base: ResourceState, current: ResourceState, draft: ResourceState
) -> None:
    merged = reconcile(base, current, draft).state
    if merged is not None:
        assert reconcile(current, current, merged).state == merged
