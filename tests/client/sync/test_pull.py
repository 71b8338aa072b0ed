"""Published state, revocation, restores, rebases: what comes down, and what it does to Drafts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest
from sqlalchemy import text

from client.store.activations import ActivationStateRow
from client.sync.feed import apply_answer
from shared_schema.drafts import OperationKind
from shared_schema.org_contract import SyncAnswer
from shared_schema.sync_status import ParkingCause
from tests.client.sync.restoring import restore, tables
from tests.client.sync_world import Machine, drop_request, error, merge, uploaded
from tests.org_server.harness import Caller, Published, Server

BODY = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def project(org: Server) -> str:
    return org.project(org.ada)


@pytest.mark.requirement("sync.pull.no-flicker")
def test_memory_never_shows_the_former_text_between_push_and_pull_of_a_merge(
    org: Server, machine: Machine, project: str
) -> None:
    page = Published("a.md", BODY)
    org.publish(project, page)
    machine.settle()
    draft = machine.edit(project, page.resource_id, BODY + "six\n")
    machine.settle()
    merge(org.ada, project, [draft.draft_id])
    wanted = machine.effective(project)
    # The feed is read, the commits are not: the Draft is merged and still lies over the old text.
    machine.network.standing = lambda request: drop_request if "/commits" in request.url.path else None
    result = machine.step()
    assert list(result.projects_failing) == [project]
    assert machine.draft(draft.draft_id).status == "merged"
    assert machine.bodies(project) == {"a.md": BODY}
    assert machine.effective(project) == wanted
    machine.network.standing = lambda _request: None
    machine.step()
    assert machine.bodies(project) == {"a.md": BODY + "six\n"}
    assert machine.effective(project) == wanted


@pytest.mark.requirement("sync.pull.no-flicker")
def test_an_org_draft_overlays_until_the_project_s_own_commit_contains_it(
    org: Server, machine: Machine, project: str
) -> None:
    page = Published("org.md", BODY)
    org.publish(org.org_id, page)
    org.ada.put(f"/projects/{project}/org-selections", {"resource_ids": [page.resource_id]}, 0)
    machine.settle()
    draft = machine.edit(project, page.resource_id, BODY + "six\n")
    machine.settle()
    merge(org.ada, project, [draft.draft_id], "org")
    wanted = machine.effective(project)
    machine.network.standing = lambda request: drop_request if "/commits" in request.url.path else None
    machine.step()
    assert machine.draft(draft.draft_id).status == "merged"
    assert machine.effective(project) == wanted
    machine.network.standing = lambda _request: None
    machine.settle()
    assert machine.bodies(project) == {"org.md": BODY + "six\n"}
    assert machine.effective(project) == wanted


@pytest.mark.requirement("sync.rebase.clean")
def test_a_draft_whose_own_resource_moved_is_rebased_and_uploaded(
    org: Server, machine: Machine, project: str
) -> None:
    page = Published("a.md", BODY)
    org.publish(project, page)
    machine.settle()
    draft = machine.edit(project, page.resource_id, BODY.replace("one", "ONE"))
    machine.settle()
    org.publish(project, replace(page, body=BODY.replace("five", "FIVE")))
    assert machine.step().more
    machine.settle()
    assert machine.draft(draft.draft_id).state().body == BODY.replace("one", "ONE").replace("five", "FIVE")
    assert [each.kind for each in machine.draft(draft.draft_id).operations][-1] == OperationKind.REBASE
    assert len(uploaded(org, [draft.draft_id])[draft.draft_id]) == 2
    there = org.ada.ok("GET", f"/drafts/{draft.draft_id}")
    assert there["draft"]["freshness"] == "current"
    assert there["state"]["body"] == machine.draft(draft.draft_id).state().body


@pytest.mark.requirement("sync.rebase.others")
def test_other_resources_moving_upload_nothing(org: Server, machine: Machine, project: str) -> None:
    page = Published("a.md", BODY)
    org.publish(project, page)
    machine.settle()
    draft = machine.edit(project, page.resource_id, BODY + "six\n")
    machine.settle()
    org.publish(project, Published("b.md"))
    machine.network.log.clear()
    machine.settle()
    assert machine.network.paths("POST") == []
    with machine.store.read() as uow:
        installed = uow.projects.get(project).installed_commit  # type: ignore[union-attr]
    assert machine.draft(draft.draft_id).base_commit == installed
    # The server still holds the older base, and takes further operations all the same.
    machine.append(draft.draft_id, kind=OperationKind.UPDATE, body=BODY + "seven\n")
    machine.settle()
    merge(org.ada, project, [draft.draft_id])
    machine.settle()
    assert machine.bodies(project)["a.md"] == BODY + "seven\n"


@pytest.mark.requirement("sync.rebase.conflicts")
def test_a_conflict_is_reported_keeps_the_text_and_uploads_nothing(
    org: Server, machine: Machine, project: str
) -> None:
    page = Published("a.md", BODY)
    org.publish(project, page)
    machine.settle()
    draft = machine.edit(project, page.resource_id, BODY.replace("one", "ONE"))
    machine.settle()
    org.publish(project, replace(page, body=BODY.replace("one", "uno")))
    machine.network.log.clear()
    machine.settle()
    now = machine.draft(draft.draft_id)
    assert (now.reconciliation, now.conflicts) == ("conflicts", ("content",))
    assert machine.effective(project)[page.resource_id].body == BODY.replace("one", "ONE")
    assert machine.network.paths("POST") == []


@pytest.mark.requirement("sync.pull.revocation")
def test_losing_a_project_removes_its_texts_states_and_runs_and_keeps_the_drafts(
    org: Server, machine_of: Callable[[Caller], Machine], project: str
) -> None:
    bob = org.user("bob")
    member = {"email": bob.email, "role": "member"}
    org.ada.ok("POST", f"/projects/{project}/members", json=member)
    org.publish(project, Published("secret.md", "# Secret\n"))
    machine = machine_of(bob)
    machine.settle()
    with machine.store.write() as uow:
        uow.activation_states.put(ActivationStateRow("s", project, {"u": ("h", "mem_1")}, 1, 1))
    draft = machine.create(project, "mine.md", "# Mine\n")
    org.ada.delete(f"/projects/{project}/members/{bob.user_id}")
    machine.settle()
    with machine.store.read() as uow:
        row = uow.projects.get(project)
        assert row is not None
        assert (row.access, row.installed_commit, row.snapshot_at) == (False, None, None)
        assert uow.activation_states.count() == 0
        assert uow.connection.execute(text("SELECT count(*) FROM blob")).scalar_one() == 0
        assert uow.published.count(project) == 0
    assert machine.revoked == [project]
    (waiting,) = machine.rows(draft.draft_id)
    assert (waiting.cause, waiting.attempts) == (ParkingCause.ACCESS_LOST, 0)
    org.ada.ok("POST", f"/projects/{project}/members", json=member)
    machine.settle()
    assert machine.bodies(project) == {"secret.md": "# Secret\n"}
    assert machine.statuses(draft.draft_id) == ["synced"]


@pytest.mark.requirement("sync.pull.idempotent")
def test_applying_an_answer_twice_changes_nothing(org: Server, machine: Machine, project: str) -> None:
    machine.settle()
    draft = machine.create(project, "a.md", "# A\n")
    machine.settle()
    with machine.store.read() as uow:
        cursor = uow.sync_state.get().cursor
    merge(org.ada, project, [draft.draft_id])
    answer = SyncAnswer.model_validate_json(org.ada.get("/sync", query_string={"cursor": cursor}).data)
    for expected in (True, False):
        with machine.store.write() as uow:
            assert bool(apply_answer(uow, answer, 5).changed) is expected


@pytest.mark.requirement("sync.pull.too-old")
def test_a_kind_of_change_that_is_unknown_stops_the_feed_where_it_is(
    org: Server, machine: Machine, project: str
) -> None:
    machine.settle()
    with machine.store.read() as uow:
        before = uow.sync_state.get().cursor
    org.publish(project, Published("a.md"))

    def newer(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        answer = json.loads(send().content)
        answer["events"][0]["type"] = "draft.frozen"
        return httpx.Response(200, json=answer)

    machine.network.faults.append(newer)
    result = machine.step()
    assert result.error is not None
    assert result.error.code == "client_too_old"
    with machine.store.read() as uow:
        assert uow.sync_state.get().cursor == before
    assert machine.bodies(project) == {}


@pytest.mark.requirement("sync.pull.verified")
def test_a_commit_that_does_not_verify_is_not_applied_and_others_go_on(
    org: Server, machine: Machine, project: str
) -> None:
    org.publish(project, Published("a.md"))
    other = org.project(org.ada, "Other")
    org.publish(other, Published("o.md"))
    machine.settle()
    org.publish(project, Published("b.md", "# B\n"))
    org.publish(other, Published("p.md", "# P\n"))

    def forged(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        page = json.loads(send().content)
        page["commits"][0]["changes"][0]["body"] = "# Forged\n"
        return httpx.Response(200, json=page)

    machine.network.standing = lambda request: forged if f"{project}/commits" in request.url.path else None
    result = machine.step()
    assert result.projects_failing[project].code == "chain_broken"
    assert set(machine.bodies(project)) == {"a.md"}
    assert set(machine.bodies(other)) == {"o.md", "p.md"}
    with machine.store.read() as uow:
        assert uow.projects.get(project).last_error  # type: ignore[union-attr]
    machine.network.standing = lambda _request: None
    machine.settle()
    assert set(machine.bodies(project)) == {"a.md", "b.md"}


def test_a_cut_snapshot_is_not_applied(org: Server, machine: Machine, project: str) -> None:
    org.publish(project, *(Published(f"{number}.md") for number in range(30)))

    def cut(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        return httpx.Response(200, content=send().content[:3000])

    machine.network.standing = lambda request: cut if request.url.path.endswith("snapshot") else None
    assert machine.step().projects_failing
    assert machine.bodies(project) == {}
    machine.network.standing = lambda _request: None
    machine.settle()
    assert len(machine.bodies(project)) == 30


@pytest.mark.requirement("sync.pull.mass-removal")
@pytest.mark.parametrize("confirmed", [True, False])
def test_a_step_that_removes_most_of_a_project_is_read_twice(
    org: Server, machine: Machine, project: str, confirmed: bool
) -> None:
    pages = [Published(f"{number}.md") for number in range(30)]
    org.publish(org.org_id, *pages)
    ids = [page.resource_id for page in pages]
    org.ada.put(f"/projects/{project}/org-selections", {"resource_ids": ids}, 0)
    machine.settle()
    org.ada.put(f"/projects/{project}/org-selections", {"resource_ids": ids[:5]}, 1)
    machine.network.log.clear()
    reads: list[str] = []

    def second_read(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        reads.append(request.url.path)
        return send() if len(reads) == 1 else httpx.Response(200, json={"commits": [], "has_more": False})

    if not confirmed:
        machine.network.standing = lambda request: (
            second_read if request.url.path.endswith("commits") else None
        )
    result = machine.step()
    assert [path.endswith("commits") for path in machine.network.paths()].count(True) == 2
    assert len(machine.bodies(project)) == (5 if confirmed else 30)
    assert bool(result.projects_failing) is not confirmed


@pytest.mark.requirement("sync.pull.restored")
def test_a_server_restored_from_a_backup_is_offered_everything_again(
    org: Server, machine: Machine, project: str
) -> None:
    org.publish(project, Published("a.md", BODY))
    machine.settle()
    draft = machine.create(project, "b.md", "# B\n")
    merged = machine.create(project, "c.md", "# C\n")
    backup = tables(org)
    machine.settle()
    merge(org.ada, project, [merged.draft_id])
    machine.append(draft.draft_id, kind=OperationKind.UPDATE, body="# B\n\nmore\n")
    machine.settle()
    operations = [row.operation_id for row in machine.rows(draft.draft_id)]
    restore(org, backup)
    machine.settle()
    assert uploaded(org, [draft.draft_id])[draft.draft_id] == operations
    assert machine.bodies(project) == {"a.md": BODY}
    shown = {state.path for state in machine.effective(project).values()}
    assert shown == {"a.md", "b.md", "c.md"}
    assert machine.draft(merged.draft_id).status == "open"
    assert machine.statuses(merged.draft_id) == ["synced"]


@pytest.mark.requirement("sync.pull.isolated")
def test_one_project_that_fails_holds_no_other_up(org: Server, machine: Machine, project: str) -> None:
    other = org.project(org.ada, "Other")
    org.publish(other, Published("o.md"))
    org.publish(project, Published("a.md"))
    machine.network.standing = lambda request: (
        error("internal_error", 500) if f"{project}/snapshot" in request.url.path else None
    )
    result = machine.step()
    assert list(result.projects_failing) == [project]
    assert set(machine.bodies(other)) == {"o.md"}
    machine.network.standing = lambda _request: None
    machine.step()
    assert set(machine.bodies(project)) == {"a.md"}
