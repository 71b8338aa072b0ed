from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from client.domain.effective_memory import EffectiveMemory
from client.index.generation import Generation
from client.index.manager import IndexManager
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.index.conftest import PROJECT, World, memory_of, resource, sample
from tests.fakes.hashing_embedder import HashingEmbedder


def generations(world: World) -> list[str]:
    return sorted(path.name for path in world.folder.glob("gen-*"))


def test_before_the_first_build_a_search_says_that_the_index_is_being_prepared(world: World) -> None:
    world.memories[PROJECT] = sample()
    with pytest.raises(InterleafError) as caught:
        world.search("release")
    assert caught.value.code is ErrorCode.SEARCH_INDEX_PREPARING
    assert caught.value.details == {"done": 0, "total": 0}
    assert world.manager.run_once() == 1, "asking woke the builder"
    assert world.search("release").units


@pytest.mark.requirement("retrieval.index.coalesced")
def test_a_burst_of_wake_ups_is_one_build(world: World) -> None:
    world.memories[PROJECT] = sample()
    for _ in range(100):
        world.manager.wake(PROJECT)
    assert world.manager.run_once() == 1
    assert world.manager.run_once() == 0
    assert generations(world) == ["gen-00000001"]


def test_a_wake_up_without_a_change_builds_nothing(world: World) -> None:
    world.index(sample())
    world.index(sample())
    assert generations(world) == ["gen-00000001"]


@pytest.mark.requirement("retrieval.index.incremental")
def test_only_changed_units_are_embedded_again(world: World) -> None:
    world.index(sample())
    before = world.embedder.calls["passages"]
    world.index(sample(queue="# Queue\n\nAnother text altogether."))
    assert world.embedder.calls["passages"] == before + 1
    assert world.search("another text altogether").units[0].resource_id == "mem_queue"
    assert not any("expected_hash" in each.unit.text for each in world.search("expected_hash").candidates)


def test_many_small_changes_end_as_the_same_index_as_one_build(world: World) -> None:
    world.index(sample())
    memory = sample()
    for number in range(30):
        name = ("release", "database", "queue")[number % 3]
        memory = sample(**{name: f"# {name}\n\nversion {number} of this text about {name}"})
        world.index(memory)
    queries = ("version text", "release", "发布流程", "guides/queue.md")
    incremental = [[(c.unit_key, round(c.dense, 5)) for c in world.search(q).candidates] for q in queries]
    segments = len(list(next(world.folder.glob("gen-*")).glob("vectors/*.pooled")))
    assert segments <= 10
    world.manager.rebuild(PROJECT)
    world.manager.run_once()
    whole = [[(c.unit_key, round(c.dense, 5)) for c in world.search(q).candidates] for q in queries]
    assert [sorted(each) for each in incremental] == [sorted(each) for each in whole]


@pytest.mark.requirement("retrieval.cache.shared")
def test_another_project_with_the_same_text_embeds_nothing(world: World) -> None:
    world.index(sample())
    before = world.embedder.calls["passages"]
    world.index(replace(sample(), project_id="prj_2"))
    assert world.embedder.calls["passages"] == before


@pytest.mark.requirement("sync.invariant.9")
def test_a_reader_keeps_its_generation_whole_whatever_is_published(world: World) -> None:
    world.index(sample())
    with world.manager.pin(PROJECT) as pinned:
        assert pinned is not None
        for number in range(4):
            world.index(sample(queue=f"# Queue\n\ntext {number}"))
        assert pinned.folder.exists()
        assert len(generations(world)) == 3, "the reader's, the former, the current"
        assert pinned.lexical.search(["expected_hash"], 5)
    assert len(generations(world)) == 2, "deleted when its last reader let go"


def test_at_most_two_generations_are_kept(world: World) -> None:
    for number in range(5):
        world.index(sample(queue=f"# Queue\n\ntext {number}"))
    assert generations(world) == ["gen-00000004", "gen-00000005"]


def test_the_index_is_there_after_a_restart(world: World) -> None:
    world.index(sample())
    world.restart()
    before = dict(world.embedder.calls)
    assert world.manager.status(PROJECT).state == "ready"
    assert world.search("publish the package").units
    assert world.embedder.calls["passages"] == before["passages"]


def test_another_model_builds_a_new_index(world: World) -> None:
    world.index(sample())
    first = world.manager.status(PROJECT).index_revision
    world.embedder = HashingEmbedder(fingerprint="hashing-2")
    world.index(sample())
    assert world.manager.status(PROJECT).index_revision != first
    assert world.search("publish the package").units


def test_while_models_are_prepared_the_build_waits_and_says_so(world: World) -> None:
    world.fault = InterleafError(ErrorCode.SEARCH_MODEL_PREPARING, "being downloaded")
    world.index(sample())
    status = world.manager.status(PROJECT)
    assert (status.state, status.error_code, status.lag) == ("none", "search_model_preparing", True)
    world.fault = None
    world.manager.wake(PROJECT)
    world.manager.run_once()
    assert world.manager.status(PROJECT).state == "ready"
    assert world.manager.status(PROJECT).error is None


