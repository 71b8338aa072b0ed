"""A refused store says why in a stable code, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import text

from shared_schema import limits, tool_contract
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.hashing import content_hash
from tests.client.local_world import OWN, PROJECT, REFERENCE, LocalWorld, published

REFUSALS: dict[str, tuple[ErrorCode, Callable[[LocalWorld], object]]] = {
    "create on a taken path": (ErrorCode.PATH_OCCUPIED, lambda w: w.create("own.md")),
    "create on a path that differs by case": (ErrorCode.PATH_OCCUPIED, lambda w: w.create("OWN.md")),
    "create below a document": (ErrorCode.PATH_OCCUPIED, lambda w: w.create("own.md/part.md")),
    "create above a document": (ErrorCode.PATH_OCCUPIED, lambda w: w.create("folder")),
    "create on a draft's path": (ErrorCode.PATH_OCCUPIED, lambda w: w.create("folder/drafted.md")),
    "create on an impossible path": (ErrorCode.INVALID_PATH, lambda w: w.create("../x.md")),
    "create on an id": (ErrorCode.INVALID_PATH, lambda w: w.create("mem_own")),
    "create with a blank body": (ErrorCode.INVALID_ARGUMENTS, lambda w: w.create("a.md", " \n")),
    "create with a large body": (
        ErrorCode.INVALID_ARGUMENTS,
        lambda w: w.create("a.md", "x" * (limits.BODY_BYTES + 1)),
    ),
    "update with an older hash": (
        ErrorCode.MEMORY_CONTENT_CHANGED,
        lambda w: w.update("mem_own", "beta", "x", expected_hash=content_hash("older")),
    ),
    "update of a text that is not there": (
        ErrorCode.TEXT_REPLACEMENT_NOT_FOUND,
        lambda w: w.update("mem_own", "omega", "x"),
    ),
    "update of an ambiguous text": (
        ErrorCode.TEXT_REPLACEMENT_AMBIGUOUS,
        lambda w: w.update("mem_own", "a", "x"),
    ),
    "update without a change": (
        ErrorCode.TEXT_REPLACEMENT_NO_CHANGE,
        lambda w: w.update("mem_own", "beta", "beta"),
    ),
    "update that empties the text": (
        ErrorCode.INVALID_ARGUMENTS,
        lambda w: w.update("mem_own", OWN.body, ""),
    ),
    "update of an unknown id": (
        ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
        lambda w: w.update("mem_none", "a", "b", expected_hash="x"),
    ),
    "rename onto a taken path": (ErrorCode.PATH_OCCUPIED, lambda w: w.rename("mem_own", "ref.md")),
    "rename to the same path": (
        ErrorCode.TEXT_REPLACEMENT_NO_CHANGE,
        lambda w: w.rename("mem_own", "own.md"),
    ),
    "rename of a reference onto a taken path": (
        ErrorCode.PATH_OCCUPIED,
        lambda w: w.rename("mem_ref", "own.md"),
    ),
    "delete of an org reference": (ErrorCode.ORG_REFERENCE_NOT_DELETABLE, lambda w: w.delete("mem_ref")),
    "delete by path": (ErrorCode.MEMORY_RESOURCE_NOT_FOUND, lambda w: w.delete("own.md")),
    "discard of nothing": (ErrorCode.DRAFT_NOT_FOUND, lambda w: w.discard("mem_own")),
    "discard of an unknown draft": (ErrorCode.DRAFT_NOT_FOUND, lambda w: w.discard("drf_none")),
}


@pytest.mark.requirement("store.refused.no_trace")
@pytest.mark.parametrize("case", REFUSALS)
def test_a_refused_store_leaves_every_table_as_it_was(world: LocalWorld, case: str) -> None:
    world.create("folder/drafted.md")
    world.woken.clear()
    before, shown = world.dump(), world.shown()
    code, attempt = REFUSALS[case]

    with pytest.raises(InterleafError) as refused:
        attempt(world)

    assert refused.value.code is code
    assert world.dump() == before
    assert world.shown() == shown == world.projected_anew()
    assert world.woken == []


@pytest.mark.requirement("store.content_changed")
def test_a_stale_update_names_the_current_hash(world: LocalWorld) -> None:
    with pytest.raises(InterleafError) as refused:
        world.update("mem_own", "beta", "x", expected_hash=content_hash("older"))
    assert refused.value.details["current_hash"] == OWN.content_hash


@pytest.mark.requirement("store.path_for_id")
def test_a_path_given_for_an_id_is_answered_with_the_id(world: LocalWorld) -> None:
    with pytest.raises(InterleafError) as refused:
        world.rename("own.md", "b.md")
    assert refused.value.details["resource_id"] == "mem_own"
    assert "mem_own" in refused.value.message


@pytest.mark.requirement("store.path_occupied")
def test_a_discard_is_refused_while_another_resource_has_the_path_that_would_come_back(
    world: LocalWorld,
) -> None:
    moved = world.rename("mem_own", "moved.md")
    newcomer = world.create("own.md")
    before = world.dump()

    with pytest.raises(InterleafError) as refused:
        world.discard(moved.draft_id)

    assert refused.value.code is ErrorCode.PATH_OCCUPIED
    assert refused.value.details == {"path": "own.md", "resource_id": newcomer.resource_id}
    assert world.dump() == before
    world.rename(newcomer.resource_id, "newcomer.md")
    world.discard(moved.draft_id)
    assert world.item("mem_own").path == "own.md"


@pytest.mark.requirement("store.path_occupied")
@pytest.mark.parametrize("leave", ["discard", "delete"])
def test_an_adaptation_cannot_leave_while_the_path_of_its_source_is_taken(
    world: LocalWorld, leave: str
) -> None:
    adapted = world.rename("mem_ref", "moved.md")
    world.create("ref.md")

    with pytest.raises(InterleafError) as refused:
        getattr(world, leave)(adapted.resource_id)

    assert refused.value.code is ErrorCode.PATH_OCCUPIED


@pytest.mark.requirement("store.path_occupied")
def test_a_published_adaptation_cannot_be_deleted_while_the_path_of_its_hidden_source_is_taken(
    world: LocalWorld,
) -> None:
    adaptation = published("mem_a", "moved.md", org_source=REFERENCE.org_source)
    world.publish([adaptation, REFERENCE], commit="c2", seq=2)
    world.create("ref.md")

    with pytest.raises(InterleafError) as refused:
        world.delete("mem_a")

    assert refused.value.code is ErrorCode.PATH_OCCUPIED


@pytest.mark.requirement("store.path_occupied")
def test_a_path_that_a_deletion_or_a_rename_left_is_free(world: LocalWorld) -> None:
    world.delete("mem_own")
    world.create("own.md")
    adapted = world.rename("mem_ref", "moved.md")
    world.create("ref.md")

    assert {item.path for item in world.shown().resources} == {"own.md", "moved.md", "ref.md"}
    assert world.item(adapted.resource_id).path == "moved.md"


@pytest.mark.requirement("store.path_occupied")
def test_a_rename_that_changes_only_letter_case_is_allowed(world: LocalWorld) -> None:
    assert world.rename("mem_own", "Own.md").path == "Own.md"
    assert world.rename("mem_ref", "Ref.md").path == "Ref.md"


@pytest.mark.requirement("store.access")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"access": False}, ErrorCode.PROJECT_ACCESS_LOST),
        ({"snapshot_at": None}, ErrorCode.PROJECT_NOT_SYNCED),
    ],
)
def test_a_project_that_cannot_be_read_cannot_be_written(
    world: LocalWorld, change: dict[str, bool | None], code: ErrorCode
) -> None:
    with world.store.write() as uow:
        row = uow.projects.get(PROJECT)
        assert row is not None
        uow.projects.put(replace(row, **change))
        uow.touch(PROJECT)
    before = world.dump()

    for attempt in (lambda: world.create("a.md"), lambda: world.discard("mem_own"), world.shown):
        with pytest.raises(InterleafError) as refused:
            attempt()
        assert refused.value.code is code
    assert world.dump() == before


def test_an_unknown_project_is_not_found(world: LocalWorld) -> None:
    with pytest.raises(InterleafError) as refused:
        world.save("prj_none", tool_contract.Store(create=tool_contract.Create(path="a.md", body="x")))
    assert refused.value.code is ErrorCode.NOT_FOUND


@pytest.mark.requirement("domain.broken_draft")
def test_a_draft_that_cannot_be_read_is_left_out_and_can_only_be_discarded(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    other = world.create("a.md")
    with world.store.write() as uow:
        uow.connection.execute(
            text("UPDATE operation SET payload = '{}' WHERE operation_id = :id"),
            {"id": edited.local_operation_id},
        )
        uow.touch(PROJECT, {"mem_own"})

    assert world.shown().broken_drafts == (edited.draft_id,)
    assert world.item("mem_own").body == OWN.body
    assert other.resource_id in world.shown().by_id
    with pytest.raises(InterleafError) as refused:
        world.update("mem_own", "beta", "BETA")
    assert refused.value.code is ErrorCode.DRAFT_NOT_OPEN
    world.discard(edited.draft_id)
    assert world.shown().broken_drafts == ()
    world.update("mem_own", "beta", "BETA")


def test_a_proposal_that_is_not_shown_keeps_a_store_from_its_resource(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    world.set_draft(replace(world.draft(edited.draft_id), overlay=False))
    assert world.item("mem_own").body == OWN.body

    with pytest.raises(InterleafError) as refused:
        world.update("mem_own", "beta", "delta")

    assert refused.value.code is ErrorCode.ALREADY_EXISTS
    assert refused.value.details == {"draft_id": edited.draft_id}


def test_a_discard_gives_way_when_the_source_of_an_adaptation_is_hidden_by_another(world: LocalWorld) -> None:
    adapted = world.update("mem_ref", "beta", "BETA")
    source = world.item(adapted.resource_id).org_source
    with world.store.write() as uow:
        uow.published.put_many(PROJECT, [published("mem_theirs", "theirs.md", org_source=source)])
        uow.touch(PROJECT, {"mem_theirs"})
    assert world.shown().adapted_by == {"mem_ref": adapted.resource_id}

    world.discard(adapted.resource_id)

    assert world.shown().adapted_by == {"mem_ref": "mem_theirs"}
    assert "mem_ref" not in world.shown().by_id
    assert world.shown() == world.projected_anew()
