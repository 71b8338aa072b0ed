"""What becomes of operations when the network or the server fails in any of its ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client.domain.outbox import POISON_STREAK, Claimed, Delivery, Problem, Unanswered, transition
from client.sync import deliveries
from client.sync.push import Pusher
from client.sync.witness import Witness
from shared_schema.drafts import DraftStatus, OperationKind
from shared_schema.sync_status import ParkingCause, SyncStatus
from tests.client.sync_world import (
    Fault,
    Machine,
    drop_answer,
    drop_request,
    duplicate,
    error,
    status,
    truncate,
    uploaded,
    wrong_json,
)
from tests.org_server.harness import Caller, Server


@pytest.fixture
def project(org: Server, machine: Machine) -> str:
    project_id = org.project(org.ada)
    machine.settle()
    return project_id


def append(machine: Machine, draft_id: str, body: str) -> str:
    return machine.append(draft_id, kind=OperationKind.UPDATE, body=body)


FAULTS: dict[str, Fault] = {
    "request lost": drop_request,
    "answer lost": drop_answer,
    "sent twice": duplicate,
    "answer cut": truncate,
    "other JSON": wrong_json,
    "500": status(500),
    "503 after acting": status(503, after=True),
    "429": status(429, {"Retry-After": "2"}),
    "408": status(408),
    "425": status(425),
    "a proxy's 404": status(404),
    "a proxy's 403": status(403),
    "internal error": error("internal_error", 500),
}


@pytest.mark.requirement("sync.outbox.exactly-once")
@pytest.mark.parametrize("name", FAULTS)
def test_after_any_single_fault_the_server_has_each_operation_once_and_in_order(
    org: Server, machine: Machine, project: str, name: str
) -> None:
    draft = machine.create(project, "a.md", "# 1\n")
    machine.network.faults.append(FAULTS[name])
    append(machine, draft.draft_id, "# 2\n")
    machine.step()
    append(machine, draft.draft_id, "# 3\n")
    machine.settle()
    assert machine.statuses(draft.draft_id) == ["synced"] * 3
    expected = [row.operation_id for row in machine.rows(draft.draft_id)]
    assert uploaded(org, [draft.draft_id])[draft.draft_id] == expected


@pytest.mark.requirement("sync.outbox.exactly-once")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), share=st.floats(0.1, 0.7))
def test_after_a_storm_of_faults_the_server_has_each_operation_once_and_in_order(
    org: Server, machine: Machine, project: str, seed: int, share: float
) -> None:
    rng = Random(seed)
    machine.network.standing = lambda _request: (
        rng.choice(sorted(FAULTS.items()))[1] if rng.random() < share else None
    )
    drafts = []
    for number in range(4):
        drafts.append(machine.create(project, f"{seed}/{rng.random()}/{number}.md", "# start\n").draft_id)
        for _ in range(rng.randrange(4)):
            append(machine, rng.choice(drafts), f"# {rng.random()}\n")
            machine.step()
            machine.clock.advance(rng.randrange(3_000))
    machine.network.standing = lambda _request: None
    machine.settle()
    held = uploaded(org, drafts)
    for name in drafts:
        assert held[name] == [row.operation_id for row in machine.rows(name)]
        assert set(machine.statuses(name)) == {"synced"}


@pytest.mark.requirement("sync.outbox.backoff")
def test_a_lost_answer_leaves_the_operation_retrying_at_a_stored_time(machine: Machine, project: str) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    machine.network.faults.append(drop_answer)
    result = machine.step()
    (row,) = machine.rows(draft.draft_id)
    assert row.sync_status is SyncStatus.RETRYING
    assert row.next_attempt_at is not None
    assert 1_000 <= row.next_attempt_at - machine.clock() <= 2_000
    assert row.error_code == "org_server_unavailable"
    assert result.due_in is not None
    machine.kill()
    machine.open()
    sent = len(machine.network.log)
    machine.network.standing = lambda _request: drop_request
    machine.step()
    assert machine.network.paths("POST")[sent:] == []


@pytest.mark.requirement("sync.outbox.backoff")
@pytest.mark.parametrize("wish", ["90", "Fri, 15 Jan 2027 08:01:30 GMT"])
def test_the_server_s_retry_after_holds_everything_back_until_then(
    machine: Machine, project: str, wish: str
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    headers = {"Retry-After": wish, "Date": "Fri, 15 Jan 2027 08:00:00 GMT"}
    machine.network.faults.append(status(429, headers))
    machine.step()
    (row,) = machine.rows(draft.draft_id)
    assert row.next_attempt_at is not None
    assert row.next_attempt_at - machine.clock() >= 90_000
    asked = len(machine.network.log)
    machine.create(project, "b.md", "# B\n")
    machine.clock.advance(89_000)
    machine.step()
    assert len(machine.network.log) == asked
    machine.clock.advance(2_000)
    assert machine.step().accepted == 2


@pytest.mark.requirement("sync.outbox.parked")
def test_a_signed_out_queue_waits_without_attempts_and_goes_on_after(machine: Machine, project: str) -> None:
    drafts = [machine.create(project, f"{number}.md", "# A\n").draft_id for number in range(3)]
    machine.network.standing = lambda _request: error("unauthenticated", 401)
    for _ in range(5):
        machine.step()
        machine.clock.advance(400_000)
    rows = [row for name in drafts for row in machine.rows(name)]
    assert {(row.sync_status, row.cause, row.attempts) for row in rows} == {
        (SyncStatus.RETRYING, ParkingCause.SIGNED_OUT, 0)
    }
    machine.network.standing = lambda _request: None
    with machine.store.write() as uow:
        assert uow.account.get().signed_out  # type: ignore[union-attr]
        deliveries.restore(uow, ParkingCause.SIGNED_OUT, machine.clock())
    machine.settle()
    assert [row.attempts for name in drafts for row in machine.rows(name)] == [1, 1, 1]


@pytest.mark.requirement("sync.outbox.parked")
@pytest.mark.parametrize(("code", "http_status"), [("forbidden", 403), ("not_found", 404)])
def test_a_project_out_of_reach_waits_alone_and_returns(
    org: Server, machine: Machine, project: str, code: str, http_status: int
) -> None:
    other = org.project(org.ada, "Other")
    machine.settle()
    shut = machine.create(project, "a.md", "# A\n").draft_id
    free = machine.create(other, "a.md", "# A\n").draft_id
    machine.network.standing = lambda request: error(code, http_status) if shut in request.url.path else None
    machine.step()
    (row,) = machine.rows(shut)
    assert (row.sync_status, row.cause, row.attempts) == (SyncStatus.RETRYING, ParkingCause.ACCESS_LOST, 0)
    assert machine.statuses(free) == ["synced"]
    machine.network.standing = lambda _request: None
    bob = org.user("bob")
    org.ada.ok("POST", f"/projects/{project}/members", json={"email": bob.email, "role": "member"})
    machine.settle()
    assert machine.statuses(shut) == ["synced"]


@pytest.mark.requirement("sync.outbox.poison")
def test_an_operation_that_the_server_chokes_on_fails_alone_while_others_pass(
    machine: Machine, project: str
) -> None:
    poison = machine.create(project, "poison.md", "# P\n").draft_id
    machine.network.standing = lambda request: (
        error("internal_error", 500) if poison in request.url.path else None
    )
    others = []
    for number in range(POISON_STREAK + 2):
        others.append(machine.create(project, f"{number}.md", "# A\n").draft_id)
        machine.step()
        machine.clock.advance(400_000)
    (row,) = machine.rows(poison)
    assert (row.sync_status, row.attempts, row.retry_can_help) == (SyncStatus.FAILED, POISON_STREAK + 1, True)
    assert {state for name in others for state in machine.statuses(name)} == {"synced"}


@pytest.mark.requirement("sync.outbox.poison")
def test_an_outage_of_the_whole_server_fails_nothing(machine: Machine, project: str) -> None:
    drafts = [machine.create(project, f"{number}.md", "# A\n").draft_id for number in range(5)]
    machine.network.standing = lambda _request: error("internal_error", 500)
    for _ in range(3 * POISON_STREAK):
        machine.step()
        machine.clock.advance(400_000)
    assert {row.sync_status for name in drafts for row in machine.rows(name)} <= {
        SyncStatus.RETRYING,
        SyncStatus.QUEUED,
    }
    machine.network.standing = lambda _request: None
    machine.settle()
    assert {state for name in drafts for state in machine.statuses(name)} == {"synced"}


def test_only_the_operation_in_a_batch_that_is_refused_fails(machine: Machine, project: str) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    machine.append(draft.draft_id, kind=OperationKind.RENAME, path="b.md")
    machine.append(draft.draft_id, kind=OperationKind.RENAME, path="CON")  # No server takes this path.
    append(machine, draft.draft_id, "# later\n")
    other = machine.create(project, "c.md", "# C\n")
    result = machine.step()
    assert machine.statuses(draft.draft_id) == ["synced", "synced", "failed", "queued"]
    assert machine.statuses(other.draft_id) == ["synced"]
    assert (result.accepted, result.failed) == (3, 1)
    (failed,) = [row for row in machine.rows(draft.draft_id) if row.sync_status is SyncStatus.FAILED]
    assert (failed.error_code, failed.retry_can_help, failed.attempts) == ("invalid_path", False, 1)
    assert machine.step().due_in is None


@pytest.mark.requirement("sync.outbox.late-answer")
def test_the_answer_of_an_attempt_that_was_given_up_changes_nothing(machine: Machine, project: str) -> None:
    draft = machine.create(project, "a.md", "# A\n")

    def given_up_meanwhile(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        answer = send()
        with machine.store.write() as uow:
            deliveries.recover(uow, machine.clock(), machine.clock() + 1)
            uow.outbox.claim(
                [row.operation_id for row in uow.outbox.of_draft(draft.draft_id)], "other", machine.clock()
            )
        return answer

    machine.network.faults.append(given_up_meanwhile)
    pusher = Pusher(machine.store, machine.clock, Random(1), Witness())
    pusher.push(machine.client, lambda: False)
    (row,) = machine.rows(draft.draft_id)
    assert (row.sync_status, row.lease) == (SyncStatus.SYNCING, "other")


@pytest.mark.requirement("sync.outbox.restart")
def test_an_operation_under_way_when_the_process_died_is_sent_again_at_start(
    org: Server, machine: Machine, project: str
) -> None:
    draft = machine.create(project, "a.md", "# A\n")

    class Died(BaseException):
        pass

    def die(request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        send()
        raise Died

    machine.network.faults.append(die)
    with pytest.raises(Died):
        machine.step()
    assert machine.statuses(draft.draft_id) == ["syncing"]
    machine.kill()
    machine.open()
    machine.network.faults.append(drop_request)
    machine.step()
    (row,) = machine.rows(draft.draft_id)
    assert (row.sync_status, row.attempts) == (SyncStatus.RETRYING, 2)
    machine.settle()
    assert uploaded(org, [draft.draft_id])[draft.draft_id] == [row.operation_id]


def test_a_claim_in_the_database_is_the_table_s_transition(machine: Machine, project: str) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    (row,) = machine.rows(draft.draft_id)
    waited = transition(
        transition(Delivery(), Claimed("l0", 1)), Unanswered(Problem("x", "y"), machine.clock())
    )
    for before in (Delivery(), waited):
        with machine.store.write() as uow:
            uow.outbox.put(
                type(row)(row.operation_id, row.draft_id, row.project_id, updated_at=1, **_fields(before))
            )
            (claimed,) = uow.outbox.claim([row.operation_id], "l1", machine.clock())
        from_table = transition(
            Delivery(**{**_fields(before), "sync_status": SyncStatus.QUEUED}),
            Claimed("l1", machine.clock()),
        )
        assert deliveries.delivery_of(claimed) == from_table


def _fields(delivery: Delivery) -> dict[str, object]:
    return {name: getattr(delivery, name) for name in Delivery.__slots__}


@pytest.mark.requirement("sync.outbox.batches")
def test_large_operations_go_in_requests_of_at_most_three_mebibytes(
    org: Server, machine: Machine, project: str
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    for number in range(8):
        append(machine, draft.draft_id, f"# {number}\n" + "x" * 900_000)
    machine.network.log.clear()
    assert machine.step().accepted == 9
    uploads = [size for method, _, size in machine.network.log if method == "POST"]
    assert len(uploads) == 3
    assert max(uploads) < 4 * 1024 * 1024


def test_a_discard_behind_a_refused_operation_ends_the_draft_on_the_server(
    org: Server, machine: Machine, project: str
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    machine.step()
    machine.append(draft.draft_id, kind=OperationKind.RENAME, path="CON")
    append(machine, draft.draft_id, "# later\n")
    machine.step()
    with machine.store.write() as uow:
        uow.drafts.put(replace(machine.draft(draft.draft_id), status=DraftStatus.DISCARDED))
    machine.append(draft.draft_id, kind=OperationKind.DISCARD)
    machine.settle()
    assert machine.statuses(draft.draft_id) == ["synced"]
    there = org.ada.ok("GET", f"/drafts/{draft.draft_id}")
    assert there["draft"]["status"] == "discarded"


def test_two_people_s_machines_do_not_hold_each_other_up(
    org: Server, machine: Machine, project: str, machine_of: Callable[[Caller], Machine], tmp_path: Path
) -> None:
    bob = org.user("bob")
    org.ada.ok("POST", f"/projects/{project}/members", json={"email": bob.email, "role": "member"})
    other = machine_of(bob)
    other.settle()
    mine, theirs = machine.create(project, "a.md", "# A\n"), other.create(project, "b.md", "# B\n")
    machine.network.standing = lambda _request: drop_request
    machine.step()
    other.settle()
    assert other.statuses(theirs.draft_id) == ["synced"]
    assert machine.statuses(mine.draft_id) == ["retrying"]
