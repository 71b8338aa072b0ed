"""Submitting, the outbox and synchronising on demand, with the worker's real thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import httpx
import pytest

from client.services.project_memory import ProjectMemory
from client.services.read_outbox import ReadOutbox
from client.services.submit_drafts import SubmitDrafts
from client.services.sync_now import SyncNow
from client.sync.org_client import OrgClient
from client.sync.worker import SyncWorker
from shared_schema import org_contract as api
from shared_schema.daemon_contract import Offer, OutboxListCall, OutboxRetryCall, SubmitCall, SyncCall
from shared_schema.drafts import OperationKind
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.sync_status import SyncStatus
from tests.client.sync_world import URL, Fault, Machine, drop_answer, drop_request, error, merge
from tests.org_server.harness import Published, Server
from tests.org_server.people import Person


@pytest.fixture
def project(org: Server, machine: Machine) -> str:
    project_id = org.project(org.ada, "Web")
    machine.settle()
    return project_id


@pytest.fixture
def worker(machine: Machine) -> Iterator[SyncWorker]:
    made = SyncWorker(machine.engine, interval=3_600, rng=Random(1))
    made.start()
    assert made.run_round(20) is not None
    yield made
    assert made.stop(20)


@pytest.fixture
def submit(machine: Machine, worker: SyncWorker) -> SubmitDrafts:
    return SubmitDrafts(
        machine.store,
        ProjectMemory(machine.store),
        worker,
        lambda: machine.client,
        clock=machine.clock,
        push_seconds=20,
    )


@pytest.fixture
def sync_now(machine: Machine, worker: SyncWorker) -> SyncNow:
    return SyncNow(worker, machine.store, clock=machine.clock)


@pytest.mark.requirement("client.submit")
def test_submitting_pushes_first_and_notes_the_review_at_once(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    page = Published("old.md")
    org.publish(project, page)
    machine.settle()
    one = machine.create(project, "a.md", "# A\n")
    two = machine.create(project, "b.md", "# B\n")
    three = machine.edit(project, page.resource_id, "# Old\n\nnew\n")
    submitted = submit(
        SubmitCall(drafts=[one.draft_id, "b.md", page.resource_id], project="Web", description="please")
    )
    assert submitted.draft_ids == [one.draft_id, two.draft_id, three.draft_id]
    assert submitted.title == "Add a.md, add b.md, update old.md"
    there = org.ada.ok("GET", f"/reviews/{submitted.review_id}")
    assert [entry["draft_id"] for entry in there["entries"]] == submitted.draft_ids
    assert there["description"] == "please"
    for name in submitted.draft_ids:
        draft = machine.draft(name)
        assert (draft.status, draft.review_id) == ("submitted", submitted.review_id)
    with pytest.raises(InterleafError) as refused:
        submit(SubmitCall(drafts=[one.draft_id]))
    assert refused.value.code is ErrorCode.DRAFT_NOT_OPEN


@pytest.mark.requirement("client.submit")
def test_a_deletion_is_found_by_its_former_path(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    page = Published("old.md")
    org.publish(project, page)
    machine.settle()
    draft = machine.edit(project, page.resource_id, "# x\n")
    machine.append(draft.draft_id, kind=OperationKind.DELETE)
    submitted = submit(SubmitCall(drafts=["old.md"], project=project))
    assert submitted.draft_ids == [draft.draft_id]
    assert submitted.title == "Delete old.md"


@pytest.mark.requirement("cli.contribute")
def test_submitted_drafts_may_be_offered_to_the_organization(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    one, two = machine.create(project, "a.md", "# A\n"), machine.create(project, "b.md", "# B\n")
    offers = [Offer(draft="a.md", path="shared/a.md"), Offer(draft=two.draft_id)]
    with pytest.raises(InterleafError) as refused:
        submit(SubmitCall(drafts=["b.md"], project=project, contribute=offers))
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS
    submitted = submit(SubmitCall(drafts=["a.md", "b.md"], project=project, contribute=offers))
    there = org.ada.ok("GET", f"/reviews/{submitted.review_id}")
    assert there["org_contribution"] == [
        {"draft_id": one.draft_id, "path": "shared/a.md", "target_id": None},
        {"draft_id": two.draft_id, "path": None, "target_id": None},
    ]
    ada = Person(org, org.ada)
    assert ada.merge(ada.review(submitted.review_id)).status_code == 200
    offered = org.ada.ok("GET", f"/reviews/{submitted.review_id}")["contribution_review_id"]
    entries = org.ada.ok("GET", f"/reviews/{offered}")["entries"]
    assert [entry["after"]["path"] for entry in entries] == ["shared/a.md", "b.md"]
    machine.settle()
    assert {machine.draft(each.draft_id).status for each in (one, two)} == {"merged"}


@pytest.mark.requirement("client.submit.refused")
def test_what_cannot_be_reviewed_is_refused_before_anything_is_sent(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    page, body = Published("old.md", "# Old\n\none\n"), "# Old\n\none\n"
    org.publish(project, page)
    machine.settle()
    same = machine.edit(project, page.resource_id, "# Old\n\ntwo\n")
    machine.append(same.draft_id, kind=OperationKind.UPDATE, body=body)
    expected = {(same.draft_id,): ErrorCode.DRAFT_EMPTY, ("drf_none",): ErrorCode.DRAFT_NOT_FOUND}
    fine = machine.create(project, "a.md", "# A\n")
    wide = machine.create(project, "o.md", "# O\n", Scope.ORG)
    other = org.project(org.ada, "Other")
    machine.settle()
    elsewhere = machine.create(other, "a.md", "# A\n")
    expected |= {
        (fine.draft_id, fine.draft_id): ErrorCode.INVALID_ARGUMENTS,
        (fine.draft_id, wide.draft_id): ErrorCode.INVALID_ARGUMENTS,
        (fine.draft_id, elsewhere.draft_id): ErrorCode.INVALID_ARGUMENTS,
        ("a.md",): ErrorCode.INVALID_ARGUMENTS,
    }
    for names, code in expected.items():
        with pytest.raises(InterleafError) as refused:
            submit(SubmitCall(drafts=list(names)))
        assert refused.value.code is code, names
    assert org.ada.ok("GET", "/reviews")["reviews"] == []


@pytest.mark.requirement("client.submit.refused")
def test_a_conflict_that_shows_while_pushing_stops_the_submission(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    page = Published("old.md", "one\n")
    org.publish(project, page)
    machine.settle()
    draft = machine.edit(project, page.resource_id, "two\n")
    org.publish(project, replace(page, body="three\n"))
    with pytest.raises(InterleafError) as refused:
        submit(SubmitCall(drafts=[draft.draft_id]))
    assert refused.value.code is ErrorCode.RECONCILIATION_REQUIRED
    assert refused.value.details["conflicts"] == ["content"]


@pytest.mark.requirement("client.submit.refused")
def test_a_draft_that_the_server_refuses_is_not_submitted(
    machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    machine.append(draft.draft_id, kind=OperationKind.RENAME, path="CON")
    with pytest.raises(InterleafError) as refused:
        submit(SubmitCall(drafts=[draft.draft_id]))
    assert refused.value.code is ErrorCode.SYNC_INCOMPLETE


@pytest.mark.requirement("sync.now")
def test_waiting_returns_when_all_is_pushed_and_pulled(
    org: Server, machine: Machine, project: str, sync_now: SyncNow
) -> None:
    org.publish(project, Published("b.md"))
    draft = machine.create(project, "a.md", "# A\n")
    result = sync_now(SyncCall(wait=True, timeout_seconds=20))
    assert (result.pending, result.failed, result.projects_failing, result.error) == (0, 0, [], None)
    assert machine.statuses(draft.draft_id) == ["synced"]
    assert set(machine.bodies(project)) == {"b.md"}


@pytest.mark.requirement("sync.now")
def test_waiting_sends_at_once_what_waited_for_a_later_time(
    machine: Machine, project: str, sync_now: SyncNow
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    machine.network.faults.extend([drop_request] * 3)
    machine.step()
    assert machine.statuses(draft.draft_id) in (["retrying"], ["queued"])
    machine.network.faults.clear()
    assert sync_now(SyncCall(wait=True, timeout_seconds=20)).pending == 0


@pytest.mark.requirement("sync.now")
def test_waiting_ends_early_when_only_a_person_can_help(
    machine: Machine, project: str, sync_now: SyncNow
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    machine.append(draft.draft_id, kind=OperationKind.RENAME, path="CON")
    result = sync_now(SyncCall(wait=True, timeout_seconds=600))
    assert (result.pending, result.failed) == (0, 1)
    machine.network.standing = lambda _request: error("unauthenticated", 401)
    machine.create(project, "b.md", "# B\n")
    result = sync_now(SyncCall(wait=True, timeout_seconds=600))
    assert (result.pending, result.failed) == (1, 1)
    assert result.error


@pytest.mark.requirement("sync.now")
def test_waiting_for_a_server_that_is_away_ends_with_what_is_left(
    machine: Machine, project: str, sync_now: SyncNow
) -> None:
    machine.create(project, "a.md", "# A\n")
    machine.network.standing = lambda _request: drop_request
    result = sync_now(SyncCall(wait=True, timeout_seconds=0.2))
    assert result.pending == 1
    assert result.error


@pytest.mark.requirement("client.outbox")
def test_the_outbox_lists_what_is_not_synced_and_retries_under_the_same_id(
    org: Server, machine: Machine, project: str, worker: SyncWorker
) -> None:
    assert worker.run_round(20) is not None
    outbox = ReadOutbox(machine.store, worker, machine.clock)
    draft = machine.create(project, "a.md", "# A\n")
    machine.network.standing = lambda request: (
        error("path_occupied", 409) if request.method == "POST" else None
    )
    assert worker.run_round(20) is not None
    machine.network.standing = lambda _request: None
    (item,) = outbox.list(OutboxListCall()).operations
    assert (item.kind, item.path, item.sync_status) == ("create", "a.md", SyncStatus.FAILED)
    assert (item.error_code, item.retry_can_help, item.attempts) == ("path_occupied", True, 1)
    assert outbox.retry(OutboxRetryCall(local_operation_id=item.local_operation_id)).count == 1
    assert worker.run_round(20) is not None
    assert outbox.list(OutboxListCall()).operations == []
    (done,) = outbox.list(OutboxListCall(all=True)).operations
    assert (done.local_operation_id, done.draft_id) == (item.local_operation_id, draft.draft_id)
    assert outbox.retry(OutboxRetryCall(local_operation_id=item.local_operation_id)).count == 0
    assert outbox.retry(OutboxRetryCall()).count == 0
    with pytest.raises(InterleafError) as refused:
        outbox.retry(OutboxRetryCall(local_operation_id="lop_none"))
    assert refused.value.code is ErrorCode.OUTBOX_OPERATION_NOT_FOUND


def test_a_merged_draft_is_not_submitted_again(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    machine.settle()
    merge(org.ada, project, [draft.draft_id])
    machine.settle()
    with pytest.raises(InterleafError) as refused:
        submit(SubmitCall(drafts=[draft.draft_id]))
    assert refused.value.code is ErrorCode.DRAFT_NOT_OPEN


def lose_answers(machine: Machine, path: str, times: int) -> None:
    """Let the server act, and lose so many of its answers to POSTs at ``path``."""
    left = [times]

    def fault(request: httpx.Request) -> Fault | None:
        if request.method == "POST" and request.url.path.endswith(path) and left[0]:
            left[0] -= 1
            return drop_answer
        return None

    machine.network.standing = fault


@pytest.mark.requirement("client.submit.lost_answer")
def test_a_submission_whose_answer_was_lost_succeeds_when_it_is_made_again(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    lose_answers(machine, "/reviews", 1)
    with pytest.raises(InterleafError) as lost:
        submit(SubmitCall(drafts=[draft.draft_id]))
    assert lost.value.code is ErrorCode.ORG_SERVER_UNAVAILABLE
    assert machine.draft(draft.draft_id).status == "open"
    submitted = submit(SubmitCall(drafts=[draft.draft_id]))
    listed = org.ada.ok("GET", "/reviews")["reviews"]
    assert [item["review_id"] for item in listed] == [submitted.review_id]
    assert machine.draft(draft.draft_id).review_id == submitted.review_id
    assert org.audit().count("review.opened") == 1


@pytest.mark.requirement("client.submit.lost_answer")
def test_a_draft_that_came_back_from_a_review_is_submitted_anew(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    first = submit(SubmitCall(drafts=[draft.draft_id]))
    machine.client.withdraw(first.review_id, machine.client.review(first.review_id).review.version)
    machine.clock.advance(1)
    machine.settle()
    assert machine.draft(draft.draft_id).status == "open"
    second = submit(SubmitCall(drafts=[draft.draft_id]))
    assert second.review_id != first.review_id


@pytest.mark.requirement("client.repeats")
def test_a_lost_answer_is_fetched_within_the_request_and_nothing_happens_twice(
    org: Server, machine: Machine, project: str, submit: SubmitDrafts
) -> None:
    draft = machine.create(project, "a.md", "# A\n")
    review = submit(SubmitCall(drafts=[draft.draft_id])).review_id
    client = OrgClient(URL, machine.caller.token, transport=machine.network, sleep=lambda _seconds: None)
    for path, send in (
        ("/projects", lambda: client.create_project(api.ProjectCreate(name="Other"))),
        ("/admin/users", lambda: client.create_user(api.UserCreate(email="new@example.org"))),
        ("/members", lambda: client.add_member(project, api.MemberAdd(email="new@example.org"))),
        ("/comments", lambda: client.add_comment(review, api.CommentCreate(body="Once."))),
        ("/merges", lambda: client.merge(review, 1, client.review(review).ref)),
    ):
        lose_answers(machine, path, 2)
        send()
    audited = org.audit()
    names = ("project.created", "user.added", "review.merged")
    assert [audited.count(name) for name in names] == [2, 2, 1]
    assert [item.body for item in client.comments(review)] == ["Once."]
    client.close()
