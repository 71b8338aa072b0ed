from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.local_draft import LocalDraft
from client.domain.projection import Installed, project, update
from shared_schema.drafts import DraftOperation, DraftStatus, Freshness, OperationKind, Reconciliation
from shared_schema.memory import ABSENT, OrgSource, Provenance, PublishedResource, ResourceState, Scope
from tests.client.local_world import COMMIT, ORG_COMMIT, OWN, PROJECT, REFERENCE, published

NOW = Installed(PROJECT, COMMIT, 1)
SOURCE = OrgSource(resource_id="mem_ref", commit_id=ORG_COMMIT)


def draft(
    resource_id: str = "mem_own",
    body: str = "# Mine\n",
    *,
    seq: int = 1,
    base: ResourceState | None = None,
    **changes: object,
) -> LocalDraft:
    base = OWN.state() if base is None else base
    if base.exists:
        operation = DraftOperation(operation_id=f"lop_{seq}", ordinal=1, kind=OperationKind.UPDATE, body=body)
    else:
        operation = DraftOperation(
            operation_id=f"lop_{seq}", ordinal=1, kind=OperationKind.CREATE, path=f"new{seq}.md", body=body
        )
    made = LocalDraft(
        draft_id=f"drf_{seq}",
        project_id=PROJECT,
        scope=Scope.PROJECT,
        resource_id=resource_id,
        base_commit=COMMIT,
        base=base,
        created_at=seq,
        updated_at=seq,
        seq=seq,
        operations=(operation,),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # named by the tests below


@pytest.mark.requirement("domain.projection")
def test_without_drafts_the_published_resources_are_shown_by_id() -> None:
    memory = project(NOW, [REFERENCE, OWN], [])

    assert [item.resource_id for item in memory.resources] == ["mem_own", "mem_ref"]
    assert {item.provenance for item in memory.resources} == {Provenance.AUTHORITY}
    assert (memory.by_id["mem_own"].title, memory.by_path["ref.md"].resource_id) == ("Own", "mem_ref")


@pytest.mark.requirement("domain.projection")
def test_a_draft_starts_from_its_own_base_whatever_was_published_since() -> None:
    newer = published("mem_own", "moved.md", "# Theirs\n", description="theirs")
    rename = DraftOperation(operation_id="lop_1", ordinal=1, kind=OperationKind.RENAME, path="mine.md")

    [item] = project(Installed(PROJECT, "c2", 2), [newer], [draft(operations=(rename,))]).resources

    assert (item.path, item.body, item.description) == ("mine.md", OWN.body, "ours")
    assert item.draft is not None
    assert item.draft.freshness is Freshness.BEHIND


@pytest.mark.requirement("domain.projection")
@pytest.mark.parametrize(
    ("status", "merged_seq", "shown"),
    [
        (DraftStatus.OPEN, None, "# Mine\n"),
        (DraftStatus.SUBMITTED, None, "# Mine\n"),
        (DraftStatus.DISCARDED, None, OWN.body),
        (DraftStatus.MERGED, 2, "# Mine\n"),
        (DraftStatus.MERGED, 1, OWN.body),
    ],
)
def test_a_draft_lies_over_the_published_state_until_that_contains_it(
    status: DraftStatus, merged_seq: int | None, shown: str
) -> None:
    memory = project(NOW, [OWN], [draft(status=status, merged_seq=merged_seq)])
    assert memory.by_id["mem_own"].body == shown


@pytest.mark.requirement("domain.projection")
def test_a_proposal_is_not_shown() -> None:
    assert project(NOW, [OWN], [draft(overlay=False)]) == project(NOW, [OWN], [])


@pytest.mark.requirement("domain.projection")
def test_of_two_drafts_on_a_resource_the_later_one_is_shown() -> None:
    first = draft(status=DraftStatus.MERGED, merged_seq=2)
    second = draft(seq=2, body="# Later\n")
    assert project(NOW, [OWN], [first, second]).by_id["mem_own"].body == "# Later\n"


@pytest.mark.requirement("domain.adaptation")
def test_an_adaptation_hides_its_source_by_link_and_not_by_path() -> None:
    adaptation = published("mem_a", "elsewhere.md", org_source=SOURCE)
    same_path = published("mem_b", "ref.md")

    memory = project(NOW, [REFERENCE, adaptation, same_path], [])

    assert set(memory.by_id) == {"mem_a", "mem_b"}
    assert memory.adapted_by == {"mem_ref": "mem_a"}


@pytest.mark.requirement("domain.adaptation")
def test_a_link_between_resources_of_the_project_hides_neither() -> None:
    one = published("mem_a", "a.md", org_source=OrgSource(resource_id="mem_b", commit_id="x"))
    other = published("mem_b", "b.md", org_source=OrgSource(resource_id="mem_a", commit_id="x"))
    assert set(project(NOW, [one, other], []).by_id) == {"mem_a", "mem_b"}


@pytest.mark.requirement("domain.adaptation")
def test_where_two_adaptations_claim_a_source_the_drafts_is_named() -> None:
    theirs = published("mem_a", "a.md", org_source=SOURCE)
    mine = draft("mem_z", base=ABSENT, org_source=SOURCE)
    assert project(NOW, [REFERENCE, theirs], [mine]).adapted_by == {"mem_ref": "mem_z"}


def test_where_a_published_path_meets_a_drafts_the_draft_is_found_by_it() -> None:
    memory = project(NOW, [published("mem_a", "new1.md")], [draft("mem_z", base=ABSENT)])
    assert memory.by_path["new1.md"].resource_id == "mem_z"


@pytest.mark.requirement("domain.broken_draft")
@pytest.mark.parametrize(
    "broken",
    [
        draft(broken=True),
        draft(base=ABSENT, operations=draft().operations),
        draft(operations=(draft().operations[0].model_copy(update={"ordinal": 2}),)),
    ],
)
def test_a_draft_that_cannot_be_applied_is_reported_and_left_out(broken: LocalDraft) -> None:
    memory = project(NOW, [OWN, REFERENCE], [broken, draft("mem_z", seq=2, base=ABSENT)])

    assert memory.broken_drafts == ("drf_1",)
    assert memory.by_id["mem_own"].body == OWN.body
    assert "mem_z" in memory.by_id


@pytest.mark.requirement("drafts.resolve")
def test_a_rebase_stands_for_every_operation_before_it() -> None:
    rebased = DraftOperation(
        operation_id="lop_2",
        ordinal=2,
        kind=OperationKind.REBASE,
        base_commit="",
        state=ResourceState(exists=True, path="kept.md", body="# Kept\n"),
    )
    made = draft(operations=(*draft().operations, rebased), base=ABSENT, base_commit=None)
    assert project(NOW, [], [made]).by_path["kept.md"].body == "# Kept\n"


def test_a_merged_org_draft_names_the_commit_that_published_it() -> None:
    merged = draft(
        "mem_ref",
        base=REFERENCE.state(),
        scope=Scope.ORG,
        status=DraftStatus.MERGED,
        merged_commit="o2",
        merged_seq=2,
    )
    item = project(NOW, [REFERENCE], [merged]).by_id["mem_ref"]
    assert (item.org_source, item.draft) == (OrgSource(resource_id="mem_ref", commit_id="o2"), None)


@pytest.mark.requirement("domain.hash")
@pytest.mark.parametrize(
    ("published_now", "drafts", "installed"),
    [
        ([published("mem_own", "own.md", OWN.body, description="other"), REFERENCE], [], NOW),
        ([published("mem_own", "other.md", OWN.body, description="ours"), REFERENCE], [], NOW),
        ([published("mem_own", "own.md", "# Else\n", description="ours"), REFERENCE], [], NOW),
        ([OWN], [], NOW),
        ([OWN, REFERENCE], [], Installed(PROJECT, "c2", 1)),
        ([OWN, REFERENCE], [], Installed("prj_2", COMMIT, 1)),
        ([OWN, REFERENCE], [draft(body=OWN.body)], NOW),
        ([OWN, REFERENCE], [draft(reconciliation=Reconciliation.CONFLICTS)], NOW),
        (
            [
                OWN,
                REFERENCE.model_copy(update={"org_source": OrgSource(resource_id="mem_ref", commit_id="o2")}),
            ],
            [],
            NOW,
        ),
    ],
)
def test_anything_that_a_reader_can_see_changes_the_hash(
    published_now: list[PublishedResource], drafts: list[LocalDraft], installed: Installed
) -> None:
    assert project(installed, published_now, drafts).hash != project(NOW, [OWN, REFERENCE], []).hash


@pytest.mark.requirement("domain.hash")
def test_the_hash_does_not_depend_on_the_order_of_what_comes_in() -> None:
    assert project(NOW, [OWN, REFERENCE], []).hash == project(NOW, [REFERENCE, OWN], []).hash


@pytest.mark.requirement("domain.projection.incremental")
def test_an_adaptation_that_comes_hides_its_source_and_shows_it_again_when_it_goes() -> None:
    adaptation = published("mem_a", "elsewhere.md", org_source=SOURCE)
    before = project(NOW, [REFERENCE, OWN], [])

    hiding = update(before, NOW, {"mem_a"}, [adaptation], [])
    after = update(hiding, NOW, {"mem_a"}, [], [])

    assert hiding == project(NOW, [REFERENCE, OWN, adaptation], [])
    assert set(hiding.hidden) == {"mem_ref"}
    assert after == before


# Two and two share a part of the map by id, whose digest is kept.
IDS = ["mem_a", "mem_ai4", "mem_b", "mem_ai7"]
TITLES = ["A", "b", "DRAFT", "Other"]
SOURCES = st.none() | st.builds(OrgSource, resource_id=st.sampled_from(IDS), commit_id=st.just("o1"))
STATES = st.builds(
    ResourceState,
    exists=st.just(True),
    path=st.sampled_from(["a.md", "b.md", "c.md"]),
    body=st.sampled_from(["# A\n", "# B\n"]),
    org_source=SOURCES,
)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, PublishedResource], dict[str, list[LocalDraft]]]:
    """Published resources and Drafts by resource, related by ids, links and paths."""
    resources: dict[str, PublishedResource] = {}
    drafts: dict[str, list[LocalDraft]] = {}
    for number, resource_id in enumerate(IDS):
        if draw(st.booleans()):
            state, scope = draw(STATES), draw(st.sampled_from(Scope))
            resources[resource_id] = published(
                resource_id, state.path, state.body, scope=scope, org_source=state.org_source
            )
        for place in range(draw(st.integers(0, 2))):
            base = draw(st.just(ABSENT) | STATES)
            made = draft(
                resource_id,
                draw(st.sampled_from(["# Draft\n", "# Other\n"])),
                seq=number * 10 + place + 1,
                base=base,
                scope=draw(st.sampled_from(Scope)),
                status=draw(st.sampled_from(DraftStatus)),
                merged_seq=draw(st.integers(0, 3)),
                org_source=draw(SOURCES),
                broken=draw(st.booleans()) and draw(st.booleans()),
            )
            if base.exists and draw(st.booleans()):
                delete = DraftOperation(operation_id=f"lop_{made.seq}", ordinal=1, kind=OperationKind.DELETE)
                made = replace(made, operations=(delete,))
            drafts.setdefault(resource_id, []).append(made)
    return resources, drafts


