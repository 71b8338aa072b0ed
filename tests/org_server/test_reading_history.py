"""Histories and blame, as their readers get them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.org_server.harness import Server
from tests.org_server.people import Person, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


def pages(person: Person, path: str, limit: int = 2) -> list[dict[str, Any]]:
    """Read a history in pages."""
    entries: list[dict[str, Any]] = []
    cursor = None
    while True:
        query = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
        page = person.get(path, params=query)
        assert len(page["entries"]) <= limit
        entries += page["entries"]
        if (cursor := page["next_cursor"]) is None:
            return entries


@pytest.mark.requirement("history.resource")
def test_each_change_of_a_resource_is_told_newest_first(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md", "one\n")
    review = team.mia.submit(draft, title="The beginning")
    approved = succeeded(team.ada.decide(review, "approved")).json()
    succeeded(team.rob.merge(approved))
    resource = draft.resource_id
    team.rob.publish(team.rob.edit(team.project, resource, "two\n"))
    moving = team.rob.new_draft(team.project, resource_id=resource)
    team.rob.publish(team.rob.append(moving, "rename", path="b.md"))
    team.rob.publish(team.rob.remove(team.project, resource))
    entries = pages(team.mia, f"/projects/{team.project}/memories/{resource}/history")
    assert [entry["change"]["kind"] for entry in entries] == ["removed", "moved", "changed", "created"]
    assert [entry["commit"]["seq"] for entry in entries] == [4, 3, 2, 1]
    paths = [(entry["change"]["path_before"], entry["change"]["path_after"]) for entry in entries]
    assert paths == [("b.md", None), ("a.md", "b.md"), ("a.md", "a.md"), (None, "a.md")]
    hashes = [entry["change"]["content_hash_after"] for entry in entries]
    assert hashes[0] is None
    assert hashes[1] == hashes[2] == entries[0]["change"]["content_hash_before"] != hashes[3]
    first = entries[-1]["commit"]
    assert first["review"] == {
        "review_id": review["review"]["review_id"],
        "title": "The beginning",
        "author_id": team.mia.user_id,
        "author_email": "mia@example.org",
        "approvers": ["ada@example.org"],
    }
    assert first["author_id"] == team.mia.user_id
    assert first["commit_id"] == team.mia.get(f"/projects/{team.project}/commits")["commits"][0]["commit_id"]


def test_what_was_never_published_has_no_history(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md")
    for place in (f"/projects/{team.project}", "/org"):
        for what in ("history", "blame"):
            answer = team.mia.http.get(f"{place}/memories/{draft.resource_id}/{what}")
            refused(answer, "memory_resource_not_found", 404)
    stranger = team.person("eve")
    team.rob.publish(team.rob.create(team.project, "b.md"))
    resource = team.mia.view(team.project)["b.md"]
    for path in ("/history", f"/memories/{resource}/history", f"/memories/{resource}/blame"):
        refused(stranger.http.get(f"/projects/{team.project}{path}"), "not_found", 404)


@pytest.mark.requirement("history.log")
def test_the_commits_of_an_authority_are_read_newest_first(team: Team) -> None:
    drafts = [team.ada.create(team.project, f"{number}.md", scope="org") for number in range(25)]
    team.ada.publish(*drafts)
    local = team.rob.create(team.project, "own.md")
    team.rob.publish(local)
    team.ada.select(team.project)
    log = pages(team.mia, f"/projects/{team.project}/history", limit=1)
    assert [entry["commit"]["seq"] for entry in log] == [3, 2, 1]
    assert [len(entry["changes"]) for entry in log] == [20, 1, 20]
    assert [entry["change_count"] for entry in log] == [25, 1, 25]
    assert {change["kind"] for change in log[0]["changes"]} == {"hidden"}
    assert {change["kind"] for change in log[2]["changes"]} == {"shown"}
    assert log[1]["changes"][0]["path_after"] == "own.md"
    org = pages(team.mia, "/org/history")
    assert [(entry["commit"]["seq"], entry["change_count"]) for entry in org] == [(1, 25)]
    assert org[0]["commit"]["owner"] == team.server.org_id
    foreign = team.mia.http.get(
        "/org/history",
        params={
            "cursor": team.mia.get(f"/projects/{team.project}/history", params={"limit": 1})["next_cursor"]
        },
    )
    refused(foreign, "invalid_arguments", 400)


@pytest.mark.requirement("history.private")
def test_a_review_is_described_only_to_those_who_may_read_it(team: Team) -> None:
    draft = team.ada.create(team.project, "org.md", scope="org")
    team.ada.publish(draft)
    stranger = team.person("eve")
    for path in (f"/org/memories/{draft.resource_id}/history", "/org/history"):
        seen = team.mia.get(path)["entries"][0]["commit"]
        hidden = stranger.get(path)["entries"][0]["commit"]
        assert seen["review"]["title"] == "Change"
        assert hidden["review"] is None
        assert hidden["review_id"] == seen["review_id"]
    blamed = stranger.get(f"/org/memories/{draft.resource_id}/blame")
    assert [commit["review"] for commit in blamed["commits"]] == [None]


@pytest.mark.requirement("blame.lines")
def test_blame_names_the_commit_of_every_line(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md", "one\ntwo\nthree\n")
    succeeded(team.rob.merge(team.mia.submit(draft, title="First")))
    resource = draft.resource_id
    team.rob.publish(team.rob.edit(team.project, resource, "one\nTWO\nthree\n"))
    moving = team.rob.new_draft(team.project, resource_id=resource)
    team.rob.publish(team.rob.append(moving, "rename", path="b.md"))
    team.rob.publish(team.rob.remove(team.project, resource))
    team.rob.publish(team.rob.create(team.project, "b.md", "one\nTWO\nthree\nfour\n", resource_id=resource))
    ids = [commit["commit_id"] for commit in team.mia.get(f"/projects/{team.project}/commits")["commits"]]
    path = f"/projects/{team.project}/memories/{resource}/blame"
    blame = team.mia.get(path)
    ranges = [(part["first"], part["count"], ids.index(part["commit_id"])) for part in blame["ranges"]]
    assert ranges == [(1, 1, 0), (2, 1, 1), (3, 1, 0), (4, 1, 4)]
    assert blame["body"] == "one\nTWO\nthree\nfour\n"
    assert (blame["commit_id"], blame["path"], blame["complete"]) == (ids[4], "b.md", True)
    assert [commit["commit_id"] for commit in blame["commits"]] == [ids[0], ids[1], ids[4]]
    assert blame["commits"][0]["review"]["title"] == "First"
    earlier = team.mia.get(path, params={"commit": ids[0]})
    assert earlier["ranges"] == [{"first": 1, "count": 3, "commit_id": ids[0]}]
    refused(team.mia.http.get(path, params={"commit": ids[3]}), "memory_resource_not_found", 404)
    refused(team.mia.http.get(path, params={"commit": "0" * 64}), "commit_unknown", 409)
    tag = succeeded(team.mia.http.get(path)).headers["ETag"]
    assert team.mia.http.get(path, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.requirement("blame.lines")
def test_an_org_references_lines_are_followed_in_the_organization(team: Team) -> None:
    draft = team.ada.create(team.project, "org.md", "one\ntwo\n", scope="org")
    team.ada.publish(draft)
    team.ada.publish(team.ada.edit(team.project, draft.resource_id, "one\nTWO\n", scope="org"))
    blame = team.mia.get(f"/projects/{team.project}/memories/{draft.resource_id}/blame")
    assert blame["owner"] == team.server.org_id
    assert [commit["seq"] for commit in blame["commits"]] == [1, 2]
    assert blame == team.mia.get(f"/org/memories/{draft.resource_id}/blame")
