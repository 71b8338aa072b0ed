"""What an agent is told after each kind of change, one story each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.domain import chunking
from client.index import manifest
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.tool_contract import ActivateAnswer
from tests.client.local_world import PROJECT, published
from tests.client.services.activating_world import ActivatingWorld

LONG = "The kumquat cluster is in Oslo. " * 15
BODY = f"# Kumquat\n\n{LONG}\n\n## Backups\n\nBackups of the kumquat cluster run at two. {LONG}\n"
SOURCE = f"# Lantern\n\nEvery lantern is lit at dusk. {LONG}\n"
OWN, REFERENCE = (
    published("mem_own", "own.md", BODY),
    published("mem_ref", "ref.md", SOURCE, scope=Scope.ORG),
)
ROOT, BACKUPS = "mem_own/kumquat/0/0", "mem_own/kumquat/backups/0/0"


@pytest.fixture(params=[True, False], ids=["indexed", "overlaid"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ActivatingWorld]:
    """A machine whose index follows every change, or none."""
    made = ActivatingWorld(tmp_path)
    made.publish([OWN, REFERENCE], commit="c2", seq=2)
    made.build()
    made.follows = request.param
    yield made
    made.close()


def said(answer: ActivateAnswer) -> dict[str, str]:
    return {fragment.unit_key: fragment.action for fragment in answer.fragments}


def gone(answer: ActivateAnswer) -> list[str]:
    return sorted(unit.unit_key for unit in answer.removed)


def after(world: ActivatingWorld, body: str, path: str = "own.md") -> None:
    """Publish the own document anew."""
    world.publish([published("mem_own", path, body), REFERENCE], commit=f"c{world.now}", seq=world.now)
    if world.follows:
        world.build()


@pytest.mark.requirement("activate.delta.stories")
def test_an_edited_section_is_replaced_and_its_neighbour_reused(world: ActivatingWorld) -> None:
    first = world.ask("mem_own")
    assert said(first) == {ROOT: "add", BACKUPS: "add"}
    after(world, BODY.replace("run at two", "run at three"))
    second = world.ask("mem_own", first.next_state)
    assert said(second) == {ROOT: "reuse", BACKUPS: "replace"}
    assert gone(second) == []


@pytest.mark.requirement("activate.delta.stories")
def test_a_description_that_alone_was_edited_is_replaced(world: ActivatingWorld) -> None:
    description, state = "mem_own/@description/0/0", None
    for text, action in (
        ("Where the kumquat cluster runs.", "add"),
        ("Who owns the cluster, today.", "replace"),
    ):
        own = published("mem_own", "own.md", "# Kumquat\n", description=text)
        world.publish([own, REFERENCE], commit=f"c{world.now}", seq=world.now)
        if world.follows:
            world.build()
        answer = world.ask("mem_own", state)
        fragment = next(each for each in answer.fragments if each.unit_key == description)
        assert (fragment.action, fragment.content) == (action, text)
        state = answer.next_state


@pytest.mark.requirement("activate.delta.stories")
def test_a_renamed_document_is_reused_under_its_new_path(world: ActivatingWorld) -> None:
    first = world.ask("mem_own")
    after(world, BODY, path="moved/kumquat.md")
    second = world.ask("mem_own", first.next_state)
    assert said(second) == {ROOT: "reuse", BACKUPS: "reuse"}
    assert {fragment.path for fragment in second.fragments} == {"moved/kumquat.md"}
    assert gone(second) == []


@pytest.mark.requirement("activate.delta.stories")
@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("## Backups", "## Copies", "mem_own/kumquat/copies/0/0"),
        ("## Backups", "# Backups", "mem_own/backups/0/0"),
    ],
    ids=["renamed", "moved to another level"],
)
def test_a_heading_that_moves_takes_its_unit_along(
    world: ActivatingWorld, old: str, new: str, key: str
) -> None:
    first = world.ask("mem_own")
    after(world, BODY.replace(old, new))
    second = world.ask("mem_own", first.next_state)
    assert said(second) == {ROOT: "reuse", key: "add"}
    assert gone(second) == [BACKUPS]


@pytest.mark.requirement("activate.delta.stories")
def test_of_two_sections_of_one_name_the_second_takes_the_place_of_the_first(world: ActivatingWorld) -> None:
    first_text, second_text = f"The first kumquat section. {LONG}", f"The second kumquat section. {LONG}"
    after(world, f"# Kumquat\n\n## Backups\n\n{first_text}\n\n## Backups\n\n{second_text}\n")
    first = world.ask("mem_own")
    twin = "mem_own/kumquat/backups/1/0"
    assert said(first) == {BACKUPS: "add", twin: "add"}
    after(world, f"# Kumquat\n\n## Backups\n\n{second_text}\n")
    second = world.ask("mem_own", first.next_state)
    assert said(second) == {BACKUPS: "replace"}
    assert second.fragments[0].content == second_text.strip()
    assert gone(second) == [twin]


@pytest.mark.requirement("activate.delta.stories")
def test_a_deleted_document_is_removed_even_when_another_is_asked_for(world: ActivatingWorld) -> None:
    first = world.ask("mem_own")
    world.delete("mem_own")
    if world.follows:
        world.build()
    second = world.ask("mem_ref", first.next_state)
    assert gone(second) == sorted([ROOT, BACKUPS])
    assert {unit.resource_id for unit in second.removed} == {"mem_own"}
    assert gone(world.ask("mem_ref", second.next_state)) == [], "said once"


@pytest.mark.requirement("activate.delta.stories")
def test_an_adapted_source_is_removed_and_comes_back_with_the_end_of_its_adaptation(
    world: ActivatingWorld,
) -> None:
    first = world.ask("mem_ref")
    (source,) = (key for key in said(first) if key.startswith("mem_ref"))
    adapted = world.update("mem_ref", "at dusk", "at dawn")
    if world.follows:
        world.build()
    second = world.ask("lantern", first.next_state)
    assert gone(second) == [source]
    adaptation = next(key for key in said(second) if key.startswith(adapted.resource_id))
    assert said(second)[adaptation] == "add"
    world.discard(adapted.resource_id)
    if world.follows:
        world.build()
    third = world.ask("lantern", second.next_state)
    assert gone(third) == [adaptation]
    assert said(third)[source] == "add", "what was named as removed is sent again"


@pytest.mark.requirement("activate.delta.stories")
def test_a_reference_that_was_given_up_and_taken_again_is_removed_and_sent_again(
    world: ActivatingWorld,
) -> None:
    first = world.ask("mem_ref")
    world.publish([OWN], commit="c3", seq=3)
    second = world.ask("mem_own", first.next_state)
    assert {unit.resource_id for unit in second.removed} == {"mem_ref"}
    world.publish([OWN, REFERENCE], commit="c4", seq=4)
    third = world.ask("mem_ref", second.next_state)
    assert {said(third)[key] for key in said(third) if key.startswith("mem_ref")} == {"add"}


@pytest.mark.requirement("activate.delta.stories")
def test_after_a_lost_access_no_earlier_state_is_good(world: ActivatingWorld) -> None:
    state = world.ask("mem_own").next_state
    world.revoke()
    with pytest.raises(InterleafError) as lost:
        world.ask("mem_own", state)
    assert lost.value.code is ErrorCode.PROJECT_ACCESS_LOST
    world.publish([OWN, REFERENCE], commit="c3", seq=3)
    world.build()
    with pytest.raises(InterleafError) as invalid:
        world.ask("mem_own", state)
    assert invalid.value.code is ErrorCode.INVALID_ACTIVATION_STATE
    assert said(world.ask("mem_own")) == {ROOT: "add", BACKUPS: "add"}


@pytest.mark.requirement("activate.delta.stories")
def test_a_state_that_could_not_be_written_is_gone_with_the_access_too(
    world: ActivatingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise InterleafError(ErrorCode.STORAGE_FULL)

    with monkeypatch.context() as patch:
        patch.setattr(world.store, "write", full)
        state = world.ask("mem_own").next_state
    assert set(said(world.ask("mem_own", state)).values()) == {"reuse"}, "held in memory"
    world.revoke()
    world.publish([OWN, REFERENCE], commit="c3", seq=3)
    world.build()
    with pytest.raises(InterleafError) as invalid:
        world.ask("mem_own", state)
    assert invalid.value.code is ErrorCode.INVALID_ACTIVATION_STATE


@pytest.mark.requirement("activate.delta.stories")
def test_units_that_another_release_cuts_otherwise_are_removed(
    world: ActivatingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "# Short\n\nA kumquat.\n\n# Other\n\nA lantern.\n"
    after(world, body)
    first = world.ask("mem_own")
    assert said(first) == {"mem_own/short/0/0": "add"}, "short neighbours are one unit"
    monkeypatch.setattr(chunking, "_SHORT_TOKENS", 0)
    monkeypatch.setattr(chunking, "CHUNKER_VERSION", 2)
    monkeypatch.setattr(manifest, "CHUNKER_VERSION", 2)
    world.open_index()
    with pytest.raises(InterleafError) as preparing:
        world.ask("mem_own", first.next_state)
    assert preparing.value.code is ErrorCode.SEARCH_INDEX_PREPARING
    world.build()
    second = world.ask("mem_own", first.next_state)
    assert said(second) == {"mem_own/short/0/0": "replace", "mem_own/other/0/0": "add"}
    monkeypatch.undo()
    world.open_index()
    world.build()
    third = world.ask("mem_own", second.next_state)
    assert said(third) == {"mem_own/short/0/0": "replace"}
    assert gone(third) == ["mem_own/other/0/0"]


@pytest.mark.requirement("activate.delta.forks")
def test_two_conversations_that_go_on_from_one_state_do_not_disturb_each_other(
    world: ActivatingWorld,
) -> None:
    root = world.ask("mem_own").next_state
    left = world.ask("mem_ref", root)
    after(world, BODY.replace("run at two", "run at three"))
    right = world.ask("mem_own", root)
    assert said(right) == {ROOT: "reuse", BACKUPS: "replace"}
    again = world.ask("mem_own", root)
    assert said(again) == said(right), "a state stays what it was"
    assert said(world.ask("mem_own", left.next_state))[BACKUPS] == "replace"
    assert said(world.ask("mem_own", right.next_state))[BACKUPS] == "reuse"


@pytest.mark.requirement("activate.state.bound")
def test_a_state_of_another_project_or_of_nobody_is_refused_and_changes_nothing(
    world: ActivatingWorld,
) -> None:
    state = world.ask("mem_own").next_state
    world.publish([OWN], commit="x1", seq=1, project_id="prj_2")
    for project, token in (("prj_2", state), (PROJECT, state[::-1]), (PROJECT, "sta_000001")):
        with pytest.raises(InterleafError) as invalid:
            world.ask("mem_own", token, project)
        assert invalid.value.code is ErrorCode.INVALID_ACTIVATION_STATE
    assert set(said(world.ask("mem_own", state)).values()) == {"reuse"}
