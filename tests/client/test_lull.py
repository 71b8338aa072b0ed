from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Event

import pytest

from client.index.manager import IndexManager
from client.index.vector_cache import VectorCache
from client.lull import Lull
from client.sync.worker import SyncWorker
from tests.client.index.conftest import PROJECT, sample
from tests.client.sync_world import Machine
from tests.fakes.hashing_embedder import HashingEmbedder
from tests.org_server.harness import Server

PATIENCE = 20.0


class Endless(Lull):
    """A burst that does not end by itself; ``entered`` once somebody waits for that."""

    def __init__(self) -> None:
        super().__init__(3_600, 3_600)
        self.entered = Event()

    def wait(self, pause: Callable[[float], bool]) -> bool:
        self.entered.set()
        return super().wait(pause)


def pauses(lull: Lull, wakes: list[int], ended: int | None = None) -> tuple[int, bool]:
    """Return how many pauses were made, and whether the waiting was ended early.

    ``wakes`` are the wake-ups during each pause; ``ended`` is the pause that ends the waiting.
    """
    made = 0

    def pause(seconds: float) -> bool:
        nonlocal made
        assert seconds == 0.25
        for _ in range(wakes[made] if made < len(wakes) else 0):
            lull.note()
        made += 1
        return made == ended

    early = lull.wait(pause)
    return made, early


@pytest.mark.requirement("daemon.bursts")
def test_work_begins_when_a_pause_saw_no_wake_up_and_at_the_latest_after_the_longest_time() -> None:
    assert pauses(Lull(0.25, 1.0), []) == (1, False)
    assert pauses(Lull(0.25, 1.0), [3, 1]) == (3, False)
    assert pauses(Lull(0.25, 1.0), [1] * 100) == (4, False)
    assert pauses(Lull(0.25, 0.1), [1] * 100) == (1, False)


@pytest.mark.requirement("daemon.bursts")
def test_nobody_waits_once_it_is_ended() -> None:
    assert pauses(Lull(0.25, 1.0), [1] * 100, ended=2) == (2, True)


@pytest.mark.requirement("daemon.bursts")
def test_what_was_written_is_not_sent_within_a_burst_unless_somebody_waits_for_that(
    org: Server, machine: Machine
) -> None:
    project, lull = org.project(org.ada), Endless()
    worker = SyncWorker(machine.engine, interval=3_600, rng=Random(1), lull=lull)
    worker.start()
    assert worker.run_round(PATIENCE) is not None
    lull.entered.clear()
    draft = machine.create(project, "a.md", "# A\n")
    worker.wake()
    assert lull.entered.wait(PATIENCE)
    assert machine.statuses(draft.draft_id) == ["queued"]
    assert worker.run_round(PATIENCE) is not None
    assert machine.statuses(draft.draft_id) == ["synced"]
    worker.wake()
    assert worker.stop(PATIENCE)


@pytest.mark.requirement("daemon.bursts")
def test_no_index_is_built_within_a_burst(tmp_path: Path) -> None:
    lull, embedder = Endless(), HashingEmbedder()
    cache = VectorCache(tmp_path / "vectors.db", now=lambda: 1)
    manager = IndexManager(tmp_path / "index", lambda _: sample(), lambda: embedder, cache, lull=lull)
    manager.start()
    manager.wake(PROJECT)
    assert lull.entered.wait(PATIENCE)
    assert manager.status(PROJECT).lag
    assert manager.status(PROJECT).state == "none"
    manager.stop(PATIENCE)
    assert manager.status(PROJECT).lag, "the burst did not end"
    cache.close()
