"""Taking a Project's view as a whole, and following its commits."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from org_server.services.snapshot import Snapshot
from shared_schema.memory import PublishedResource
from shared_schema.org_contract import CommitChange, SnapshotEnd, SnapshotHeader
from shared_schema.rules.chain import Change, verify_step
from tests.org_server.harness import Published, Server
from tests.org_server.people import Person, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


def lines_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.content.endswith(b"\n")
    return [json.loads(line) for line in answer.content.splitlines()]


@pytest.mark.requirement("snapshot.whole")
def test_a_snapshot_is_the_whole_view_of_one_commit(team: Team) -> None:
    bodies = {f"{number}.md": f"# {number}\r\n\u2028{'ä' * number}" for number in range(120)}
    team.server.publish(team.project, *(Published(path, body) for path, body in bodies.items()))
    answer = succeeded(team.mia.http.get(f"/projects/{team.project}/snapshot"))
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    raw = answer.content.split(b"\n")
    header = SnapshotHeader.model_validate_json(raw[0])
    end = SnapshotEnd.model_validate_json(raw[-2])
    resources = [PublishedResource.model_validate_json(line) for line in raw[1:-2]]
    assert header.ref.commit_id == team.mia.ref(team.project)
    assert header.count == end.count == len(resources) == 120
    assert {resource.path: resource.body for resource in resources} == bodies
    assert answer.headers["ETag"] == f'"{header.ref.commit_id}"'
    tag = {"If-None-Match": answer.headers["ETag"]}
    assert team.mia.http.get(f"/projects/{team.project}/snapshot", headers=tag).status_code == 304
    team.rob.publish(team.rob.create(team.project, "new.md"))
    assert team.mia.http.get(f"/projects/{team.project}/snapshot", headers=tag).status_code == 200


def test_an_empty_project_has_a_snapshot_too(team: Team) -> None:
    answer = succeeded(team.mia.http.get(f"/projects/{team.project}/snapshot"))
    assert lines_of(answer) == [
        {
            "record": "snapshot",
            "project_id": team.project,
            "ref": {"owner": team.project, "commit_id": None, "seq": 0},
            "count": 0,
        },
        {"record": "end", "count": 0},
    ]
    assert answer.headers["ETag"] == '"none"'


@pytest.mark.requirement("snapshot.whole")
def test_a_snapshot_is_compressed_for_those_who_take_it(team: Team) -> None:
    team.server.publish(
        team.project, *(Published(f"{number}.md", "same text\n" * 200) for number in range(60))
    )
    path = f"/api/v1/projects/{team.project}/snapshot"
    token = {"Authorization": f"Bearer {team.mia.caller.token}"}
    client = team.server.app.test_client()
    plain = client.get(path, headers=token)
    packed = client.get(path, headers=token | {"Accept-Encoding": "br, gzip;q=0.5"})
    refusing = client.get(path, headers=token | {"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data == refusing.data
    assert len(packed.data) * 10 < len(plain.data)


@pytest.mark.requirement("snapshot.consistent")
def test_what_is_published_while_a_snapshot_streams_is_not_in_it(team: Team) -> None:
    team.server.publish(team.project, *(Published(f"{number}.md", "old\n") for number in range(120)))
    head = team.mia.ref(team.project)
    actor = team.mia.actor()
    snapshot = Snapshot(team.server.units, actor, team.project)
    try:
        lines: Iterator[bytes] = iter(snapshot)
        taken = [next(lines), next(lines)]
        ids = sorted(team.mia.view(team.project).values())
        team.rob.publish(*(team.rob.edit(team.project, each, "new\n") for each in ids[-2:]))
        team.rob.publish(team.rob.create(team.project, "late.md"), team.rob.remove(team.project, ids[0]))
        taken += lines
    finally:
        snapshot.close()
    parsed = [json.loads(line) for line in taken]
    assert parsed[0]["ref"]["commit_id"] == head
    assert parsed[0]["count"] == parsed[-1]["count"] == len(parsed) - 2 == 120
    assert {line["body"] for line in parsed[1:-1]} == {"old\n"}


def test_a_snapshot_that_is_refused_leaves_no_transaction_open(team: Team) -> None:
    stranger = team.person("eve")
    refused(stranger.http.get(f"/projects/{team.project}/snapshot"), "not_found", 404)
    assert team.server.units.engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # a QueuePool has it
    tag = {"If-None-Match": '"none"'}
    assert team.mia.http.get(f"/projects/{team.project}/snapshot", headers=tag).status_code == 304
    assert team.server.units.engine.pool.checkedout() == 0  # type: ignore[attr-defined]  # as above


def follow(person: Person, path: str, limit: int = 2) -> list[dict[str, Any]]:
    """Read a whole chain in pages, and verify every step of it."""
    commits: list[dict[str, Any]] = []
    while True:
        after = commits[-1]["commit_id"] if commits else "none"
        page = person.get(path, params={"after": after, "limit": limit})
        for commit in page["commits"]:
            changes = [CommitChange.model_validate_json(json.dumps(item)) for item in commit["changes"]]
            verify_step(
                owner=commit["owner"],
                seq=commit["seq"],
                parent=commit["parent"],
                claimed_id=commit["commit_id"],
                changes=[_hashed(item) for item in changes],
                head_id=commits[-1]["commit_id"] if commits else None,
                head_seq=len(commits),
                bodies={item.resource_id: item.body for item in changes if item.body is not None},
            )
            commits.append(commit)
        if not page["has_more"]:
            return commits


def _hashed(item: CommitChange) -> Change:
    return Change(**{name: value for name, value in item if name != "body"})


@pytest.mark.requirement("commits.chain")
def test_the_whole_history_verifies_step_by_step(team: Team) -> None:
    org = team.ada.create(team.project, "org.md", scope="org")
    team.ada.publish(org)
    local = team.ada.create(team.project, "a.md", "one\n", description="A page")
    team.ada.publish(local)
    team.ada.publish(team.ada.edit(team.project, local.resource_id, "two\n"))
    source = {"resource_id": org.resource_id, "commit_id": str(team.ada.org_ref())}
    team.ada.publish(team.ada.create(team.project, "org.md", "ours\n", org_source=source))
    team.ada.publish(team.ada.remove(team.project, local.resource_id))
    team.ada.publish(team.ada.edit(team.project, org.resource_id, "newer\n", scope="org"))
    commits = follow(team.mia, f"/projects/{team.project}/commits")
    assert [commit["seq"] for commit in commits] == [1, 2, 3, 4, 5]
    assert commits[-1]["commit_id"] == team.mia.ref(team.project)
    assert commits[1]["changes"][0]["description"] == "A page"
    assert commits[4]["changes"][0]["removed"] is True
    org_commits = follow(team.mia, "/org/commits", limit=1)
    assert [commit["seq"] for commit in org_commits] == [1, 2]
    assert {commit["owner"] for commit in org_commits} == {team.server.org_id}
    shown = replayed(commits)
    assert shown == {resource_id: path for path, resource_id in team.mia.view(team.project).items()}


def replayed(commits: list[dict[str, Any]]) -> dict[str, str]:
    """Return resource id → path of the view that the commits lead to."""
    view: dict[str, str] = {}
    for commit in commits:
        for change in commit["changes"]:
            if change["removed"]:
                del view[change["resource_id"]]
            else:
                view[change["resource_id"]] = change["path"]
    return view


def test_commits_after_one_that_is_not_in_the_chain_are_refused_by_name(team: Team) -> None:
    team.rob.publish(team.rob.create(team.project, "a.md"))
    path = f"/projects/{team.project}/commits"
    refused(team.mia.http.get(path, params={"after": "0" * 64}), "commit_unknown", 409)
    refused(
        team.mia.http.get("/org/commits", params={"after": team.mia.ref(team.project)}), "commit_unknown", 409
    )
    head = team.mia.ref(team.project)
    assert team.mia.get(path, params={"after": head}) == {"commits": [], "has_more": False}


def test_a_page_of_commits_ends_before_it_holds_more_than_4_mib_of_text(team: Team) -> None:
    for number in range(6):
        team.server.publish(team.project, Published(f"{number}.md", str(number) * (1024 * 1024)))
    page = team.mia.get(f"/projects/{team.project}/commits")
    assert (len(page["commits"]), page["has_more"]) == (4, True)
    assert len(follow(team.mia, f"/projects/{team.project}/commits", limit=200)) == 6
