from __future__ import annotations

import pytest

from tests.client.sync_world import Machine, merge, uploaded
from tests.org_server.harness import Published, Server


def test_a_created_draft_goes_up_and_what_is_published_comes_down(org: Server, machine: Machine) -> None:
    project = org.project(org.ada)
    org.publish(project, Published("a.md", "# A\n\none\n"))
    first = machine.step()
    assert first.complete
    assert machine.bodies(project) == {"a.md": "# A\n\none\n"}
    draft = machine.create(project, "b.md", "# B\n")
    assert machine.step().accepted == 1
    assert machine.statuses(draft.draft_id) == ["synced"]
    assert len(uploaded(org, [draft.draft_id])[draft.draft_id]) == 1
    merge(org.ada, project, [draft.draft_id])
    before = machine.effective(project)
    machine.step()
    assert machine.effective(project) == before
    assert machine.draft(draft.draft_id).status == "merged"
    assert set(machine.bodies(project)) == {"a.md", "b.md"}


@pytest.mark.requirement("sync.pull.quiet")
def test_a_quiet_round_is_one_request_of_at_most_500_bytes(org: Server, machine: Machine) -> None:
    for number in range(5):
        project = org.project(org.ada, f"P{number}")
        org.publish(project, Published("a.md"))
    machine.settle()
    machine.network.log.clear()
    result = machine.step()
    assert result.complete
    assert [entry[:2] for entry in machine.network.log] == [("GET", "/sync")]
    assert machine.network.log[0][2] <= 500
