from __future__ import annotations

import pytest

from shared_schema.org_contract import Role
from tests.org_server.harness import Server, codes


def test_me_tells_roles_capabilities_and_projects(server: Server) -> None:
    bob = server.user("bob")
    project = server.project(server.ada, "Web", member=bob)
    server.project(server.ada, "Other")
    me = bob.ok("GET", "/me")
    assert (me["email"], me["org_name"], me["org_role"]) == ("bob@example.org", "Acme", "member")
    assert me["projects"] == [{"project_id": project, "name": "Web", "role": "member"}]
    assert me["capabilities"] == ["org_memory.read", "project.create"]
    assert "org_review.merge" in server.ada.ok("GET", "/me")["capabilities"]


def test_an_address_is_one_user_whatever_its_case(server: Server) -> None:
    created = server.ada.post("/admin/users", {"email": "Bob@Example.org", "name": "Bob"})
    assert (created.status_code, created.get_json()["email"]) == (201, "Bob@Example.org")
    again = server.ada.post("/admin/users", {"email": "bob@example.ORG"})
    assert (again.status_code, codes([again])) == (409, ["already_exists"])


@pytest.mark.parametrize(
    "email", ["bob", "bob@", "@example.org", "a b@example.org", "a@b@c", "x" * 250 + "@a.org"]
)
def test_what_is_no_address_is_refused(server: Server, email: str) -> None:
    assert codes([server.ada.post("/admin/users", {"email": email})]) == ["invalid_arguments"]


@pytest.mark.requirement("server.last_owner.org")
def test_the_last_org_owner_can_neither_be_demoted_nor_disabled(server: Server) -> None:
    path = f"/admin/users/{server.ada.user_id}"
    for change in ({"role": "admin"}, {"role": "member"}, {"disabled": True}):
        answer = server.ada.patch(path, change, 1)
        assert (answer.status_code, codes([answer])) == (409, ["last_owner"])
    second = server.user("grace", Role.OWNER)
    assert server.ada.patch(path, {"role": "admin"}, 1).get_json()["role"] == "admin"
    assert codes([second.patch(f"/admin/users/{second.user_id}", {"disabled": True}, 1)]) == ["last_owner"]


@pytest.mark.requirement("server.last_owner.org")
def test_a_disabled_owner_does_not_count_as_one(server: Server) -> None:
    second = server.user("grace", Role.OWNER)
    server.ada.patch(f"/admin/users/{second.user_id}", {"disabled": True}, 1)
    assert codes([server.ada.patch(f"/admin/users/{server.ada.user_id}", {"role": "member"}, 1)]) == [
        "last_owner"
    ]


@pytest.mark.requirement("server.permissions.escalation")
def test_an_admin_neither_makes_nor_touches_owners(server: Server) -> None:
    admin, bob = server.user("eve", Role.ADMIN), server.user("bob")
    assert codes(
        [
            admin.post("/admin/users", {"email": "x@example.org", "role": "owner"}),
            admin.patch(f"/admin/users/{bob.user_id}", {"role": "owner"}, 1),
            admin.patch(f"/admin/users/{admin.user_id}", {"role": "owner"}, 1),
            admin.patch(f"/admin/users/{server.ada.user_id}", {"disabled": True}, 1),
            admin.patch(f"/admin/users/{bob.user_id}", {"role": "admin"}, 1),
        ]
    ) == ["forbidden"] * 4 + ["200"]


@pytest.mark.requirement("server.permissions.matrix")
def test_members_see_nothing_of_the_administration(server: Server) -> None:
    bob = server.user("bob")
    assert (
        codes(
            [
                bob.get("/admin/users"),
                bob.get(f"/admin/users/{bob.user_id}"),
                bob.post("/admin/users", {"email": "x@example.org"}),
                bob.patch(f"/admin/users/{bob.user_id}", {"role": "owner"}, 1),
                bob.get("/admin/tokens"),
                bob.post("/admin/tokens", {"user": "bob@example.org"}),
                bob.delete(f"/admin/tokens/{bob.token_id}"),
                bob.get("/admin/policy"),
                bob.patch("/admin/policy", {"required_approvals": 0}, 1),
                bob.get("/admin/audit"),
            ]
        )
        == ["forbidden"] * 10
    )


