"""The only upload: exactly-once effects, strict order, and nobody else's Drafts."""

from __future__ import annotations

import pytest

from shared_schema import ids
from shared_schema.org_contract import Role
from tests.org_server.harness import Server
from tests.org_server.people import DraftHandle, Person, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


@pytest.mark.requirement("upload.creates_draft")
def test_the_first_operation_creates_the_draft_and_further_ones_are_appended(team: Team) -> None:
    draft = team.mia.new_draft(team.project)
    answer = succeeded(
        team.mia.upload(
            draft,
            draft.operation("create", path="guides/Release.md", body="# Release\n", description="How"),
            draft.operation("update", body="# Release\n\nNow.\n"),
            draft.operation("rename", path="guides/release.md"),
        )
    ).json()
    assert len(answer["accepted"]) == 3
    assert answer["draft"]["last_ordinal"] == 3
    assert answer["draft"]["status"] == "open"
    assert answer["draft"]["freshness"] == "current"
    detail = team.mia.get(f"/drafts/{draft.draft_id}")
    assert detail["base"]["exists"] is False
    assert detail["state"] == {
        "exists": True,
        "path": "guides/release.md",
        "description": "How",
        "body": "# Release\n\nNow.\n",
        "org_source": None,
    }


@pytest.mark.requirement("upload.idempotent")
def test_a_repeated_upload_answers_as_the_first_time_and_changes_nothing(team: Team) -> None:
    draft = team.mia.new_draft(team.project)
    operation = draft.operation("create", path="a.md", body="text\n")
    cursor = team.mia.cursor()
    first = succeeded(team.mia.upload(draft, operation)).json()
    assert team.mia.events(cursor) == ["draft.created"]
    cursor = team.mia.cursor()
    assert succeeded(team.mia.upload(draft, operation)).json() == first
    assert team.mia.events(cursor) == []
    assert team.mia.draft(draft)["last_ordinal"] == 1


@pytest.mark.requirement("upload.idempotent")
def test_after_a_lost_answer_the_same_batch_goes_on_where_it_ended(team: Team) -> None:
    draft = team.mia.new_draft(team.project)
    first = draft.operation("create", path="a.md", body="one\n")
    second = draft.operation("update", body="two\n")
    succeeded(team.mia.upload(draft, first, second))  # this answer is the one that gets lost
    third = draft.operation("update", body="three\n")
    answer = succeeded(team.mia.upload(draft, first, second, third)).json()
    assert answer["accepted"] == [first["operation_id"], second["operation_id"], third["operation_id"]]
    assert answer["draft"]["last_ordinal"] == 3
    assert team.mia.get(f"/drafts/{draft.draft_id}")["state"]["body"] == "three\n"


@pytest.mark.requirement("upload.idempotent")
def test_a_repetition_is_answered_even_when_the_draft_is_merged_by_now(team: Team) -> None:
    draft = team.ada.new_draft(team.project)
    operation = draft.operation("create", path="a.md", body="text\n")
    first = succeeded(team.ada.upload(draft, operation)).json()
    team.ada.publish(draft)
    again = succeeded(team.ada.upload(draft, operation)).json()
    assert again["accepted"] == first["accepted"]
    assert again["draft"]["status"] == "merged"
    refused(team.ada.upload(draft, draft.operation("update", body="late\n")), "draft_not_open", 409)


@pytest.mark.requirement("upload.order")
def test_a_gap_names_the_ordinal_that_is_due(team: Team) -> None:
    draft = team.mia.new_draft(team.project)
    first = draft.operation("create", path="a.md", body="one\n")
    second = draft.operation("update", body="two\n")
    third = draft.operation("update", body="three\n")
    details = refused(team.mia.upload(draft, second), "operation_out_of_order", 409)
    assert details["expected_ordinal"] == 1
    succeeded(team.mia.upload(draft, first))
    details = refused(team.mia.upload(draft, third), "operation_out_of_order", 409)
    assert details["expected_ordinal"] == 2
    succeeded(team.mia.upload(draft, second, third))
    taken = {**second, "operation_id": ids.new_id("lop")}
    details = refused(team.mia.upload(draft, taken), "operation_out_of_order", 409)
    assert details["expected_ordinal"] == 4


@pytest.mark.requirement("upload.order")
def test_a_batch_with_a_hole_in_it_takes_no_effect_at_all(team: Team) -> None:
    draft = team.mia.new_draft(team.project)
    first = draft.operation("create", path="a.md", body="one\n")
    draft.operation("update", body="never sent\n")
    third = draft.operation("update", body="three\n")
    details = refused(team.mia.upload(draft, first, third), "operation_out_of_order", 409)
    assert details["expected_ordinal"] == 2
    refused(team.mia.http.get(f"/drafts/{draft.draft_id}"), "draft_not_found", 404)


@pytest.mark.requirement("upload.mismatch")
def test_the_same_operation_id_with_another_content_is_refused_and_never_applied(team: Team) -> None:
    draft = team.mia.new_draft(team.project)
    operation = draft.operation("create", path="a.md", body="one\n")
    succeeded(team.mia.upload(draft, operation))
    changed = {**operation, "body": "two\n"}
    details = refused(team.mia.upload(draft, changed), "idempotency_mismatch", 422)
    assert details == {"operation_id": operation["operation_id"]}
    assert team.mia.get(f"/drafts/{draft.draft_id}")["state"]["body"] == "one\n"
    elsewhere = team.mia.new_draft(team.project)
    refused(team.mia.upload(elsewhere, operation), "idempotency_mismatch", 422)
    twice = team.mia.new_draft(team.project)
    own = twice.operation("create", path="b.md", body="one\n")
    refused(team.mia.upload(twice, own, {**own, "body": "two\n"}), "idempotency_mismatch", 422)