@pytest.mark.requirement("sync.invariant.11")
def test_a_project_that_fails_does_not_hold_up_another(world: World) -> None:
    world.memories["prj_2"] = replace(sample(), project_id="prj_2")
    world.manager.wake("prj_broken")
    world.manager.wake("prj_2")
    assert world.manager.run_once() == 2
    assert world.manager.status("prj_broken").state == "failed"
    assert world.manager.status("prj_2").state == "ready"


@pytest.mark.requirement("retrieval.index.progress")
def test_progress_counts_units_that_have_vectors(world: World) -> None:
    seen: list[tuple[int, int]] = []

    class Watching(HashingEmbedder):
        def embed_passages(self, texts: object) -> list[object]:  # type: ignore[override]  # any sequence
            status = world.manager.status(PROJECT)
            seen.append((status.done, status.total))
            assert status.state == "building"
            return super().embed_passages(texts)  # type: ignore[arg-type,return-value]

    world.embedder = Watching()
    world.index(memory_of(*(resource(f"mem_{n:02d}", f"n/{n}.md", f"text number {n}") for n in range(20))))
    assert seen == [(0, 20), (7, 20), (15, 20)]
    status = world.manager.status(PROJECT)
    assert (status.done, status.total, status.lag) == (20, 20, False)


def test_waking_all_reaches_every_project_asked_for(world: World) -> None:
    world.memories["prj_2"] = replace(sample(), project_id="prj_2")
    world.index(sample())
    world.manager.status("prj_2")
    world.manager.wake_all()
    assert world.manager.run_once() == 2
    assert world.manager.status("prj_2").state == "ready"


def test_a_forgotten_project_leaves_nothing_behind(world: World) -> None:
    world.index(sample())
    assert world.search("release").units
    world.manager.forget(PROJECT)
    world.searcher.forget(PROJECT)
    assert not world.searcher._views
    assert not world.folder.exists()
    assert world.manager.status(PROJECT).state == "none"


def test_a_project_forgotten_in_the_middle_of_a_build_leaves_nothing_behind(world: World) -> None:
    class Forgetting(HashingEmbedder):
        def embed_passages(self, texts: object) -> list[object]:  # type: ignore[override]  # any sequence
            world.manager.forget(PROJECT)
            return super().embed_passages(texts)  # type: ignore[arg-type,return-value]

    world.embedder = Forgetting()
    world.index(sample())
    assert list((world.root / "indexes").rglob("gen-*")) == []


@pytest.mark.parametrize("project_id", ["../../escape", "a/b", ".", "", "prj_" + "x" * 300, "prj_é"])
def test_no_project_id_leads_out_of_the_root(world: World, project_id: str) -> None:
    world.index(replace(sample(), project_id=project_id))
    folders = list((world.root / "indexes").iterdir())
    assert len(folders) == 1
    assert (folders[0] / "CURRENT").exists()


def test_files_are_private(world: World) -> None:
    world.index(sample())
    world.index(sample(queue="# Queue\n\nchanged"))
    for path in world.folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def _wait(condition: Callable[[], bool], woken: threading.Event) -> None:
    for _ in range(100):
        if condition():
            return
        woken.wait(0.1)
        woken.clear()
    raise AssertionError("it never happened")


def test_the_worker_builds_what_is_woken_and_stops(world: World) -> None:
    built = threading.Event()
    manager = IndexManager(
        world.root / "indexes",
        world.memories.__getitem__,
        world.embedder_source,
        world.cache,
        checkpoint=lambda name: built.set() if name == "published" else None,
    )
    world.memories[PROJECT] = sample()
    manager.start()
    manager.wake(PROJECT)
    _wait(lambda: manager.status(PROJECT).state == "ready", built)
    world.memories[PROJECT] = sample(queue="# Queue\n\nchanged")
    manager.wake(PROJECT)
    _wait(lambda: manager.status(PROJECT).generation == "gen-00000002", built)
    manager.stop()
    assert "indexer" not in {thread.name for thread in threading.enumerate()}


def test_readers_and_builds_at_once_see_whole_generations(world: World) -> None:
    world.index(sample())
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                memory: EffectiveMemory = world.memories[PROJECT]
                trace = world.search("release package queue text", memory)
                for each in trace.candidates:
                    source = memory.by_id[each.resource_id]
                    assert each.unit.text in source.body
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(15):
        world.index(sample(queue=f"# Queue\n\ntext {number} {'more ' * number}"))
    done.set()
    for reader in readers:
        reader.join(30)
    assert failures == []
    assert isinstance(world.manager.status(PROJECT).generation, str)
    with world.manager.pin(PROJECT) as generation:
        assert isinstance(generation, Generation)
