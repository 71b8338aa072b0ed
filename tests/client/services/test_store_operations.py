"""Every row of the table of store operations: which Draft a write goes to, and what it shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shared_schema import tool_contract
from shared_schema.daemon_contract import DraftEditCall
from shared_schema.drafts import DraftStatus, OperationKind
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import ABSENT, OrgSource, Provenance, Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.sync_status import SyncStatus
from shared_schema.tool_contract import Load
from tests.client.local_world import COMMIT, ORG_COMMIT, OWN, PROJECT, REFERENCE, LocalWorld, published


@pytest.mark.requirement("store.create")
def test_create_makes_a_project_draft_that_is_queued_and_visible_at_once(world: LocalWorld) -> None:
    answer = world.create("guides/release.md", "# Release\n", description="how")

    assert (answer.queued, answer.sync_status) == (True, SyncStatus.QUEUED)
    assert (answer.path, answer.content_hash) == ("guides/release.md", content_hash("# Release\n"))
    item = world.item(answer.resource_id)
    assert (item.scope, item.provenance, item.title, item.description) == (
        Scope.PROJECT,
        Provenance.DRAFT,
        "Release",
        "how",
    )
    draft = world.draft(answer.draft_id)
    assert (draft.scope, draft.base, draft.base_commit, draft.org_source) == (
        Scope.PROJECT,
        ABSENT,
        COMMIT,
        None,
    )
    assert [operation.kind for operation in draft.operations] == [OperationKind.CREATE]
    assert [row.operation_id for row in world.outbox()] == [answer.local_operation_id]
    assert world.woken == [PROJECT]


@pytest.mark.requirement("store.update.project")
def test_update_of_a_project_resource_makes_a_draft_on_its_published_state(world: LocalWorld) -> None:
    answer = world.update("mem_own", "beta", "BETA")

    assert (answer.resource_id, answer.path, answer.adapts) == ("mem_own", "own.md", None)
    draft = world.draft(answer.draft_id)
    assert (draft.scope, draft.base, draft.base_commit) == (Scope.PROJECT, OWN.state(), COMMIT)
    assert world.item("mem_own").body == "# Own\n\nalpha BETA gamma\n"
    assert world.item("mem_own").description == "ours"
    assert answer.content_hash == world.item("mem_own").content_hash


@pytest.mark.requirement("store.rename.project")
def test_rename_of_a_project_resource_keeps_its_id_and_text(world: LocalWorld) -> None:
    answer = world.rename("mem_own", "guides/own.md", description="moved")

    item = world.item("mem_own")
    assert (answer.path, item.path, item.body, item.description) == (
        "guides/own.md",
        "guides/own.md",
        OWN.body,
        "moved",
    )


@pytest.mark.requirement("store.one_draft")
def test_a_further_operation_is_appended_to_the_open_draft(world: LocalWorld) -> None:
    first = world.update("mem_own", "beta", "BETA")
    second = world.rename("mem_own", "other.md")
    third = world.update("mem_own", "BETA", "delta", expected_hash=first.content_hash)

    assert first.draft_id == second.draft_id == third.draft_id
    draft = world.draft(first.draft_id)
    assert [(item.ordinal, item.kind.value) for item in draft.operations] == [
        (1, "update"),
        (2, "rename"),
        (3, "update"),
    ]
    assert world.item("mem_own").path == "other.md"
    assert world.item("mem_own").body == "# Own\n\nalpha delta gamma\n"


@pytest.mark.requirement("store.one_draft")
def test_an_operation_on_a_submitted_draft_is_appended_to_it(world: LocalWorld) -> None:
    first = world.update("mem_own", "beta", "BETA")
    world.set_draft(replace(world.draft(first.draft_id), status=DraftStatus.SUBMITTED, review_id="rev_1"))

    second = world.update("mem_own", "BETA", "delta")

    assert second.draft_id == first.draft_id
    assert world.draft(first.draft_id).status is DraftStatus.SUBMITTED


@pytest.mark.requirement("store.adaptation")
@pytest.mark.parametrize("change", ["update", "rename"])
def test_a_change_of_an_org_reference_becomes_an_adaptation(world: LocalWorld, change: str) -> None:
    if change == "update":
        answer = world.update("mem_ref", "beta", "BETA")
    else:
        answer = world.rename("mem_ref", "ours/ref.md")

    assert answer.adapts == "mem_ref"
    assert answer.resource_id != "mem_ref"
    item = world.item(answer.resource_id)
    source = OrgSource(resource_id="mem_ref", commit_id=ORG_COMMIT)
    assert (item.scope, item.org_source, item.description) == (Scope.PROJECT, source, "org")
    assert item.path == ("ref.md" if change == "update" else "ours/ref.md")
    draft = world.draft(answer.draft_id)
    assert (draft.scope, draft.base, draft.base_commit, draft.org_source) == (
        Scope.PROJECT,
        ABSENT,
        COMMIT,
        source,
    )
    assert [operation.kind for operation in draft.operations] == [OperationKind.CREATE]


@pytest.mark.requirement("store.adaptation.hides")
@pytest.mark.parametrize("operation", ["load", "update", "rename", "delete"])
def test_an_adapted_org_id_is_hidden_and_its_adaptation_named(world: LocalWorld, operation: str) -> None:
    adapted = world.update("mem_ref", "beta", "BETA").resource_id
    actions: dict[str, Any] = {
        "load": lambda: world.load(PROJECT, Load(ids=["mem_ref"])),
        "update": lambda: world.update("mem_ref", "a", "b", expected_hash=REFERENCE.content_hash),
        "rename": lambda: world.rename("mem_ref", "x.md"),
        "delete": lambda: world.delete("mem_ref"),
    }

    with pytest.raises(InterleafError) as refused:
        actions[operation]()

    assert refused.value.code is ErrorCode.MEMORY_RESOURCE_NOT_FOUND
    assert refused.value.details["adapted_by"] == adapted
    assert refused.value.details["missing"] == ["mem_ref"]


@pytest.mark.requirement("store.adaptation")
def test_a_second_change_of_an_adaptation_goes_to_the_same_draft_and_names_no_source(
    world: LocalWorld,
) -> None:
    first = world.update("mem_ref", "beta", "BETA")
    second = world.update(first.resource_id, "BETA", "delta")

    assert (second.draft_id, second.resource_id, second.adapts) == (first.draft_id, first.resource_id, None)


@pytest.mark.requirement("store.update.created")
def test_update_and_rename_of_an_unpublished_resource_are_appended_to_its_create_draft(
    world: LocalWorld,
) -> None:
    created = world.create("a.md", "# A\n\none\n")
    world.update(created.resource_id, "one", "two")
    world.rename(created.resource_id, "b.md")

    draft = world.draft(created.draft_id)
    assert [operation.kind.value for operation in draft.operations] == ["create", "update", "rename"]
    assert (world.item(created.resource_id).path, world.item(created.resource_id).body) == (
        "b.md",
        "# A\n\ntwo\n",
    )


@pytest.mark.requirement("store.org_draft")
@pytest.mark.parametrize("operation", ["update", "rename", "delete"])
def test_an_open_org_draft_keeps_its_org_target(world: LocalWorld, operation: str) -> None:
    proposed = world.edit.edit(
        DraftEditCall(
            project=PROJECT, resource="mem_ref", scope=Scope.ORG, body="# Reference\n\nfor all beta\n"
        )
    )
    actions: dict[str, Any] = {
        "update": lambda: world.update("mem_ref", "beta", "delta"),
        "rename": lambda: world.rename("mem_ref", "renamed.md"),
        "delete": lambda: world.delete("mem_ref"),
    }

    answer = actions[operation]()

    assert (answer.draft_id, answer.resource_id, answer.adapts) == (proposed.draft_id, "mem_ref", None)
    draft = world.draft(proposed.draft_id)
    assert (draft.scope, draft.base_commit, draft.base) == (Scope.ORG, ORG_COMMIT, REFERENCE.state())
    assert draft.operations[-1].kind.value == operation


@pytest.mark.requirement("store.delete.project")
def test_delete_of_a_project_resource_is_a_draft_kept_for_review(world: LocalWorld) -> None:
    answer = world.delete("mem_own")

    assert (answer.queued, answer.path, answer.content_hash) == (True, None, None)
    assert "mem_own" not in world.shown().by_id
    draft = world.draft(answer.draft_id)
    assert (draft.status, draft.base) == (DraftStatus.OPEN, OWN.state())
    assert [operation.kind for operation in draft.operations] == [OperationKind.DELETE]


@pytest.mark.requirement("store.delete.created")
def test_delete_of_an_unpublished_resource_discards_its_draft(world: LocalWorld) -> None:
    created = world.create("a.md")

    answer = world.delete(created.resource_id)

    assert (answer.draft_id, answer.queued, answer.sync_status) == (
        created.draft_id,
        False,
        SyncStatus.SYNCED,
    )
    assert world.draft(created.draft_id).status is DraftStatus.DISCARDED
    assert created.resource_id not in world.shown().by_id
    assert world.outbox() == []


@pytest.mark.requirement("store.delete.created")
def test_delete_of_an_unpublished_adaptation_brings_its_source_back(world: LocalWorld) -> None:
    adapted = world.update("mem_ref", "beta", "BETA")

    world.delete(adapted.resource_id)

    assert world.item("mem_ref").body == REFERENCE.body
    assert world.shown().adapted_by == {}


@pytest.mark.requirement("store.delete.reference")
def test_delete_of_an_org_reference_is_refused(world: LocalWorld) -> None:
    before = world.dump()

    with pytest.raises(InterleafError) as refused:
        world.delete("mem_ref")

    assert refused.value.code is ErrorCode.ORG_REFERENCE_NOT_DELETABLE
    assert world.dump() == before


@pytest.mark.requirement("store.discard")
@pytest.mark.parametrize("by", ["draft_id", "resource_id"])
def test_discard_by_either_id_ends_the_draft_and_shows_what_is_published(world: LocalWorld, by: str) -> None:
    edited = world.update("mem_own", "beta", "BETA")

    answer = world.discard(getattr(edited, by))

    assert (answer.draft_id, answer.resource_id) == (edited.draft_id, "mem_own")
    assert world.draft(edited.draft_id).status is DraftStatus.DISCARDED
    assert world.item("mem_own").body == OWN.body
    assert world.item("mem_own").provenance is Provenance.AUTHORITY


@pytest.mark.requirement("store.discard.unsent")
def test_a_discard_cancels_what_was_never_sent_and_uploads_nothing(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    world.rename("mem_own", "b.md")

    answer = world.discard(edited.draft_id)

    assert (answer.queued, answer.sync_status) == (False, SyncStatus.SYNCED)
    assert world.outbox() == []


@pytest.mark.requirement("store.discard.sent")
def test_a_discard_of_a_sent_draft_is_uploaded_without_its_unsent_operations(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    world.send()
    renamed = world.rename("mem_own", "b.md")

    answer = world.discard(edited.draft_id)

    assert (answer.queued, answer.sync_status) == (True, SyncStatus.QUEUED)
    draft = world.draft(edited.draft_id)
    assert [(item.ordinal, item.kind.value) for item in draft.operations] == [(1, "update"), (2, "discard")]
    assert [row.operation_id for row in world.outbox()] == [
        edited.local_operation_id,
        answer.local_operation_id,
    ]
    assert renamed.local_operation_id not in {row.operation_id for row in world.outbox()}


@pytest.mark.requirement("store.discard.unsent")
def test_a_draft_that_the_server_refused_from_the_start_is_discarded_here_alone(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    row = world.outbox()[0]
    with world.store.write() as uow:
        uow.outbox.put(replace(row, sync_status=SyncStatus.FAILED, sent=True, attempts=1))

    assert world.discard(edited.draft_id).queued is False
    assert world.outbox() == []


@pytest.mark.requirement("store.discard.sent")
@pytest.mark.parametrize("status", [SyncStatus.SYNCING, SyncStatus.RETRYING])
def test_an_operation_with_an_unknown_outcome_counts_as_sent(world: LocalWorld, status: SyncStatus) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    with world.store.write() as uow:
        uow.outbox.claim([edited.local_operation_id], "lease", 1)
        uow.outbox.put(replace(uow.outbox.leased("lease")[0], sync_status=status, lease=None))

    assert world.discard(edited.draft_id).queued is True
    assert len(world.outbox()) == 2


@pytest.mark.requirement("store.discard")
def test_a_discarded_draft_cannot_be_discarded_again_and_the_next_write_makes_another(
    world: LocalWorld,
) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    world.discard(edited.draft_id)

    with pytest.raises(InterleafError) as refused:
        world.discard(edited.draft_id)
    assert refused.value.code is ErrorCode.DRAFT_NOT_OPEN
    with pytest.raises(InterleafError) as unknown:
        world.discard("mem_own")
    assert unknown.value.code is ErrorCode.DRAFT_NOT_FOUND
    assert world.update("mem_own", "beta", "BETA").draft_id != edited.draft_id


@pytest.mark.requirement("store.discard")
def test_a_draft_of_another_project_is_not_found(world: LocalWorld) -> None:
    world.publish([published("mem_b", "b.md")], commit="x", seq=1, project_id="prj_2")
    edited = world.update("mem_own", "beta", "BETA")

    with pytest.raises(InterleafError) as refused:
        world.save("prj_2", tool_contract.Store(discard=tool_contract.Discard(id=edited.draft_id)))
    assert refused.value.code is ErrorCode.DRAFT_NOT_FOUND


@pytest.mark.requirement("domain.overlay.until_contained")
def test_a_write_on_a_merged_draft_that_is_not_pulled_yet_starts_from_its_published_result(
    world: LocalWorld,
) -> None:
    first = world.update("mem_own", "beta", "BETA")
    merged = replace(world.draft(first.draft_id), status=DraftStatus.MERGED, merged_commit="c2", merged_seq=2)
    world.set_draft(merged)
    assert world.item("mem_own").body == "# Own\n\nalpha BETA gamma\n"

    second = world.update("mem_own", "BETA", "delta")

    draft = world.draft(second.draft_id)
    assert second.draft_id != first.draft_id
    assert (draft.base_commit, draft.base.body) == ("c2", "# Own\n\nalpha BETA gamma\n")


@pytest.mark.requirement("store.idempotent")
def test_a_repeated_operation_id_is_answered_alike_and_does_nothing(world: LocalWorld) -> None:
    request = tool_contract.Store(create=tool_contract.Create(path="a.md", body="# A\n"))
    first = world.save(PROJECT, request, "lop_mine")
    before = world.dump()

    assert world.save(PROJECT, request, "lop_mine") == first
    assert first.local_operation_id == "lop_mine"
    assert world.dump() == before


@pytest.mark.requirement("store.idempotent")
def test_an_operation_id_is_refused_for_another_request(world: LocalWorld) -> None:
    world.save(
        PROJECT, tool_contract.Store(create=tool_contract.Create(path="a.md", body="# A\n")), "lop_mine"
    )
    before = world.dump()

    with pytest.raises(InterleafError) as refused:
        world.save(
            PROJECT, tool_contract.Store(create=tool_contract.Create(path="b.md", body="# A\n")), "lop_mine"
        )

    assert refused.value.code is ErrorCode.IDEMPOTENCY_MISMATCH
    assert world.dump() == before
