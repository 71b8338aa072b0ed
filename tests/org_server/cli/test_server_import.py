from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared_schema import limits
from tests.org_server.cli.test_server_cli import command
from tests.org_server.harness import Published, Server
from tests.org_server.people import Team

pytestmark = pytest.mark.requirement("transfer.server.import")

BODIES = {
    "a/crlf.md": b"# One\r\ntwo\r\n",
    "a/no end.md": b"# No final newline",
    "bom.md": b"\xef\xbb\xbf# Marked\n",
    "\u6587\u6863/\u8bf4\u660e.md": "# \u8bf4\u660e\n\u5185\u5bb9  \n".encode(),
}


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "memory"
    for path, body in BODIES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(body)
    return root


def run(database: str, source: Path, *more: str, user: str = "", code: int = 0) -> dict[str, Any]:
    arguments = ["import", str(source), "--project", "Web", "--database-url", database, "--json", *more]
    done = command(*arguments, "--user", user)
    assert done.returncode == code, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def shown(team: Team) -> dict[str, bytes]:
    view = team.ada.view(team.project)
    return {
        path: team.ada.get(f"/projects/{team.project}/memories/{resource_id}")["resource"]["body"].encode()
        for path, resource_id in view.items()
    }


def test_a_folder_is_published_byte_for_byte_and_again_changes_nothing(
    team: Team, database: str, folder: Path
) -> None:
    ada = team.ada.caller.email
    before = team.ada.ref(team.project)
    assert run(database, folder, "--dry-run", user=ada)["counts"]["imported"] == len(BODIES)
    assert (team.ada.ref(team.project), shown(team)) == (before, {})
    assert run(database, folder, user=ada)["counts"]["imported"] == len(BODIES)
    assert shown(team) == BODIES
    head = team.ada.ref(team.project)
    assert head != before
    assert run(database, folder, user=ada)["counts"]["unchanged"] == len(BODIES)
    assert team.ada.ref(team.project) == head
    actions = [event["action"] for event in team.ada.get("/admin/audit")["events"]]
    assert actions.count("memory.imported") == 1


def test_changed_files_change_their_resources(team: Team, database: str, folder: Path) -> None:
    run(database, folder, user=team.ada.caller.email)
    ids = team.ada.view(team.project)
    (folder / "bom.md").write_bytes(b"# Other\n")
    counts = run(database, folder, user=team.ada.caller.email)["counts"]
    assert (counts["changed"], counts["unchanged"]) == (1, len(BODIES) - 1)
    assert team.ada.view(team.project) == ids
    assert shown(team)["bom.md"] == b"# Other\n"


def test_refused_entries_are_named_and_hold_nothing_up(team: Team, database: str, folder: Path) -> None:
    team.server.publish(team.project, Published("taken.md/below.md", "# Below"))
    (folder / "taken.md").write_bytes(b"# Above\n")
    (folder / "binary.md").write_bytes(b"\xff\xfe\x00")
    (folder / "blank.md").write_bytes(b" \n")
    (folder / "large.md").write_bytes(b"a" * (limits.BODY_BYTES + 1))
    (folder / "loop.md").symlink_to(folder)
    answer = run(database, folder, user=team.ada.caller.email, code=1)
    codes = {item["source"]: item["code"] for item in answer["items"] if item["code"]}
    assert codes == {
        "taken.md": "path_occupied",
        "binary.md": "not_utf8",
        "blank.md": "blank",
        "large.md": "too_large",
        "loop.md": "symbolic_link",
    }
    assert answer["counts"]["imported"] == len(BODIES)


def test_only_an_org_owner_or_admin_imports(team: Team, database: str, folder: Path) -> None:
    before = team.ada.ref(team.project)
    answer = run(database, folder, user=team.rob.caller.email, code=1)
    assert answer["error"]["code"] == "forbidden"
    assert team.ada.ref(team.project) == before


def test_more_than_a_batch_is_several_commits(team: Team, database: str, tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number}.md").write_bytes(f"# {number}\n".encode())
    assert run(database, tmp_path, user=team.ada.caller.email)["counts"]["imported"] == 201
    actions = [event["action"] for event in team.ada.get("/admin/audit")["events"]]
    assert actions.count("memory.imported") == 2


@pytest.mark.parametrize("missing", ["nowhere", "empty"])
def test_a_missing_folder_is_an_error_and_an_empty_one_is_not(
    team: Team, database: str, tmp_path: Path, missing: str
) -> None:
    (tmp_path / "empty").mkdir()
    answer = run(database, tmp_path / missing, user=team.ada.caller.email, code=int(missing == "nowhere"))
    assert answer.get("items", answer.get("error", {}).get("code")) == (
        [] if missing == "empty" else "invalid_arguments"
    )
