from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from client.sync.worker import SyncWorker
from tests.client.sync_world import Machine, drop_request
from tests.org_server.harness import Server

PATIENCE = 20.0


@pytest.fixture
def worker(machine: Machine) -> Iterator[SyncWorker]:
    made = SyncWorker(machine.engine, interval=3_600, rng=Random(1))
    made.start()
    yield made
    assert made.stop(PATIENCE)


@pytest.mark.requirement("sync.worker.wakes")
def test_a_wake_up_ends_the_waiting(org: Server, machine: Machine, worker: SyncWorker) -> None:
    project = org.project(org.ada)
    first = worker.run_round(PATIENCE)
    assert first is not None
    assert first.complete
    draft = machine.create(project, "a.md", "# A\n")
    worker.wake()
    assert worker.run_round(PATIENCE) is not None
    assert machine.statuses(draft.draft_id) == ["synced"]


def test_a_round_that_nobody_runs_is_waited_for_as_long_as_asked(machine: Machine) -> None:
    assert SyncWorker(machine.engine).run_round(0.01) is None


def test_a_defect_in_a_round_does_not_end_synchronisation(
    org: Server, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = machine.engine
    step, broken = engine.step, [True]

    def once_broken(*arguments: object) -> object:
        if broken.pop() if broken else False:
            raise ValueError("a defect")
        return step()

    monkeypatch.setattr(engine, "step", once_broken)
    worker = SyncWorker(engine, interval=3_600, rng=Random(1))
    worker.start()
    results = [worker.run_round(PATIENCE), worker.run_round(PATIENCE)]
    assert results[-1] is not None
    assert results[-1].complete
    assert worker.stop(PATIENCE)


@pytest.mark.requirement("sync.worker.wakes")
def test_long_polls_take_the_place_of_the_interval(org: Server, machine: Machine) -> None:
    machine.settle()
    worker = SyncWorker(machine.engine, interval=3_600, long_poll=1, rng=Random(1))
    worker.start()
    assert worker.run_round(PATIENCE) is not None
    assert worker.next_round(PATIENCE) is not None
    assert worker.next_round(PATIENCE) is not None
    assert worker.stop(PATIENCE)
    assert set(machine.network.paths()) == {"/sync"}


def test_when_the_network_is_back_everything_that_waited_goes_at_once(org: Server, machine: Machine) -> None:
    project = org.project(org.ada)
    machine.settle()
    drafts = [machine.create(project, f"{number}.md", "# A\n").draft_id for number in range(3)]
    machine.network.standing = lambda _request: drop_request
    for _ in range(6):
        machine.step()
        machine.clock.advance(60_000)
    machine.clock.advance(-59_999)
    machine.network.standing = lambda _request: None
    machine.step(2)
    assert {state for name in drafts for state in machine.statuses(name)} == {"synced"}