@pytest.mark.requirement("domain.projection.incremental")
@given(before=worlds(), after=worlds(), changed=st.sets(st.sampled_from(IDS)), looked_up=st.booleans())
def test_an_update_computes_what_everything_anew_would(
    before: tuple[dict[str, PublishedResource], dict[str, list[LocalDraft]]],
    after: tuple[dict[str, PublishedResource], dict[str, list[LocalDraft]]],
    changed: set[str],
    looked_up: bool,
) -> None:
    def all_of(
        world: tuple[dict[str, PublishedResource], dict[str, list[LocalDraft]]], ids: set[str]
    ) -> tuple[list[PublishedResource], list[LocalDraft]]:
        resources, drafts = world
        found = [resources[resource_id] for resource_id in IDS if resource_id in ids & resources.keys()]
        return found, [
            one for resource_id in IDS if resource_id in ids for one in drafts.get(resource_id, [])
        ]

    everything = set(IDS)
    former = project(NOW, *all_of(before, everything))
    if looked_up:
        assert former.hash
        assert len(former.by_path) <= len(former.by_id)
        assert former.titled("none") == ()
    kept, now = all_of(before, everything - changed), all_of(after, changed)

    result = update(former, NOW, changed, *now)

    expected = project(NOW, kept[0] + now[0], sorted(kept[1] + now[1], key=lambda one: one.seq))
    assert result == expected
    assert result.hash == expected.hash
    assert result.by_id == expected.by_id
    assert result.by_path == expected.by_path
    assert result.adapted_by == expected.adapted_by
    assert result.resources == expected.resources
    assert [result.titled(title) for title in TITLES] == [expected.titled(title) for title in TITLES]
    # And once more from the result, whose cached look-ups were handed on.
    assert update(result, NOW, everything, *all_of(before, everything)) == former
