"""History and blame at the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.client.cli.terminal import Terminal
from tests.client.sync_world import Machine, merge
from tests.org_server.harness import Server


@pytest.mark.requirement("history.cli")
def test_a_document_s_history_and_blame_are_read_by_path_and_by_id(
    org: Server, ada: Terminal, machine_of: Callable[..., Machine]
) -> None:
    project = org.project(org.ada, "Rocket")
    machine = machine_of(org.ada)
    machine.settle()
    draft = machine.create(project, "a.md", "# A\n\none\n")
    machine.settle()
    first = merge(org.ada, project, [draft.draft_id])
    machine.settle()
    later = machine.edit(project, draft.resource_id, "# A\n\none\ntwo\n")
    machine.append(later.draft_id, kind="rename", path="b.md")
    machine.settle()
    second = merge(org.ada, project, [later.draft_id])

    for name in ("b.md", draft.resource_id):
        found = ada.json("memory", "history", name, "--project", "Rocket")
        assert [entry["change"]["kind"] for entry in found["entries"]] == ["moved", "created"]
        assert [entry["commit"]["review_id"] for entry in found["entries"]] == [second, first]
        assert found["more"] is False
    told = ada.text("memory", "history", "b.md", "--project", "Rocket")
    assert "moved from a.md to b.md, and changed" in told
    assert "by ada@example.org" in told
    short = ada.json("memory", "history", "b.md", "--project", "Rocket", "--limit", "1")
    assert (len(short["entries"]), short["more"]) == (1, True)
    assert "--limit 4" in ada.text("memory", "history", "b.md", "--project", "Rocket", "--limit", "1")

    ranges = ada.json("memory", "blame", "b.md", "--project", "Rocket")["ranges"]
    assert [(part["first"], part["count"]) for part in ranges] == [(1, 3), (4, 1)]
    lines = ada.text("memory", "blame", "b.md", "--project", "Rocket").splitlines()
    assert [line.split()[-1] for line in lines if line.split()[-1] in ("one", "two")] == ["one", "two"]
    assert [line.split()[0] for line in lines] == [
        *[ranges[0]["commit_id"][:8]] * 3,
        ranges[1]["commit_id"][:8],
    ]
    old = ada.json(
        "memory", "blame", draft.resource_id, "--project", "Rocket", "--commit", ranges[0]["commit_id"]
    )
    assert (old["path"], old["body"]) == ("a.md", "# A\n\none\n")


@pytest.mark.requirement("history.cli")
def test_what_is_published_nowhere_is_said_with_the_next_step(org: Server, ada: Terminal) -> None:
    org.project(org.ada, "Rocket")
    for verb in ("history", "blame"):
        refused = ada.error("memory", verb, "none.md", "--project", "Rocket")
        assert refused["code"] == "memory_resource_not_found"
        assert "interleaf memory list" in refused["message"]
