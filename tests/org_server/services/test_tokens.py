from __future__ import annotations

import hashlib
import re

import pytest
from sqlalchemy import text
from werkzeug.test import TestResponse

from shared_schema.org_contract import API_PREFIX, Role
from tests.org_server.harness import Server, codes


def me(server: Server, authorization: str) -> TestResponse:
    headers = {"Authorization": authorization} if authorization else {}
    return server.app.test_client().get(f"{API_PREFIX}/me", headers=headers)


@pytest.mark.requirement("server.tokens.secret")
def test_a_token_has_256_random_bits_and_only_its_hash_is_stored(server: Server) -> None:
    issued = server.ada.ok("POST", "/admin/tokens", json={"user": "ada@example.org", "label": "laptop"})
    assert re.fullmatch(r"ilt_[A-Za-z0-9_-]{43}", issued["token"])
    with server.units.engine.connect() as connection:
        for table in ("token", "audit_event", "user_account", "org", "feed_event"):
            for row in connection.execute(text(f"SELECT * FROM {table}")):  # noqa: S608  # fixed names
                assert issued["token"] not in repr(row)
                assert issued["token"][4:] not in repr(row)
        hashes = set(connection.execute(text("SELECT hash FROM token")).scalars())
    assert hashlib.sha256(issued["token"].encode()).hexdigest() in hashes
    listed = server.ada.get("/admin/tokens").get_data(as_text=True)
    assert issued["token"] not in listed
    assert not any(digest in listed for digest in hashes)


@pytest.mark.requirement("server.tokens.refused")
@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic abc", "Bearer ilt_short", "Bearer ilt_" + "A" * 43, "Bearer tokén"],
)
def test_a_request_without_a_good_token_is_unauthenticated(server: Server, authorization: str) -> None:
    answer = me(server, authorization)
    assert (answer.status_code, codes([answer])) == (401, ["unauthenticated"])
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.requirement("server.tokens.refused")
def test_revoked_expired_and_disabled_are_refused_alike(server: Server) -> None:
    bob = server.user("bob")
    expiring = server.token_for(bob.email, bob.user_id, expires_in_days=1)
    revoked = server.token_for(bob.email, bob.user_id)
    assert codes(caller.get("/me") for caller in (bob, expiring, revoked)) == ["200"] * 3

    server.clock.advance(24 * 60 * 60 * 1000)
    assert server.ada.delete(f"/admin/tokens/{revoked.token_id}").status_code == 204
    late, ended, unknown = expiring.get("/me"), revoked.get("/me"), me(server, "Bearer ilt_" + "A" * 43)
    assert codes([bob.get("/me"), late, ended]) == ["200", "unauthenticated", "unauthenticated"]
    messages = {answer.get_json()["error"]["message"] for answer in (late, ended, unknown)}
    assert len(messages) == 1

    server.ada.patch(f"/admin/users/{bob.user_id}", {"disabled": True}, 1)
    assert codes([bob.get("/me")]) == ["unauthenticated"]
    server.ada.patch(f"/admin/users/{bob.user_id}", {"disabled": False}, 2)
    assert codes([bob.get("/me")]) == ["200"]


@pytest.mark.requirement("server.permissions.read_only_token")
def test_a_read_only_token_may_read_but_not_write(server: Server) -> None:
    project = server.project(server.ada)
    reader = server.token_for(server.ada.email, server.ada.user_id, read_only=True)
    assert reader.ok("GET", "/me")["read_only"] is True
    assert codes([reader.get(f"/projects/{project}")]) == ["200"]
    assert (
        codes(
            [
                reader.post("/projects", {"name": "Other"}),
                reader.patch(f"/projects/{project}", {"name": "Other"}, 1),
                reader.delete(f"/projects/{project}", 1),
                reader.put(f"/projects/{project}/org-selections", {"resource_ids": []}, 0),
                reader.post(f"/projects/{project}/members", {"email": "ada@example.org"}),
            ]
        )
        == ["forbidden"] * 5
    )


@pytest.mark.requirement("server.permissions.limited_token")
def test_a_token_limited_to_a_project_sees_no_other(server: Server) -> None:
    inside, outside = server.project(server.ada, "Inside"), server.project(server.ada, "Outside")
    limited = server.token_for(server.ada.email, server.ada.user_id, project_ids=[inside])
    assert [row["project_id"] for row in limited.ok("GET", "/projects")["projects"]] == [inside]
    assert [row["project_id"] for row in limited.ok("GET", "/me")["projects"]] == [inside]
    assert codes(
        [
            limited.get(f"/projects/{inside}"),
            limited.get(f"/projects/{outside}"),
            limited.get("/org/memories"),
        ]
    ) == ["200", "not_found", "200"]
    assert codes(
        [limited.get(f"/org/memories?project_id={outside}"), limited.post("/projects", {"name": "New"})]
    ) == ["not_found", "forbidden"]


def test_a_token_is_limited_only_to_projects_that_exist(server: Server) -> None:
    for wrong in ([], ["prj_unknown"]):
        answer = server.ada.post("/admin/tokens", {"user": "ada@example.org", "project_ids": wrong})
        assert codes([answer]) == ["invalid_arguments"]


@pytest.mark.requirement("server.permissions.escalation")
def test_an_admin_cannot_act_as_an_owner_by_a_token(server: Server) -> None:
    admin = server.user("eve", Role.ADMIN)
    owners = server.ada.ok("GET", "/admin/tokens")["tokens"][0]["token_id"]
    assert codes(
        [
            admin.post("/admin/tokens", {"user": "ada@example.org"}),
            admin.delete(f"/admin/tokens/{owners}"),
            admin.post("/admin/tokens", {"user": "eve@example.org"}),
        ]
    ) == ["forbidden", "forbidden", "201"]


def test_the_last_use_is_recorded_but_not_at_every_request(server: Server) -> None:
    def last_used() -> int:
        return int(server.ada.ok("GET", "/admin/tokens")["tokens"][0]["last_used_at"])

    first = last_used()
    server.clock.advance(30_000)
    assert last_used() == first
    server.clock.advance(60_000)
    assert last_used() > first


def test_tokens_are_listed_by_page_and_by_user(server: Server) -> None:
    bob = server.user("bob")
    for _ in range(3):
        server.token_for(bob.email, bob.user_id)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": "2", "user": "BOB@example.org"} | ({"cursor": cursor} if cursor else {})
        page = server.ada.ok("GET", "/admin/tokens", query_string=query)
        seen += [token["token_id"] for token in page["tokens"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert len(seen) == len(set(seen)) == 4
    assert bob.token_id == seen[0]
