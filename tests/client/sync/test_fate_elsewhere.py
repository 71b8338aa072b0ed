"""What becomes of acknowledged work when a Draft's fate was decided elsewhere, or forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from client.sync import deliveries
from shared_schema.drafts import DraftStatus, OperationKind
from shared_schema.sync_status import ParkingCause, SyncStatus
from tests.client.sync.restoring import restore, tables
from tests.client.sync_world import Machine, merge, uploaded
from tests.org_server.harness import Published, Server

BODY = "# A\n\none\n\ntwo\n\nthree\n"


@pytest.fixture
def project(org: Server, machine: Machine) -> str:
    project_id = org.project(org.ada)
    machine.settle()
    return project_id


@pytest.mark.requirement("sync.fate.published")
def test_what_is_written_while_a_review_publishes_goes_on_in_a_draft_of_its_own(
    org: Server, machine: Machine, project: str
) -> None:
    draft = machine.create(project, "a.md", "# 1\n")
    machine.settle()
    merge(org.ada, project, [draft.draft_id])
    later = machine.append(draft.draft_id, kind=OperationKind.UPDATE, body="# 1\n\nmore\n")
    moved = machine.append(draft.draft_id, kind=OperationKind.RENAME, path="b.md")
    machine.settle()
    assert machine.draft(draft.draft_id).status is DraftStatus.MERGED
    with machine.store.read() as uow:
        successor = uow.drafts.active_of(project, draft.resource_id)
    assert successor is not None
    assert uploaded(org, [successor.draft_id])[successor.draft_id] == [later, moved]
    assert machine.statuses(successor.draft_id) == ["synced", "synced"]
    assert [(each.path, each.body) for each in machine.effective(project).values()] == [
        ("b.md", "# 1\n\nmore\n")
    ]
    merge(org.ada, project, [successor.draft_id])
    machine.settle()
    assert machine.bodies(project) == {"b.md": "# 1\n\nmore\n"}


@pytest.mark.requirement("sync.fate.published")
def test_a_discard_that_came_after_the_publication_takes_only_itself_back(
    org: Server, machine: Machine, project: str
) -> None:
    draft = machine.create(project, "a.md", "# 1\n")
    machine.settle()
    merge(org.ada, project, [draft.draft_id])
    with machine.store.write() as uow:
        found = uow.drafts.get(draft.draft_id)
        assert found is not None
    machine.append(draft.draft_id, kind=OperationKind.UPDATE, body="# 2\n")
    machine.append(draft.draft_id, kind=OperationKind.DISCARD)
    machine.settle()
    assert machine.statuses(draft.draft_id) == ["synced"]
    assert machine.bodies(project) == {"a.md": "# 1\n"}


@pytest.mark.requirement("sync.fate.discarded-elsewhere")
def test_what_was_written_to_a_draft_that_ended_elsewhere_stays_to_read(
    org: Server, machine: Machine, project: str
) -> None:
    draft = machine.create(project, "a.md", "# 1\n")
    machine.settle()
    org.ada.ok("DELETE", f"/drafts/{draft.draft_id}")
    machine.append(draft.draft_id, kind=OperationKind.UPDATE, body="# precious\n")
    machine.settle()
    machine.step(3)
    assert machine.statuses(draft.draft_id) == ["synced", "failed"]
    assert [each.body for each in machine.draft(draft.draft_id).operations][-1] == "# precious\n"


@pytest.mark.requirement("sync.fate.access")
def test_a_draft_that_was_published_while_access_was_lost_is_known_when_it_returns(
    org: Server, machine: Machine, project: str
) -> None:
    ben = org.user("ben")
    joined = {"email": ben.email, "role": "member"}
    org.ada.ok("POST", f"/projects/{project}/members", json=joined)
    other = Machine(org, ben, machine.folder.parent / "ben")
    other.settle()
    draft = other.create(project, "a.md", "# 1\n")
    other.settle()
    review = ben.ok(
        "POST",
        "/reviews",
        json={"project_id": project, "scope": "project", "draft_ids": [draft.draft_id], "title": "t"},
    )["review"]["review_id"]
    other.settle()
    org.ada.ok("DELETE", f"/projects/{project}/members/{ben.user_id}")
    other.step()
    detail = org.ada.ok("GET", f"/reviews/{review}")
    org.ada.ok(
        "POST",
        f"/reviews/{review}/merges",
        json={"version": detail["review"]["version"]},
        headers={"If-Match": f'"{detail["ref"]["commit_id"] or "none"}"'},
    )
    other.step()
    later = other.append(draft.draft_id, kind=OperationKind.UPDATE, body="# 2\n")
    org.ada.ok("POST", f"/projects/{project}/members", json=joined)
    other.settle()
    assert other.draft(draft.draft_id).status is DraftStatus.MERGED
    with other.store.read() as uow:
        row = uow.outbox.get(later)
    assert row is not None
    assert row.sync_status is SyncStatus.SYNCED
    assert other.bodies(project) == {"a.md": "# 1\n"}


@pytest.mark.requirement("sync.fate.restored")
def test_work_on_commits_that_a_restore_lost_is_proposed_on_what_is_there(
    org: Server, machine: Machine, project: str
) -> None:
    org.publish(project, Published("a.md", BODY))
    machine.settle()
    backup = tables(org)
    org.publish(project, Published("b.md", "# B\n\none\n"))
    machine.settle()
    with machine.store.read() as uow:
        published = {each.path: each.resource_id for each in uow.published.all(project)}
    edited = machine.edit(project, published["a.md"], BODY.replace("two", "2"))
    orphan = machine.edit(project, published["b.md"], "# B\n\nmine\n")
    restore(org, backup)
    machine.settle()
    for draft in (edited, orphan):
        assert set(machine.statuses(draft.draft_id)) == {"synced"}
    shown = {state.path: state.body for state in machine.effective(project).values()}
    assert shown == {"a.md": BODY.replace("two", "2"), "b.md": "# B\n\nmine\n"}
    merge(org.ada, project, [edited.draft_id, orphan.draft_id])
    machine.settle()
    assert machine.bodies(project) == shown


@pytest.mark.requirement("sync.fate.restored")
def test_a_draft_half_of_which_the_restored_server_has_keeps_that_half(
    org: Server, machine: Machine, project: str
) -> None:
    org.publish(project, Published("a.md", BODY))
    machine.settle()
    with machine.store.read() as uow:
        resource = next(iter(uow.published.all(project))).resource_id
    draft = machine.edit(project, resource, BODY.replace("two", "2"))
    machine.settle()
    backup = tables(org)
    other = Machine(org, org.ada, machine.folder.parent / "other", seed=2)
    other.settle()
    theirs = other.edit(project, resource, BODY.replace("one", "1"))
    other.settle()
    merge(org.ada, project, [theirs.draft_id])
    machine.settle()
    assert [each.kind for each in machine.draft(draft.draft_id).operations][-1] is OperationKind.REBASE
    restore(org, backup)
    machine.settle()
    assert set(machine.statuses(draft.draft_id)) == {"synced"}
    # What another one had published was lost with the backup, and returns as their Draft, not in ours.
    assert machine.draft(draft.draft_id).state().body == BODY.replace("two", "2")


@pytest.mark.requirement("sync.fate.restored")
def test_a_draft_that_was_discarded_here_is_over_when_its_commit_is_lost(
    org: Server, machine: Machine, project: str
) -> None:
    backup = tables(org)
    org.publish(project, Published("a.md", BODY))
    machine.settle()
    with machine.store.read() as uow:
        resource = next(iter(uow.published.all(project))).resource_id
    draft = machine.edit(project, resource, "# mine\n")
    machine.settle()
    machine.append(draft.draft_id, kind=OperationKind.DISCARD)
    with machine.store.write() as uow:
        found = uow.drafts.get(draft.draft_id)
        assert found is not None
        uow.drafts.put(replace(found, status=DraftStatus.DISCARDED))
    restore(org, backup)
    machine.settle()
    assert "failed" not in machine.statuses(draft.draft_id)
    assert machine.waiting() == []


@pytest.mark.requirement("sync.fate.restored")
def test_an_adaptation_of_a_version_that_is_lost_is_one_of_the_version_that_is_there(
    org: Server, machine: Machine, project: str
) -> None:
    page = Published("g.md", BODY)
    org.publish(org.org_id, page)
    org.ada.put(f"/projects/{project}/org-selections", {"resource_ids": [page.resource_id]}, 0)
    machine.settle()
    backup = tables(org)
    newer = machine.edit(project, page.resource_id, BODY + "newer\n")
    machine.settle()
    merge(org.ada, project, [newer.draft_id], "org")
    machine.settle()
    draft = machine.adapt(project, page.resource_id, BODY + "ours\n")
    restore(org, backup)
    machine.settle()
    assert set(machine.statuses(draft.draft_id)) == {"synced"}
    assert machine.draft(draft.draft_id).org_source != draft.org_source
    merge(org.ada, project, [draft.draft_id])
    machine.settle()
    assert machine.bodies(project) == {"g.md": BODY + "ours\n"}


def test_operations_are_cancelled_at_the_same_place_more_than_once(machine: Machine, project: str) -> None:
    draft = machine.create(project, "a.md", "# 1\n")
    for number in range(3):
        name = machine.append(draft.draft_id, kind=OperationKind.UPDATE, body=f"# {number}\n")
        with machine.store.write() as uow:
            uow.outbox.remove([name])
            uow.drafts.cancel_operations([name])
    assert len(machine.draft(draft.draft_id).operations) == 1


def test_parked_work_goes_on_after_the_feed_was_lost(org: Server, machine: Machine, project: str) -> None:
    draft = machine.create(project, "a.md", "# 1\n")
    backup = tables(org)
    with machine.store.write() as uow:
        deliveries.park(uow, ParkingCause.ACCESS_LOST, deliveries.ACCESS_LOST, machine.clock(), project)
    restore(org, backup)
    machine.settle()
    assert machine.statuses(draft.draft_id) == ["synced"]
