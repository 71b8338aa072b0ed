"""The table of what two changes of one resource come to, over HTTP, and the end of every conflict."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.org_server.harness import Server
from tests.org_server.people import DraftHandle, Team, refused, succeeded

BODY = "1\n2\n3\n4\n5\n"


class Cell(NamedTuple):
    """What was published meanwhile, what the Draft does, and what reconciling says."""

    theirs: dict[str, str] | None
    mine: dict[str, str] | None
    conflicts: list[str]
    result: dict[str, str] | None = None


CELLS = {
    "edits apart": Cell(
        {"body": "1\n2\n3\n4\nV\n"}, {"body": "I\n2\n3\n4\n5\n"}, [], {"body": "I\n2\n3\n4\nV\n"}
    ),
    "edits alike": Cell({"body": "x\n"}, {"body": "x\n"}, [], {"body": "x\n"}),
    "edits together": Cell({"body": "x\n"}, {"body": "y\n"}, ["content"]),
    "rename, edit": Cell({"path": "b.md"}, {"body": "y\n"}, [], {"path": "b.md", "body": "y\n"}),
    "edit, rename": Cell({"body": "x\n"}, {"path": "c.md"}, [], {"path": "c.md", "body": "x\n"}),
    "both renamed": Cell({"path": "b.md"}, {"path": "c.md"}, ["path"]),
    "both renamed alike": Cell({"path": "b.md"}, {"path": "b.md"}, [], {"path": "b.md", "body": BODY}),
    "edit, delete": Cell({"body": "x\n"}, None, ["existence"]),
    "delete, edit": Cell(None, {"body": "y\n"}, ["existence"]),
    "rename, delete": Cell({"path": "b.md"}, None, ["existence"]),
    "delete, delete": Cell(None, None, [], {}),
}


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


def change(team: Team, draft: DraftHandle, wanted: dict[str, str] | None) -> None:
    if wanted is None:
        team.mia.append(draft, "delete")
    elif "path" in wanted:
        team.mia.append(draft, "rename", **wanted)
    else:
        team.mia.append(draft, "update", **wanted)


def candidate(team: Team, draft: DraftHandle) -> dict[str, Any]:
    found: dict[str, Any] = succeeded(team.mia.post(f"/drafts/{draft.draft_id}/reconciliation", {})).json()
    return found


def resolve(team: Team, draft: DraftHandle, found: dict[str, Any], state: dict[str, Any]) -> None:
    team.mia.append(draft, "rebase", base_commit=found["onto"]["commit_id"], state=state)
    row = team.mia.draft(draft)
    assert (row["freshness"], row["reconciliation"]) == ("current", "unknown")


def merge(team: Team, draft: DraftHandle) -> None:
    succeeded(team.rob.merge(team.mia.submit(draft)))


@pytest.mark.requirement("reconcile.table")
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_each_pair_of_changes_has_its_candidate_and_its_end(team: Team, cell: Cell) -> None:
    made = team.mia.create(team.project, "a.md", BODY)
    merge(team, made)
    mine = team.mia.new_draft(team.project, resource_id=made.resource_id)
    theirs = team.mia.new_draft(team.project, resource_id=made.resource_id)
    change(team, mine, cell.mine)
    change(team, theirs, cell.theirs)
    merge(team, theirs)
    found = candidate(team, mine)
    assert [item["kind"] for item in found["conflicts"]] == cell.conflicts
    assert found["base"]["body"] == BODY
    if cell.result is None:
        assert found["result"] is None
        assert team.mia.draft(mine)["reconciliation"] == "conflicts"
        resolved = {"exists": True, "path": "decided.md", "body": "decided\n"}
    else:
        assert team.mia.draft(mine)["reconciliation"] == "clean"
        resolved = found["result"]
        assert resolved["exists"] is bool(cell.result)
        assert {name: resolved[name] for name in cell.result} == cell.result
    resolve(team, mine, found, resolved)
    if resolved["exists"] and {**found["current"], **resolved} != found["current"]:
        merge(team, mine)
    shown = team.mia.view(team.project)
    assert shown == ({resolved["path"]: made.resource_id} if resolved["exists"] else {})


@pytest.mark.requirement("reconcile.table")
def test_two_creations_of_one_path_are_resolved_by_another_path(team: Team) -> None:
    first, second = team.mia.create(team.project, "a.md"), team.mia.create(team.project, "A.md")
    merge(team, first)
    found = candidate(team, second)
    assert [(item["kind"], item["current"]) for item in found["conflicts"]] == [
        ("path_occupied", first.resource_id)
    ]
    resolve(team, second, found, {**found["draft"], "path": "b.md"})
    merge(team, second)
    assert team.mia.view(team.project) == {"a.md": first.resource_id, "b.md": second.resource_id}


@pytest.mark.requirement("reconcile.no_markers")
def test_a_resolution_with_marker_lines_is_refused_and_changes_nothing(team: Team) -> None:
    made = team.mia.create(team.project, "a.md", BODY)
    merge(team, made)
    mine = team.mia.edit(team.project, made.resource_id, "<<<<<<< a line of ours\n")
    merge(team, team.mia.edit(team.project, made.resource_id, "x\n"))
    found = candidate(team, mine)
    onto = found["onto"]["commit_id"]
    marked = {**found["draft"], "body": "<<<<<<< mine\ny\n=======\nx\n>>>>>>> theirs\n"}
    operation = mine.operation("rebase", base_commit=onto, state=marked)
    assert refused(team.mia.upload(mine, operation), "conflict_markers", 400)["lines"] == [1, 3, 5]
    assert candidate(team, mine) == found
    mine.last_ordinal -= 1
    resolve(team, mine, found, {**found["draft"], "body": "<<<<<<< a line of ours\nx\n"})
    merge(team, mine)
