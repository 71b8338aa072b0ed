"""Projects, members, selections, Reviews and guides against the real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from client.credentials import FileCredentials
from shared_schema.memory import Scope
from tests.client.cli.terminal import Terminal
from tests.client.sync_world import URL, Machine
from tests.org_server.harness import Published, Server


@pytest.mark.requirement("cli.json")
def test_a_created_project_has_id_and_name_and_wakes_the_daemon(ada: Terminal) -> None:
    created = ada.json("project", "create", "Rocket")
    assert created["id"].startswith("prj_")
    assert created["name"] == "Rocket"
    assert ada.woken == ["sync"]
    assert [item["id"] for item in ada.json("project", "list")["projects"]] == [created["id"]]
    assert ada.json("project", "show", "Rocket")["id"] == created["id"]
    shown = ada.text("project", "show", created["id"])
    assert "CLUMSIES.md" in shown
    assert "owner" in shown


@pytest.mark.requirement("cli.project-names")
def test_a_project_is_named_by_id_by_name_or_by_the_directory(
    org: Server, terminal_of: Callable[..., Terminal]
) -> None:
    project_id = org.project(org.ada, "Rocket")
    ada = terminal_of(org.ada, bound=project_id)
    for named in (["--project", project_id], ["--project", "Rocket"], []):
        assert ada.json("guidelines", "path", *named) == {
            "project_id": project_id,
            "guide_path": "CLUMSIES.md",
        }
    error = ada.error("guidelines", "path", "--project", "Racket")
    assert error["code"] == "not_found"
    assert "project list" in ada.text("guidelines", "path", "--project", "Racket", status=1)


@pytest.mark.requirement("cli.json")
def test_members_are_added_changed_listed_and_removed(org: Server, ada: Terminal) -> None:
    org.project(org.ada, "Rocket")
    maya = org.user("maya")
    assert ada.json("members", "add", "Rocket", maya.email, "--role", "admin")["role"] == "admin"
    assert ada.json("members", "role", "Rocket", maya.email.upper(), "member")["role"] == "member"
    members = ada.json("members", "list", "Rocket")["members"]
    assert {(member["email"], member["role"]) for member in members} == {
        ("ada@example.org", "owner"),
        ("maya@example.org", "member"),
    }
    assert ada.json("members", "remove", "Rocket", maya.email)["email"] == maya.email
    assert ada.error("members", "remove", "Rocket", maya.email)["code"] == "not_found"
    assert ada.error("members", "remove", "Rocket", "ada@example.org")["code"] == "last_owner"


@pytest.mark.requirement("cli.selection")
def test_organization_documents_are_selected_by_id_or_path(org: Server, ada: Terminal) -> None:
    project_id = org.project(org.ada, "Rocket")
    review, naming = Published("guides/review.md"), Published("guides/naming.md")
    org.publish(org.org_id, review, naming)
    added = ada.json("selection", "add", review.resource_id, "guides/naming.md", "--project", project_id)
    assert {item["path"] for item in added["resources"]} == {"guides/review.md", "guides/naming.md"}
    again = ada.json("selection", "add", "guides/naming.md", "--project", project_id)
    assert again["revision"] == added["revision"]
    left = ada.json("selection", "remove", "guides/review.md", "--project", project_id)
    assert [item["path"] for item in left["resources"]] == ["guides/naming.md"]
    available = ada.json("selection", "list", "--available", "--project", project_id)["resources"]
    assert {item["path"]: item["selected"] for item in available} == {
        "guides/review.md": False,
        "guides/naming.md": True,
    }
    missing = ada.error("selection", "add", "no.md", "guides/review.md", "other.md", "--project", project_id)
    assert missing["code"] == "memory_resource_not_found"
    assert missing["details"]["missing"] == ["no.md", "other.md"]


@pytest.mark.requirement("cli.selection")
def test_a_selection_that_moved_meanwhile_keeps_both_changes(org: Server, ada: Terminal) -> None:
    project_id = org.project(org.ada, "Rocket")
    mine, other = Published("mine.md"), Published("other.md")
    org.publish(org.org_id, mine, other)

    def first_somebody_else(_request: httpx.Request, send: Callable[[], httpx.Response]) -> httpx.Response:
        revision = org.ada.ok("GET", f"/projects/{project_id}/org-selections")["revision"]
        answer = org.ada.put(
            f"/projects/{project_id}/org-selections", {"resource_ids": [other.resource_id]}, f'"{revision}"'
        )
        assert answer.status_code == 200
        return send()

    taken: list[str] = []

    def once(request: httpx.Request) -> Any:
        if request.method == "PUT" and not taken:
            taken.append("yes")
            return first_somebody_else
        return None

    ada.network.standing = once
    added = ada.json("selection", "add", "mine.md", "--project", project_id)
    assert {item["path"] for item in added["resources"]} == {"mine.md", "other.md"}


@pytest.mark.requirement("guide.use")
def test_an_organization_document_becomes_the_guide(org: Server, ada: Terminal) -> None:
    project_id = org.project(org.ada, "Rocket")
    org.publish(org.org_id, Published("handbook/memory.md"))
    used = ada.json("guidelines", "use", "handbook/memory.md", "--project", "Rocket")
    assert used["guide_path"] == "handbook/memory.md"
    assert ada.json("guidelines", "path", "--project", "Rocket")["guide_path"] == "handbook/memory.md"
    selected = ada.json("selection", "list", "--project", project_id)["resources"]
    assert [item["path"] for item in selected] == ["handbook/memory.md"]
    assert ada.json("guidelines", "path", "GUIDE.md", "--project", "Rocket")["guide_path"] == "GUIDE.md"
    assert ada.error("guidelines", "path", "../x.md", "--project", "Rocket")["code"] == "invalid_path"


@pytest.fixture
def review(org: Server, machine_of: Callable[..., Machine]) -> Callable[..., str]:
    """Opens a Review of a new document with this text, by a member."""
    project_id = org.project(org.ada, "Rocket", member=org.user("maya"))
    maya = org.token_for("maya@example.org", _member(org, project_id, "maya@example.org"))
    machine = machine_of(maya)
    machine.settle()

    def submit(body: str = "# Outage\n\nNew text.\n", path: str = "runbooks/outage.md") -> str:
        draft = machine.create(project_id, path, body, Scope.PROJECT)
        machine.settle()
        asked = {
            "project_id": project_id,
            "scope": "project",
            "draft_ids": [draft.draft_id],
            "title": "Outages",
        }
        name: str = maya.ok("POST", "/reviews", json=asked)["review"]["review_id"]
        return name

    return submit


def _member(org: Server, project_id: str, email: str) -> str:
    members = org.ada.ok("GET", f"/projects/{project_id}/members")["members"]
    user_id: str = next(member["user_id"] for member in members if member["email"] == email)
    return user_id


@pytest.mark.requirement("cli.review")
def test_a_review_is_listed_shown_commented_and_merged(ada: Terminal, review: Callable[..., str]) -> None:
    name = review()
    assert [item["review_id"] for item in ada.json("review", "list", "--status", "open")["reviews"]] == [name]
    assert name in ada.text("review", "list")
    assert "+New text." in ada.text("review", "diff", name).splitlines()
    assert ada.json("review", "comment", name, "Which cluster?")["body"] == "Which cluster?"
    shown = ada.text("review", "show", name)
    for expected in ("Outages", "maya@example.org", "create runbooks/outage.md", "Which cluster?"):
        assert expected in shown
    merged = ada.json("review", "merge", name)
    assert (merged["review_id"], merged["status"]) == (name, "merged")
    assert merged["commit_id"]
    assert ada.woken == ["sync"]
    assert ada.error("review", "merge", name)["code"] == "review_closed"
    assert ada.json("review", "list", "--status", "open")["reviews"] == []


@pytest.mark.requirement("cli.review")
def test_a_review_is_approved_rejected_and_withdrawn(
    org: Server, ada: Terminal, review: Callable[..., str], terminal_of: Callable[..., Terminal]
) -> None:
    first, second, third = (review(path=f"{number}.md") for number in range(3))
    approved = ada.json("review", "approve", first, "--comment", "Checked")
    assert (approved["review_id"], approved["status"]) == (first, "approved")
    assert "Checked" in ada.text("review", "show", first)
    assert ada.json("review", "reject", second)["status"] == "rejected"
    assert ada.error("review", "withdraw", third)["code"] == "forbidden"
    author = org.ada.ok("GET", f"/reviews/{third}")["review"]["author_id"]
    maya = terminal_of(org.token_for("maya@example.org", author))
    assert maya.json("review", "withdraw", third)["status"] == "withdrawn"


@pytest.mark.requirement("cli.review")
def test_a_merge_of_what_moved_publishes_nothing_asks_to_look_again_and_is_sent_once(
    ada: Terminal, review: Callable[..., str]
) -> None:
    name = review()
    detail = ada.json("review", "diff", name)
    ada.json("review", "approve", name)
    ada.network.log.clear()
    told = ada.text("review", "merge", name, "--version", str(detail["version"]), status=1)
    assert "version_conflict" in told
    assert f"interleaf review diff {name}" in told
    assert ada.network.paths("POST") == [f"/reviews/{name}/merges"]
    assert [item["status"] for item in ada.json("review", "list")["reviews"]] == ["approved"]


@pytest.mark.requirement("cli.review", "cli.visible")
def test_a_diff_hides_nothing(ada: Terminal, review: Callable[..., str]) -> None:
    name = review("# Access\n\nif x == \u202e\u2066admin\u2069\x1b[8m secret\n")
    shown = ada.text("review", "diff", name)
    assert "+if x == <U+202E><U+2066>admin<U+2069><U+001B>[8m secret" in shown
    assert not {"\u202e", "\x1b"} & set(shown)
    raw = ada.json("review", "diff", name)["entries"][0]["diff"]
    assert "\u202e\u2066admin" in raw


@pytest.mark.requirement("cli.errors")
def test_a_refusal_of_the_server_names_its_request(
    org: Server, review: Callable[..., str], terminal_of: Callable[..., Terminal]
) -> None:
    name = review()
    ada = terminal_of(org.ada)
    project_id = ada.json("project", "list")["projects"][0]["id"]
    nina = org.user("nina")
    org.ada.ok("POST", f"/projects/{project_id}/members", json={"email": nina.email, "role": "member"})
    told = terminal_of(nina).text("review", "merge", name, status=1)
    assert "code:  forbidden" in told
    assert "(in the server's log)" in told


@pytest.mark.requirement("cli.errors")
def test_without_a_token_one_is_told_to_sign_in(org: Server, ada: Terminal, tmp_path: Path) -> None:
    FileCredentials(tmp_path / "home" / "credentials.json").forget(URL)
    assert ada.error("project", "list")["code"] == "signed_out"
    assert "interleaf login" in ada.text("project", "list", status=1)
