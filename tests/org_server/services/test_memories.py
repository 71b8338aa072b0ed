from __future__ import annotations

from dataclasses import replace

import pytest

from shared_schema.memory import OrgSource
from tests.org_server.harness import Published, Server, codes


def test_org_memory_is_read_by_every_member(server: Server) -> None:
    resource = Published("Guides/Release.md", "intro\n\n# Release\r\n", "How we ship.")
    commit = server.publish(server.org_id, resource)
    bob = server.user("bob")
    [row] = bob.ok("GET", "/org/memories")["resources"]
    assert (row["path"], row["title"], row["description"]) == ("Guides/Release.md", "Release", "How we ship.")
    assert (row["selected"], row["org_source"]) == (None, None)
    answer = bob.get(f"/org/memories/{resource.resource_id}")
    assert answer.get_json()["resource"]["body"] == "intro\n\n# Release\r\n"
    assert answer.get_json()["ref"] == {"owner": server.org_id, "commit_id": commit.commit_id, "seq": 1}
    again = bob.get(
        f"/org/memories/{resource.resource_id}", headers={"If-None-Match": answer.headers["ETag"]}
    )
    assert again.status_code == 304
    assert codes([bob.get("/org/memories/mem_unknown")]) == ["memory_resource_not_found"]


def test_an_org_listing_says_what_a_project_selects(server: Server) -> None:
    one, two = Published("a.md"), Published("b.md")
    server.publish(server.org_id, one, two)
    project = server.project(server.ada)
    server.ada.put(f"/projects/{project}/org-selections", {"resource_ids": [two.resource_id]}, 0)
    rows = server.ada.ok("GET", "/org/memories", query_string={"project_id": project})["resources"]
    assert [(row["path"], row["selected"]) for row in rows] == [("a.md", False), ("b.md", True)]


@pytest.mark.requirement("server.pages")
def test_a_listing_by_page_is_complete_and_in_order_while_it_is_added_to(server: Server) -> None:
    project = server.project(server.ada)
    server.publish(project, *[Published(f"{letter}.md") for letter in "bdfhjlné"])
    seen: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = server.ada.ok("GET", f"/projects/{project}/memories", query_string=query)
        seen += [row["path"] for row in page["resources"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
        # Before the cursor: neither shown nor a cause of repeats.
        server.publish(project, Published(f"a{len(seen)}.md"))
    assert seen == ["b.md", "d.md", "f.md", "h.md", "j.md", "l.md", "n.md", "é.md"]


def test_a_cursor_of_one_project_is_no_cursor_of_another(server: Server) -> None:
    one, two = server.project(server.ada, "One"), server.project(server.ada, "Two")
    server.publish(one, Published("a.md"), Published("b.md"))
    cursor = server.ada.ok("GET", f"/projects/{one}/memories", query_string={"limit": "1"})["next_cursor"]
    answer = server.ada.get(f"/projects/{two}/memories", query_string={"cursor": cursor})
    assert codes([answer]) == ["invalid_arguments"]


@pytest.mark.requirement("server.adaptations.listed")
def test_adaptations_say_whether_their_source_is_newer_or_gone(server: Server) -> None:
    kept, moved = Published("kept.md"), Published("moved.md")
    first = server.publish(server.org_id, kept, moved).commit_id
    project = server.project(server.ada)
    ours = [
        Published(
            f"ours/{source.path}", org_source=OrgSource(resource_id=source.resource_id, commit_id=first)
        )
        for source in (kept, moved)
    ]
    server.publish(project, *ours)

    def listed() -> list[tuple[object, ...]]:
        rows = server.ada.ok("GET", f"/projects/{project}/adaptations")["adaptations"]
        return [(row["path"], row["source_path"], row["newest_commit_id"], row["outdated"]) for row in rows]

    assert listed() == [
        ("ours/kept.md", "kept.md", first, False),
        ("ours/moved.md", "moved.md", first, False),
    ]
    second = server.publish(server.org_id, replace(moved, path="elsewhere.md", body="# Newer\n")).commit_id
    assert listed() == [
        ("ours/kept.md", "kept.md", first, False),
        ("ours/moved.md", "elsewhere.md", second, True),
    ]
