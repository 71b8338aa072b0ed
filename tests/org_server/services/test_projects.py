from __future__ import annotations

import pytest

from shared_schema.org_contract import Role
from tests.org_server.harness import Server, codes


def test_who_creates_a_project_owns_it(server: Server) -> None:
    bob = server.user("bob")
    created = bob.post("/projects", {"name": " Web "})
    assert created.status_code == 201
    project = created.get_json()
    assert (project["name"], project["role"], project["version"]) == ("Web", "owner", 1)
    assert project["ref"] == {"owner": project["project_id"], "commit_id": None, "seq": 0}
    assert project["guide_path"] == "CLUMSIES.md"
    assert bob.ok("GET", f"/projects/{project['project_id']}") == project
    assert server.ada.ok("GET", f"/projects/{project['project_id']}")["role"] is None


@pytest.mark.requirement("server.projects.names")
@pytest.mark.parametrize("twin", ["web", "WEB", " Web", "Wéb", "We\u0301b"])
def test_project_names_are_unique_whatever_their_case_and_form(server: Server, twin: str) -> None:
    first = "Wéb" if "b" in twin and twin not in {"web", "WEB", " Web"} else "Web"
    project = server.project(server.ada, first)
    answer = server.ada.post("/projects", {"name": twin})
    assert (answer.status_code, codes([answer])) == (409, ["already_exists"])
    other = server.project(server.ada, "Other")
    assert codes([server.ada.patch(f"/projects/{other}", {"name": twin}, 1)]) == ["already_exists"]
    renamed = server.ada.patch(f"/projects/{project}", {"name": twin}, 1)
    assert renamed.get_json()["name"] == twin.strip()


@pytest.mark.parametrize("name", ["", " ", "\t", "a\nb", "a\u202eb", "x" * 121])
def test_a_name_that_cannot_be_read_is_refused(server: Server, name: str) -> None:
    assert codes([server.ada.post("/projects", {"name": name})]) == ["invalid_arguments"]


@pytest.mark.requirement("server.projects.guide_path")
def test_the_guide_path_obeys_the_path_rules(server: Server) -> None:
    answer = server.ada.post("/projects", {"name": "Web", "guide_path": "docs/../up.md"})
    assert answer.get_json()["error"]["details"]["rule"] == "segment_dot"
    project = server.project(server.ada)
    assert codes([server.ada.patch(f"/projects/{project}", {"guide_path": "/abs.md"}, 1)]) == ["invalid_path"]
    changed = server.ada.patch(f"/projects/{project}", {"guide_path": "guide/e\u0301.md"}, 1).get_json()
    assert changed["guide_path"] == "guide/é.md"


@pytest.mark.requirement("server.projects.invisible")
def test_an_invisible_project_is_not_found_by_any_route(server: Server) -> None:
    project, bob = server.project(server.ada), server.user("bob")
    unknown = "prj_unknown"
    for missing in (project, unknown):
        answers = [
            bob.get(f"/projects/{missing}"),
            bob.patch(f"/projects/{missing}", {"name": "Mine"}, 1),
            bob.delete(f"/projects/{missing}", 1),
            bob.get(f"/projects/{missing}/members"),
            bob.post(f"/projects/{missing}/members", {"email": "bob@example.org"}),
            bob.patch(f"/projects/{missing}/members/{bob.user_id}", {"role": "owner"}, ""),
            bob.delete(f"/projects/{missing}/members/{bob.user_id}"),
            bob.get(f"/projects/{missing}/memories"),
            bob.get(f"/projects/{missing}/memories/mem_x"),
            bob.get(f"/projects/{missing}/adaptations"),
            bob.get(f"/projects/{missing}/org-selections"),
            bob.put(f"/projects/{missing}/org-selections", {"resource_ids": []}, 0),
            bob.get(f"/org/memories?project_id={missing}"),
        ]
        assert codes(answers) == ["not_found"] * len(answers)
        assert len({answer.get_json()["error"]["message"] for answer in answers}) == 1
    assert bob.ok("GET", "/projects")["projects"] == []


def test_members_see_a_project_but_only_admins_change_it_and_owners_delete_it(server: Server) -> None:
    bob, eve = server.user("bob"), server.user("eve")
    project = server.project(server.ada, "Web", member=bob, admin=eve)
    change = {"required_approvals": 2, "allow_self_approval": False}
    assert codes([bob.patch(f"/projects/{project}", change, 1)]) == ["forbidden"]
    changed = eve.patch(f"/projects/{project}", change, 1).get_json()
    assert changed["policy"] == change
    assert codes([bob.delete(f"/projects/{project}", 2), eve.delete(f"/projects/{project}", 2)]) == [
        "forbidden",
        "forbidden",
    ]
    assert server.ada.delete(f"/projects/{project}", 2).status_code == 204


def test_a_stale_version_of_a_project_is_a_conflict(server: Server) -> None:
    project = server.project(server.ada)
    server.ada.patch(f"/projects/{project}", {"name": "Site"}, 1)
    for answer in (
        server.ada.patch(f"/projects/{project}", {"name": "Late"}, 1),
        server.ada.delete(f"/projects/{project}", 1),
    ):
        assert (answer.status_code, codes([answer])) == (409, ["version_conflict"])
        assert answer.get_json()["error"]["details"] == {"expected": 1, "actual": 2}


def test_a_change_that_changes_nothing_is_no_new_version(server: Server) -> None:
    project = server.project(server.ada)
    before = server.feed()
    assert server.ada.patch(f"/projects/{project}", {"name": "Web"}, 1).get_json()["version"] == 1
    assert server.feed() == before


