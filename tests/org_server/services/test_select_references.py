from __future__ import annotations

import threading

import pytest
from werkzeug.test import TestResponse

from org_server.services.check_database import check_database
from shared_schema import ids
from shared_schema.memory import OrgSource
from tests.org_server.harness import Caller, Published, Server, codes


def put(caller: Caller, project: str, resources: list[Published], revision: object) -> TestResponse:
    body = {"resource_ids": [each.resource_id for each in resources]}
    return caller.put(f"/projects/{project}/org-selections", body, revision)


def view(server: Server, project: str) -> dict[str, str]:
    """Return path by resource id of what the Project shows."""
    listed = server.ada.ok("GET", f"/projects/{project}/memories")["resources"]
    return {row["resource_id"]: row["path"] for row in listed}


def ref(server: Server, project: str) -> int:
    return int(server.ada.ok("GET", f"/projects/{project}")["ref"]["seq"])


@pytest.mark.requirement("server.selections.view")
def test_selecting_shows_org_resources_and_deselecting_hides_them(server: Server) -> None:
    one, two = Published("a.md", "# One\n"), Published("b.md", "# Two\n")
    commit = server.publish(server.org_id, one, two).commit_id
    project = server.project(server.ada)

    chosen = put(server.ada, project, [one, two], 0).get_json()
    assert chosen["revision"] == 1
    assert [(row["path"], row["title"], row["scope"]) for row in chosen["resources"]] == [
        ("a.md", "One", "org"),
        ("b.md", "Two", "org"),
    ]
    assert view(server, project) == {one.resource_id: "a.md", two.resource_id: "b.md"}
    shown = server.ada.ok("GET", f"/projects/{project}/memories/{one.resource_id}")
    assert shown["resource"]["org_source"] == {"resource_id": one.resource_id, "commit_id": commit}
    assert shown["ref"]["seq"] == 1

    put(server.ada, project, [two], 1)
    assert view(server, project) == {two.resource_id: "b.md"}
    assert ref(server, project) == 2
    assert server.feed()[-4:] == [
        ("ref.moved", project),
        ("selection.changed", project),
        ("ref.moved", project),
        ("selection.changed", project),
    ]
    assert check_database(server.units).problems == []


def test_the_same_set_again_is_a_new_revision_without_a_commit(server: Server) -> None:
    one = Published("a.md")
    server.publish(server.org_id, one)
    project = server.project(server.ada)
    put(server.ada, project, [one], 0)
    assert put(server.ada, project, [one], 1).get_json()["revision"] == 2
    assert ref(server, project) == 1


@pytest.mark.requirement("server.selections.revision")
def test_a_stale_revision_is_a_conflict_and_changes_nothing(server: Server) -> None:
    one = Published("a.md")
    server.publish(server.org_id, one)
    project = server.project(server.ada)
    put(server.ada, project, [one], 0)
    answer = put(server.ada, project, [], 0)
    assert (answer.status_code, codes([answer])) == (409, ["version_conflict"])
    assert answer.get_json()["error"]["details"] == {"expected": 0, "actual": 1}
    assert view(server, project) == {one.resource_id: "a.md"}


def test_the_tag_that_was_read_can_be_sent_back(server: Server) -> None:
    project = server.project(server.ada)
    tag = server.ada.get(f"/projects/{project}/org-selections").headers["ETag"]
    answer = put(server.ada, project, [], tag)
    assert answer.get_json()["revision"] == 1
    assert put(server.ada, project, [], answer.headers["ETag"]).get_json()["revision"] == 2


@pytest.mark.requirement("server.selections.race")
def test_of_many_writers_with_one_revision_exactly_one_wins(server: Server) -> None:
    resources = [Published(f"{number}.md") for number in range(8)]
    server.publish(server.org_id, *resources)
    project = server.project(server.ada)
    for revision in range(3):
        answers: list[TestResponse] = []
        barrier = threading.Barrier(len(resources))

        def run(resource: Published, revision: int = revision) -> None:
            barrier.wait(30)  # noqa: B023  # the threads end within this turn
            answers.append(put(server.ada, project, [resource], revision))  # noqa: B023  # as above

        threads = [threading.Thread(target=run, args=(resource,)) for resource in resources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(codes(answers)) == ["200"] + ["version_conflict"] * 7
        winner = next(answer for answer in answers if answer.status_code == 200).get_json()
        assert winner["revision"] == revision + 1
        assert list(view(server, project)) == [winner["resources"][0]["resource_id"]]
    assert check_database(server.units).problems == []


@pytest.mark.requirement("server.selections.paths")
@pytest.mark.parametrize("taken", ["Guide.md", "guide.md/deeper.md"])
def test_a_taken_path_refuses_the_whole_set(server: Server, taken: str) -> None:
    free, clashing, own = Published("free.md"), Published("guide.md"), Published(taken)
    server.publish(server.org_id, free, clashing)
    project = server.project(server.ada)
    server.publish(project, own)
    answer = put(server.ada, project, [free, clashing], 0)
    assert (answer.status_code, codes([answer])) == (409, ["path_occupied"])
    assert answer.get_json()["error"]["details"]["clashes"] == [
        {"resource_id": clashing.resource_id, "path": "guide.md", "occupied_by": own.resource_id}
    ]
    assert view(server, project) == {own.resource_id: taken}
    assert server.ada.ok("GET", f"/projects/{project}/org-selections") == {"revision": 0, "resources": []}


def test_only_what_the_organization_publishes_can_be_selected(server: Server) -> None:
    project = server.project(server.ada)
    own = Published("own.md")
    server.publish(project, own)
    for unknown in (own, Published("x.md", resource_id="mem_unknown")):
        answer = put(server.ada, project, [unknown], 0)
        assert (answer.status_code, codes([answer])) == (404, ["memory_resource_not_found"])
        assert answer.get_json()["error"]["details"] == {"resource_ids": [unknown.resource_id]}


def test_a_set_with_a_resource_twice_is_refused(server: Server) -> None:
    one, project = Published("a.md"), server.project(server.ada)
    server.publish(server.org_id, one)
    assert codes([put(server.ada, project, [one, one], 0)]) == ["invalid_arguments"]


@pytest.mark.requirement("server.adaptations.hide")
def test_an_adapted_source_stays_selected_but_hidden(server: Server) -> None:
    source = Published("guide.md", "# Theirs\n")
    commit = server.publish(server.org_id, source).commit_id
    project = server.project(server.ada)
    link = OrgSource(resource_id=source.resource_id, commit_id=commit)
    ours = Published("guide.md", "# Ours\n", resource_id=ids.new_id("mem"), org_source=link)
    server.publish(project, ours)
    chosen = put(server.ada, project, [source], 0).get_json()
    assert [row["resource_id"] for row in chosen["resources"]] == [source.resource_id]
    assert view(server, project) == {ours.resource_id: "guide.md"}
    hidden = server.ada.get(f"/projects/{project}/memories/{source.resource_id}")
    assert (hidden.status_code, codes([hidden])) == (404, ["memory_resource_not_found"])
    assert hidden.get_json()["error"]["details"] == {"adapted_by": ours.resource_id}


@pytest.mark.requirement("server.permissions.matrix")
def test_members_read_the_selection_and_admins_change_it(server: Server) -> None:
    bob, eve = server.user("bob"), server.user("eve")
    project = server.project(server.ada, "Web", member=bob, admin=eve)
    assert codes([bob.get(f"/projects/{project}/org-selections"), put(bob, project, [], 0)]) == [
        "200",
        "forbidden",
    ]
    assert codes([put(eve, project, [], 0)]) == ["200"]