@pytest.mark.requirement("upload.mismatch")
def test_a_draft_keeps_its_resource_and_scope(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md")
    moved = DraftHandle({**draft.header, "resource_id": ids.new_id("mem")}, draft.installation_id, 1)
    refused(team.mia.upload(moved, moved.operation("update", body="x\n")), "idempotency_mismatch", 422)


def test_two_installations_may_use_the_same_operation_id(team: Team) -> None:
    draft = team.mia.new_draft(team.project)
    operation = draft.operation("create", path="a.md", body="one\n")
    succeeded(team.mia.upload(draft, operation))
    other = Person(team.server, team.rob.caller)
    theirs = other.new_draft(team.project)
    theirs.last_ordinal = 1
    succeeded(other.upload(theirs, operation))


@pytest.mark.requirement("draft.author_only")
def test_only_the_author_sees_a_draft_whatever_the_role_of_others(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md")
    for other in (team.ada, team.rob):
        path = f"/drafts/{draft.draft_id}"
        refused(other.http.get(path), "draft_not_found", 404)
        refused(other.http.delete(path), "draft_not_found", 404)
        refused(other.post(f"{path}/reconciliation", {}), "draft_not_found", 404)
        theirs = DraftHandle(draft.header, other.installation_id, 1)
        refused(other.upload(theirs, theirs.operation("update", body="x\n")), "draft_not_found", 404)
        assert other.get("/drafts")["drafts"] == []
    assert [row["draft_id"] for row in team.mia.get("/drafts")["drafts"]] == [draft.draft_id]


@pytest.mark.requirement("draft.members_only")
def test_only_members_of_the_project_upload(team: Team) -> None:
    stranger = team.person("eve")
    draft = stranger.new_draft(team.project, base=None)
    upload = draft.operation("create", path="a.md", body="x\n")
    refused(stranger.upload(draft, upload), "not_found", 404)
    boss = Person(team.server, team.server.user("boss", role=Role.ADMIN))
    draft = boss.new_draft(team.project)
    refused(boss.upload(draft, draft.operation("create", path="a.md", body="x\n")), "forbidden", 403)
    reader = Person(team.server, team.server.token_for("mia@example.org", team.mia.user_id, read_only=True))
    draft = reader.new_draft(team.project)
    refused(reader.upload(draft, draft.operation("create", path="a.md", body="x\n")), "forbidden", 403)


@pytest.mark.parametrize(
    ("kind", "fields", "code", "status"),
    [
        ("create", {"path": "../a.md", "body": "x\n"}, "invalid_path", 400),
        ("create", {"path": "a.md", "body": " \n"}, "invalid_arguments", 400),
        ("create", {"path": "a.md"}, "invalid_arguments", 400),
        ("update", {"body": "x\n"}, "invalid_arguments", 400),
        ("delete", {}, "invalid_arguments", 400),
        ("create", {"path": "a.md", "body": "x\n", "state": {"exists": False}}, "invalid_arguments", 400),
        ("publish", {}, "invalid_arguments", 400),
    ],
)
def test_an_operation_that_fits_nothing_is_refused_without_a_trace(
    team: Team, kind: str, fields: dict[str, object], code: str, status: int
) -> None:
    cursor = team.mia.cursor()
    draft = team.mia.new_draft(team.project)
    refused(team.mia.upload(draft, draft.operation(kind, **fields)), code, status)
    assert team.mia.get("/drafts")["drafts"] == []
    assert team.mia.cursor() == cursor


def test_a_base_that_is_not_in_the_history_is_named(team: Team) -> None:
    draft = team.mia.new_draft(team.project, base="0" * 64)
    details = refused(
        team.mia.upload(draft, draft.operation("create", path="a.md", body="x\n")), "commit_unknown", 409
    )
    assert details["commit_id"] == "0" * 64


def test_a_create_under_an_existing_id_is_refused(team: Team) -> None:
    published = team.ada.create(team.project, "a.md")
    team.ada.publish(published)
    again = team.mia.new_draft(team.project, resource_id=published.resource_id)
    upload = again.operation("create", path="b.md", body="x\n")
    refused(team.mia.upload(again, upload), "already_exists", 409)
    other = team.server.project(team.server.ada, "Other")
    elsewhere = team.ada.new_draft(other, resource_id=published.resource_id)
    upload = elsewhere.operation("create", path="b.md", body="x\n")
    refused(team.ada.upload(elsewhere, upload), "already_exists", 409)


def test_discarding_is_final_and_may_be_repeated(team: Team) -> None:
    by_operation = team.mia.create(team.project, "a.md")
    team.mia.append(by_operation, "discard")
    assert team.mia.draft(by_operation)["status"] == "discarded"
    refused(
        team.mia.upload(by_operation, by_operation.operation("update", body="x\n")), "draft_not_open", 409
    )
    by_delete = team.mia.create(team.project, "b.md")
    for _ in range(2):
        gone = succeeded(team.mia.http.delete(f"/drafts/{by_delete.draft_id}")).json()
        assert gone["status"] == "discarded"
    listed = team.mia.get("/drafts", params={"status": "open"})["drafts"]
    assert listed == []


def test_lists_of_drafts_go_on_without_a_hole(team: Team) -> None:
    made = {team.mia.create(team.project, f"{number}.md").draft_id for number in range(5)}
    seen: list[str] = []
    cursor = None
    while True:
        page = team.mia.get("/drafts", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        seen += [row["draft_id"] for row in page["drafts"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(made)