@pytest.mark.requirement("server.projects.deleted")
def test_a_deleted_project_is_gone_for_everybody_and_frees_its_name(server: Server) -> None:
    bob = server.user("bob")
    project = server.project(server.ada, "Web", member=bob)
    assert server.ada.delete(f"/projects/{project}", 1).status_code == 204
    assert codes(caller.get(f"/projects/{project}") for caller in (bob, server.ada)) == [
        "not_found",
        "not_found",
    ]
    assert bob.ok("GET", "/me")["projects"] == []
    assert server.ada.ok("GET", "/projects")["projects"] == []
    assert server.feed()[-2:] == [("membership.changed", project)] * 2
    assert server.project(server.ada, "Web") != project


def test_projects_are_listed_by_page_and_found_by_name(server: Server) -> None:
    bob = server.user("bob")
    for name in ("delta", "Alpha", "charlie", "Bravo"):
        server.project(server.ada, name, member=bob)
    server.project(server.ada, "Hidden")
    seen: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = bob.ok("GET", "/projects", query_string=query)
        seen += [project["name"] for project in page["projects"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == ["Alpha", "Bravo", "charlie", "delta"]
    found = bob.ok("GET", "/projects", query_string={"name": "ALPHA"})["projects"]
    assert [(project["name"], project["role"]) for project in found] == [("Alpha", "member")]
    assert bob.ok("GET", "/projects", query_string={"name": "Hidden"})["projects"] == []
    assert len(server.ada.ok("GET", "/projects")["projects"]) == 5


def test_members_are_added_by_address_changed_and_removed(server: Server) -> None:
    bob = server.user("bob")
    project = server.project(server.ada)
    added = server.ada.post(f"/projects/{project}/members", {"email": "BOB@example.org"})
    assert added.status_code == 201
    assert added.get_json() == {
        "user_id": bob.user_id,
        "email": "bob@example.org",
        "name": "bob",
        "role": "member",
    }
    again = server.ada.post(f"/projects/{project}/members", {"email": "bob@example.org"})
    assert codes([again]) == ["already_exists"]
    path = f"/projects/{project}/members/{bob.user_id}"
    assert server.ada.patch(path, {"role": "admin"}, "").get_json()["role"] == "admin"
    listed = bob.ok("GET", f"/projects/{project}/members")["members"]
    assert [(member["email"], member["role"]) for member in listed] == [
        ("ada@example.org", "owner"),
        ("bob@example.org", "admin"),
    ]
    assert server.ada.delete(path).status_code == 204
    assert codes([server.ada.delete(path), bob.get(f"/projects/{project}")]) == ["not_found", "not_found"]


@pytest.mark.requirement("server.members.unknown")
def test_only_active_users_of_the_organization_become_members(server: Server) -> None:
    gone, project = server.user("gone"), server.project(server.ada)
    server.ada.patch(f"/admin/users/{gone.user_id}", {"disabled": True}, 1)
    for email, problem in (
        ("nobody@example.org", "is not a user of this Organization"),
        ("gone@example.org", "is disabled in this Organization"),
    ):
        answer = server.ada.post(f"/projects/{project}/members", {"email": email})
        assert (answer.status_code, codes([answer])) == (400, ["invalid_arguments"])
        error = answer.get_json()["error"]
        assert error["details"] == [{"field": "email", "problem": problem}]
        assert "interleaf-server user add" in error["message"]


@pytest.mark.requirement("server.last_owner.project")
def test_the_last_project_owner_can_neither_be_demoted_nor_removed(server: Server) -> None:
    bob = server.user("bob")
    project = server.project(server.ada, "Web", member=bob)
    path = f"/projects/{project}/members/{server.ada.user_id}"
    assert (
        codes([server.ada.patch(path, {"role": "admin"}, ""), server.ada.delete(path)]) == ["last_owner"] * 2
    )
    server.ada.patch(f"/projects/{project}/members/{bob.user_id}", {"role": "owner"}, "")
    assert codes([server.ada.patch(path, {"role": "member"}, "")]) == ["200"]
    assert codes([bob.delete(f"/projects/{project}/members/{bob.user_id}")]) == ["last_owner"]


@pytest.mark.requirement("server.permissions.escalation")
def test_a_project_admin_neither_makes_nor_removes_owners(server: Server) -> None:
    eve, bob, owner = server.user("eve"), server.user("bob"), server.user("olga")
    project = server.project(owner, "Web", admin=eve, member=bob)
    members = f"/projects/{project}/members"
    server.user("new")
    assert codes(
        [
            eve.post(members, {"email": "new@example.org", "role": "owner"}),
            eve.patch(f"{members}/{eve.user_id}", {"role": "owner"}, ""),
            eve.patch(f"{members}/{owner.user_id}", {"role": "member"}, ""),
            eve.delete(f"{members}/{owner.user_id}"),
            eve.patch(f"{members}/{bob.user_id}", {"role": "admin"}, ""),
        ]
    ) == ["forbidden"] * 4 + ["200"]
    admin = server.user("root", Role.ADMIN)
    assert codes([admin.patch(f"{members}/{bob.user_id}", {"role": "owner"}, "")]) == ["200"]


def test_membership_events_name_project_and_user(server: Server) -> None:
    bob = server.user("bob")
    project = server.project(server.ada, "Web", member=bob)
    server.ada.delete(f"/projects/{project}/members/{bob.user_id}")
    assert server.feed() == [("membership.changed", project)] * 3
