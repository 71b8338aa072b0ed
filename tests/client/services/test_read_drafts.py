from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from shared_schema.daemon_contract import DraftCall, DraftEditCall, DraftListCall
from shared_schema.drafts import DraftStatus, Freshness, Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import ABSENT, OrgSource, Scope
from shared_schema.sync_status import SyncStatus
from tests.client.local_world import OWN, PROJECT, REFERENCE, LocalWorld, published


@pytest.mark.requirement("drafts.list")
def test_the_list_shows_how_each_active_draft_stands(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    adapted = world.update("mem_ref", "beta", "BETA")
    gone = world.create("a.md")
    world.discard(gone.draft_id)

    first, second = world.drafts.list(DraftListCall(project="Alpha")).drafts

    assert (first.id, first.path, first.adapts) == (edited.draft_id, "own.md", None)
    assert (second.id, second.path, second.adapts) == (adapted.draft_id, "ref.md", "mem_ref")
    assert (first.status, first.freshness, first.reconciliation, first.sync_status, first.operations) == (
        DraftStatus.OPEN,
        Freshness.CURRENT,
        Reconciliation.UNKNOWN,
        SyncStatus.QUEUED,
        1,
    )
    everything = world.drafts.list(DraftListCall(all=True)).drafts
    assert [(draft.id, draft.status.value, draft.path) for draft in everything][-1] == (
        gone.draft_id,
        "discarded",
        "a.md",
    )


@pytest.mark.requirement("drafts.dimensions")
def test_freshness_follows_the_target_authority_and_nothing_else(world: LocalWorld) -> None:
    world.update("mem_own", "beta", "BETA")
    world.edit.edit(DraftEditCall(project=PROJECT, resource="mem_ref", scope=Scope.ORG, body="# x\n"))

    def freshness() -> list[Freshness]:
        return [draft.freshness for draft in world.drafts.list(DraftListCall()).drafts]

    assert freshness() == [Freshness.CURRENT, Freshness.CURRENT]
    world.publish([OWN, REFERENCE], commit="c2", seq=2)
    assert freshness() == [Freshness.BEHIND, Freshness.CURRENT]
    newer = OrgSource(resource_id="mem_ref", commit_id="o2")
    world.publish(
        [OWN, published("mem_ref", "ref.md", "# y\n", scope=Scope.ORG, org_source=newer)], commit="c3", seq=3
    )
    assert freshness() == [Freshness.BEHIND, Freshness.BEHIND]


@pytest.mark.requirement("drafts.list")
@pytest.mark.parametrize(
    "least", [SyncStatus.FAILED, SyncStatus.RETRYING, SyncStatus.SYNCING, SyncStatus.QUEUED]
)
def test_the_sync_state_of_a_draft_is_that_of_its_least_advanced_operation(
    world: LocalWorld, least: SyncStatus
) -> None:
    first = world.update("mem_own", "beta", "BETA")
    world.send()
    world.rename("mem_own", "b.md")
    with world.store.write() as uow:
        row = uow.outbox.of_draft(first.draft_id)[1]
        uow.outbox.put(replace(row, sync_status=least))

    assert world.drafts.list(DraftListCall()).drafts[0].sync_status is least
    assert world.drafts.show(DraftCall(draft=first.draft_id)).draft.sync_status is least


@pytest.mark.requirement("drafts.show")
def test_a_draft_is_shown_with_its_states_and_the_difference(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    moved = published("mem_own", "own.md", "# Own\n\nmoved\n", description="ours")
    world.publish([moved, REFERENCE], commit="c2", seq=2)
    world.set_draft(
        replace(world.draft(edited.draft_id), reconciliation=Reconciliation.CONFLICTS, conflicts=("content",))
    )

    for name in (edited.draft_id, "mem_own", "own.md"):
        detail = world.drafts.show(DraftCall(draft=name))
        assert detail.draft.id == edited.draft_id
        assert (detail.base, detail.current) == (OWN.state(), moved.state())
        assert detail.state.body == "# Own\n\nalpha BETA gamma\n"
        assert detail.conflicts == ["content"]
        assert "-alpha beta gamma\n+alpha BETA gamma\n" in detail.diff


@pytest.mark.requirement("drafts.show")
def test_a_discarded_draft_still_shows_what_it_said(world: LocalWorld) -> None:
    created = world.create("a.md", "# A\n")
    world.discard(created.draft_id)

    detail = world.drafts.show(DraftCall(draft=created.draft_id))

    assert (detail.base, detail.state.body, detail.current) == (ABSENT, "# A\n", ABSENT)
    assert detail.diff == "--- /dev/null\n+++ a.md\n@@ -0,0 +1,1 @@\n+# A\n"


def test_a_draft_that_cannot_be_read_is_listed_and_shows_its_base(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    with world.store.write() as uow:
        uow.connection.execute(text("UPDATE operation SET payload = 'x'"))

    assert world.drafts.list(DraftListCall()).drafts[0].operations == 1
    assert world.drafts.show(DraftCall(draft=edited.draft_id)).state == OWN.state()


@pytest.mark.parametrize("name", ["drf_none", "mem_own", "own.md"])
def test_what_is_no_draft_is_not_found(world: LocalWorld, name: str) -> None:
    with pytest.raises(InterleafError) as refused:
        world.drafts.show(DraftCall(draft=name, project=PROJECT))
    assert refused.value.code is ErrorCode.DRAFT_NOT_FOUND


def test_a_draft_of_another_project_is_not_shown(world: LocalWorld) -> None:
    world.publish([], commit="x", seq=1, project_id="prj_2")
    edited = world.update("mem_own", "beta", "BETA")
    with pytest.raises(InterleafError):
        world.drafts.show(DraftCall(draft=edited.draft_id, project="prj_2"))
    assert world.drafts.list(DraftListCall(project="prj_2")).drafts == []