def test_a_stale_version_of_a_user_or_the_policy_is_a_conflict(server: Server) -> None:
    bob = server.user("bob")
    server.ada.patch(f"/admin/users/{bob.user_id}", {"role": "admin"}, 1)
    server.ada.patch("/admin/policy", {"required_approvals": 2}, 1)
    for path in (f"/admin/users/{bob.user_id}", "/admin/policy"):
        body = {"role": "member"} if "users" in path else {"required_approvals": 3}
        answer = server.ada.patch(path, body, 1)
        assert (answer.status_code, codes([answer])) == (409, ["version_conflict"])
        assert answer.get_json()["error"]["details"] == {"expected": 1, "actual": 2}


def test_a_policy_change_keeps_what_it_does_not_name(server: Server) -> None:
    server.ada.patch("/admin/policy", {"required_approvals": 2}, 1)
    changed = server.ada.patch("/admin/policy", {"allow_self_approval": False}, 2).get_json()
    assert changed == {"policy": {"required_approvals": 2, "allow_self_approval": False}, "version": 3}
    assert codes([server.ada.patch("/admin/policy", {"required_approvals": 11}, 3)]) == ["invalid_arguments"]


@pytest.mark.requirement("server.audit")
def test_every_administrative_action_is_audited_newest_first(server: Server) -> None:
    bob = server.user("bob")
    project = server.project(server.ada, "Web", member=bob)
    server.ada.patch(f"/projects/{project}", {"name": "Site"}, 1)
    server.ada.patch(f"/admin/users/{bob.user_id}", {"role": "admin"}, 1)
    server.ada.patch("/admin/policy", {"required_approvals": 2}, 1)
    server.ada.patch(f"/projects/{project}/members/{bob.user_id}", {"role": "admin"}, "")
    server.ada.delete(f"/projects/{project}/members/{bob.user_id}")
    server.ada.put(f"/projects/{project}/org-selections", {"resource_ids": []}, 0)
    server.ada.delete(f"/admin/tokens/{bob.token_id}")
    server.ada.delete(f"/projects/{project}", 2)
    expected = [
        "project.deleted",
        "token.revoked",
        "selection.changed",
        "member.removed",
        "member.changed",
        "policy.changed",
        "user.changed",
        "project.changed",
        "member.added",
        "project.created",
    ]
    events = server.ada.ok("GET", "/admin/audit", query_string={"limit": "10"})
    assert [event["action"] for event in events["events"]] == expected
    assert {event["actor_id"] for event in events["events"]} == {server.ada.user_id}
    rest = server.ada.ok("GET", "/admin/audit", query_string={"cursor": events["next_cursor"]})
    assert [event["action"] for event in rest["events"]] == [
        "token.issued",
        "user.added",
        "token.issued",
        "user.added",
        "org.founded",
    ]


def test_a_refused_change_is_neither_audited_nor_told(server: Server) -> None:
    before = (server.audit(), server.feed())
    server.ada.patch(f"/admin/users/{server.ada.user_id}", {"role": "member"}, 1)
    server.ada.post("/projects", {"name": "x", "guide_path": "../up"})
    assert (server.audit(), server.feed()) == before


def test_users_come_by_page_until_there_are_no_more(server: Server) -> None:
    for name in ("zoe", "bob", "Eve", "émile", "mallory"):
        server.user(name)
    seen: list[str] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        page = server.ada.ok("GET", "/admin/users", query_string=query)
        seen += [user["email"] for user in page["users"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert len(seen) == len(set(seen)) == 6


@pytest.mark.parametrize(
    "cursor", ["x", "", "W10=", "WyJhdWRpdCIsMV0=", "WyJ1c2VycyIsMV0=", "é", "A" * 5_000]
)
def test_a_cursor_of_another_list_is_refused(server: Server, cursor: str) -> None:
    assert codes([server.ada.get("/admin/users", query_string={"cursor": cursor})]) == ["invalid_arguments"]
