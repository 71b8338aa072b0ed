"""A request with an ``Idempotency-Key`` has one effect, however often it comes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import text
from werkzeug.test import TestResponse

from org_server.services.repeated_requests import KEPT_MS
from org_server.store.unit_of_work import JoinedUnits
from org_server.wiring import ROUTES
from shared_schema.org_contract import FeedEventType, Role
from tests.org_server.harness import Caller, Server, codes
from tests.org_server.people import Person, Team, refused, succeeded

REPLAYED = "Idempotency-Replayed"


def create(caller: Caller, key: str, name: str = "Web") -> TestResponse:
    return caller.request("POST", "/projects", json={"name": name}, headers={"Idempotency-Key": key})


def keyed(person: Person, path: str, body: Any, key: str = "k", **headers: str) -> Any:
    return person.http.post(path, json=body, headers={"Idempotency-Key": key} | headers)


def stored(server: Server) -> list[tuple[Any, ...]]:
    with server.units.engine.connect() as connection:
        rows = connection.execute(text("SELECT user_id, key, status, answer FROM repeated_request"))
        return [tuple(row) for row in rows]


@pytest.mark.requirement("server.repeats.once")
def test_the_same_request_again_has_no_effect_and_the_same_answer(server: Server) -> None:
    first = create(server.ada, "k-1")
    before = (server.feed(), server.audit())
    again = create(server.ada, "k-1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.get_data() == first.get_data()
    assert again.headers["ETag"] == first.headers["ETag"]
    assert (first.headers.get(REPLAYED), again.headers.get(REPLAYED)) == (None, "true")
    assert (server.feed(), server.audit()) == before
    assert len(server.ada.ok("GET", "/projects")["projects"]) == 1


@pytest.mark.requirement("server.repeats.mismatch")
def test_a_key_is_good_for_one_request_only(server: Server) -> None:
    team = Team(server)
    draft = team.mia.create(team.project, "a.md")
    review = team.mia.submit(draft)
    succeeded(keyed(team.rob, f"/reviews/{review['review']['review_id']}/comments", {"body": "one"}))
    other_body = keyed(team.rob, f"/reviews/{review['review']['review_id']}/comments", {"body": "two"})
    refused(other_body, "idempotency_mismatch", 422)
    refused(keyed(team.rob, "/projects", {"name": "Other"}), "idempotency_mismatch", 422)
    merge = f"/reviews/{review['review']['review_id']}/merges"
    body = {"version": team.rob.review(review["review"]["review_id"])["review"]["version"]}
    succeeded(keyed(team.rob, merge, body, "m", **{"If-Match": '"none"'}))
    moved = {"If-Match": f'"{team.rob.ref(team.project)}"'}
    refused(keyed(team.rob, merge, body, "m", **moved), "idempotency_mismatch", 422)
    again = succeeded(keyed(team.rob, merge, body, "m", **{"If-Match": '"none"'}))
    assert again.headers[REPLAYED] == "true"


@pytest.mark.requirement("server.repeats.failure")
def test_a_refused_request_is_not_recorded_and_changes_nothing(server: Server) -> None:
    server.project(server.ada, "Web")
    assert codes([create(server.ada, "k", "web")]) == ["already_exists"]
    assert stored(server) == []
    assert create(server.ada, "k", "Other").status_code == 201


def test_keys_are_per_user(server: Server) -> None:
    bob = server.user("bob")
    assert create(server.ada, "k", "One").status_code == 201
    answer = create(bob, "k", "Two")
    assert (answer.status_code, answer.get_json()["name"]) == (201, "Two")
    assert REPLAYED not in answer.headers


@pytest.mark.parametrize("key", ["", " ", "k" * 256, "schlüssel", "a\tb", "\x7f"])
def test_what_is_no_key_is_refused(server: Server, key: str) -> None:
    assert codes([create(server.ada, key.encode().decode("latin-1"))]) == ["invalid_arguments"]
    assert server.ada.ok("GET", "/projects")["projects"] == []


def test_the_longest_and_a_quoted_key_are_fine(server: Server) -> None:
    assert create(server.ada, "k" * 255, "One").status_code == 201
    assert create(server.ada, '"8e03978e-40d5-43dd-bc93-6894a57f9324"', "Two").status_code == 201


def test_routes_that_create_nothing_ignore_a_key(server: Server) -> None:
    for _ in range(2):
        assert server.ada.get("/me", headers={"Idempotency-Key": "k"}).status_code == 200
    assert stored(server) == []


def test_every_route_that_creates_takes_a_key() -> None:
    routes = [route for table in ROUTES for route in table.routes]
    assert [route.name for route in routes if route.status == 201 and not route.keyed] == []
    assert [route.name for route in routes if route.keyed and route.method != "POST"] == []


@pytest.mark.requirement("server.repeats.kept")
def test_answers_are_forgotten_after_a_day(server: Server) -> None:
    create(server.ada, "old", "One")
    server.clock.advance(KEPT_MS - 10)
    assert create(server.ada, "old", "One").headers[REPLAYED] == "true"
    server.clock.advance(10)
    assert codes([create(server.ada, "old", "One")]) == ["already_exists"]
    create(server.ada, "new", "Two")
    assert [row[1] for row in stored(server)] == ["new"]


@pytest.mark.requirement("server.repeats.secret")
def test_a_secret_is_not_kept_and_its_repetition_says_how_to_go_on(server: Server) -> None:
    def issue() -> TestResponse:
        body = {"user": "ada@example.org", "label": "laptop"}
        return server.ada.request("POST", "/admin/tokens", json=body, headers={"Idempotency-Key": "t"})

    first = issue()
    secret, token_id = first.get_json()["token"], first.get_json()["info"]["token_id"]
    assert secret not in repr(stored(server))
    again = issue()
    assert (again.status_code, codes([again])) == (409, ["already_exists"])
    error = again.get_json()["error"]
    assert error["details"] == {"token_id": token_id}
    assert token_id in error["message"]
    assert secret not in again.get_data(as_text=True)
    labels = [item["label"] for item in server.ada.ok("GET", "/admin/tokens")["tokens"]]
    assert labels.count("laptop") == 1


@pytest.mark.requirement("server.repeats.access")
def test_who_lost_access_since_does_not_get_the_answer_again(server: Server) -> None:
    team = Team(server)
    review = team.mia.submit(team.mia.create(team.project, "a.md"))["review"]["review_id"]
    body = {"body": "a secret of the Project"}
    succeeded(keyed(team.mia, f"/reviews/{review}/comments", body))
    made = succeeded(keyed(team.mia, "/projects", {"name": "Own"}, "own")).json()
    for project in (team.project, made["project_id"]):
        if project == made["project_id"]:
            member = {"email": "ada@example.org", "role": "owner"}
            succeeded(team.mia.post(f"/projects/{project}/members", member))
        succeeded(team.ada.http.delete(f"/projects/{project}/members/{team.mia.user_id}"))
    answer = keyed(team.mia, f"/reviews/{review}/comments", body)
    refused(answer, "not_found", 404)
    assert "secret" not in answer.text
    refused(keyed(team.mia, "/projects", {"name": "Own"}, "own"), "not_found", 404)


@pytest.mark.requirement("server.repeats.access")
def test_a_weaker_token_of_the_same_user_does_not_get_the_answer(server: Server) -> None:
    reading = server.token_for("ada@example.org", server.ada.user_id, read_only=True)
    user = {"email": "new@example.org"}
    headers = {"Idempotency-Key": "u"}
    assert server.ada.request("POST", "/admin/users", json=user, headers=headers).status_code == 201
    again = reading.request("POST", "/admin/users", json=user, headers=headers)
    assert codes([again]) == ["forbidden"]
    chief = server.user("chief", Role.ADMIN)
    assert chief.request("POST", "/admin/users", json={"email": "x@y"}, headers=headers).status_code == 201
    with server.units.engine.begin() as connection:
        connection.execute(text("UPDATE user_account SET role = 'member' WHERE email LIKE 'chief%'"))
    again = chief.request("POST", "/admin/users", json={"email": "x@y"}, headers=headers)
    assert codes([again]) == ["forbidden"]


@pytest.mark.requirement("server.repeats.concurrent")
def test_of_concurrent_repetitions_exactly_one_acts(server: Server) -> None:
    answers: list[TestResponse] = []
    barrier = threading.Barrier(8)

    def send() -> None:
        barrier.wait(30)
        answers.append(create(server.ada, "same"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [answer.status_code for answer in answers] == [201] * 8
    assert len({answer.get_data() for answer in answers}) == 1
    assert sum(REPLAYED in answer.headers for answer in answers) == 7
    assert server.audit().count("project.created") == 1
    assert len(server.ada.ok("GET", "/projects")["projects"]) == 1


@pytest.mark.requirement("server.repeats.atomic")
def test_effect_and_answer_are_written_together_or_not_at_all(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (server.feed(), server.audit())
    monkeypatch.setattr("org_server.http.repeats._done", lambda *_: 1 / 0)
    assert create(server.ada, "k").status_code == 500
    monkeypatch.undo()
    assert (server.feed(), server.audit(), stored(server)) == (*before, [])
    assert create(server.ada, "k").status_code == 201


@pytest.mark.requirement("server.repeats.atomic")
def test_a_part_that_fails_without_failing_the_request_is_taken_back_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(server)
    draft = team.mia.create(team.project, "a.md")
    review = team.mia.submit(draft, org_contribution=[{"draft_id": draft.draft_id}])["review"]
    monkeypatch.setattr("org_server.services.contribute.begin", lambda *_: 1 / 0)
    merge = f"/reviews/{review['review_id']}/merges"
    headers = {"If-Match": '"none"'}
    first = succeeded(keyed(team.rob, merge, {"version": review["version"]}, **headers))
    again = succeeded(keyed(team.rob, merge, {"version": review["version"]}, **headers))
    assert again.content == first.content
    assert team.mia.review(review["review_id"])["review"]["status"] == "merged"
    with server.units.engine.connect() as connection:
        seqs = list(connection.execute(text("SELECT seq FROM feed_event ORDER BY seq")).scalars())
    assert seqs == list(range(1, len(seqs) + 1))


def _fail(joined: JoinedUnits) -> None:
    with joined.write() as part:
        part.emit(FeedEventType.REF_MOVED, project_id="prj_lost")
        part.session.flush()
        raise ZeroDivisionError


def test_a_part_of_a_transaction_can_fail_alone(server: Server) -> None:
    before = server.feed()
    with server.units.write() as uow:
        joined = JoinedUnits(server.units, uow)
        with joined.write() as part:
            part.emit(FeedEventType.REF_MOVED, project_id="prj_kept")
        with pytest.raises(ZeroDivisionError):
            _fail(joined)
        with joined.read() as part, joined.write() as inner:
            assert inner is part
            inner.emit(FeedEventType.REF_MOVED, project_id="prj_late")
    assert [event[1] for event in server.feed()[len(before) :]] == ["prj_kept", "prj_late"]
    with server.units.engine.connect() as connection:
        seqs = list(connection.execute(text("SELECT seq FROM feed_event ORDER BY seq")).scalars())
    assert seqs == list(range(1, len(seqs) + 1))
