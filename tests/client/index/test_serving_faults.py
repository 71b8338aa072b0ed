"""What happens to the files of an index in the middle of its life."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from client.index import generation as generation_module
from client.index.manager import IndexManager
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.index import damaging_process
from tests.client.index.conftest import PROJECT, World, memory_of, resource, sample
from tests.client.index.damaging_process import NEW, flip
from tests.fakes.hashing_embedder import HashingEmbedder


def serving(world: World) -> Path:
    """Return the folder of the generation that serves."""
    return world.folder / str(world.manager.status(PROJECT).generation)


def damaged(tmp_path: Path, how: str, which: str) -> list[dict[str, list[object]]]:
    done = subprocess.run(
        [sys.executable, damaging_process.__file__, str(tmp_path), how, which],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    # -SIGBUS here: it read what was cut short.
    assert done.returncode == 0, done.stderr
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(cases) == len(damaging_process.FILES)
    return [case for case in cases if case]


@pytest.mark.requirement("retrieval.index.serving-damage")
@pytest.mark.parametrize("how", sorted(damaging_process.DAMAGES))
def test_a_file_damaged_while_it_serves_is_found_before_it_is_read_and_the_former_one_serves(
    tmp_path: Path, how: str
) -> None:
    cases = damaged(tmp_path, how, "own")
    assert len(cases) == len(damaging_process.FILES)
    for case in cases:
        file = case["file"]
        assert case["found"] == ["mem_queue index", "mem_queue overlay", "mem_queue index"], file
        assert case["generations"] == ["gen-00000001", "gen-00000003"], file
        assert "broken" in str(case["errors"][0]), file
        assert case["errors"][1] is None, file
        assert case["lag"] == [True, False], file
        assert case["quarantined"] == ["quarantine-gen-00000002"], file
        assert case["built"] == [1, 0], f"{file}: one build, vectors from the cache"
        assert case["left"] == ["CURRENT", "gen-00000001", "gen-00000003"], file


@pytest.mark.requirement("retrieval.index.serving-damage")
@pytest.mark.parametrize("how", ["truncated", "deleted"])
def test_damage_to_a_file_that_two_generations_share_is_found_in_both(tmp_path: Path, how: str) -> None:
    cases = damaged(tmp_path, how, "shared")
    assert {str(case["file"]) for case in cases} >= {"lexical/*.term", "vectors/*.tokens"}
    # Deleting takes one of a file's two names away; the former generation is whole.
    whole = how == "deleted"
    during = "mem_queue overlay" if whole else "search_index_preparing"
    for case in cases:
        file = case["file"]
        assert case["found"] == ["mem_queue index", during, "mem_queue index"], file
        assert case["generations"] == ["gen-00000001" if whole else None, "gen-00000003"], file
        assert "broken" in str(case["errors"][0]), file
        assert case["built"] == [1, 0], file


@pytest.mark.requirement("retrieval.index.deleted")
@pytest.mark.parametrize("what", ["the Project's folder", "everything"])
def test_an_index_deleted_under_the_running_process_is_built_again(world: World, what: str) -> None:
    world.index(sample())
    if what == "everything":  # The vectors' cache lies beside the indexes.
        for path in world.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        shutil.rmtree(world.folder)
    status = world.manager.status(PROJECT)
    assert (status.state, status.generation, status.lag) == ("none", None, True)
    assert "broken" in str(status.error)
    with pytest.raises(InterleafError) as caught:
        world.search("release")
    assert caught.value.code is ErrorCode.SEARCH_INDEX_PREPARING
    before = world.embedder.calls["passages"]
    world.manager.run_once()
    assert world.search("publish the package").units[0].resource_id == "mem_release"
    assert world.manager.status(PROJECT).generation == "gen-00000002", "no name is used twice"
    assert (world.embedder.calls["passages"] == before) == (what != "everything")
    world.restart()
    assert world.manager.status(PROJECT).error is None


@pytest.mark.requirement("retrieval.index.deleted")
def test_a_change_after_the_folder_was_deleted_is_indexed(world: World) -> None:
    world.index(sample())
    shutil.rmtree(world.folder)
    world.index(sample(queue=NEW))
    status = world.manager.status(PROJECT)
    assert (status.state, status.error) == ("ready", None)
    assert world.search("giraffe").units[0].resource_id == "mem_queue"


def test_a_file_that_was_only_touched_or_copied_goes_on_serving(world: World) -> None:
    world.index(sample())
    world.search("publish the package")
    folder = serving(world)
    os.utime(folder / "units.jsonl", (1, 1))
    pooled = next(folder.glob("vectors/*.pooled"))
    shutil.copyfile(pooled, world.root / "copy")
    (world.root / "copy").replace(pooled)
    assert world.search("publish the package").units
    status = world.manager.status(PROJECT)
    assert (status.generation, status.error, status.lag) == ("gen-00000001", None, False)
    assert world.manager.run_once() == 0
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        generation.check()
        (view,) = world.searcher._views.values()
        assert view.generation is generation, "nothing reads through the files that were replaced"


@pytest.mark.requirement("retrieval.index.deleted")
def test_a_missing_generation_is_told_at_opening_and_the_former_one_serves(world: World) -> None:
    world.index(sample())
    world.index(sample(queue=NEW))
    shutil.rmtree(serving(world))
    world.restart()
    status = world.manager.status(PROJECT)
    assert (status.generation, status.lag) == ("gen-00000001", True)
    assert "missing" in str(status.error)
    assert world.search("giraffe", sample(queue=NEW)).units
    assert world.manager.run_once() == 1
    assert world.manager.status(PROJECT).error is None


@pytest.mark.requirement("retrieval.index.serving-damage")
@pytest.mark.parametrize("damage", [flip, Path.unlink], ids=["flipped", "deleted"])
@pytest.mark.parametrize("when", ["before the build", "planned", "lexical written"])
def test_a_build_takes_nothing_over_from_a_generation_that_broke(
    world: World, when: str, damage: Callable[[Path], object]
) -> None:
    def damage_when(name: str) -> None:
        if name == when and not done:
            done.append(name)
            damage(next((world.folder / "gen-00000001").glob("vectors/*.tokens")))

    done: list[str] = []
    world.index(sample())
    world.restart(checkpoint=damage_when)
    world.memories[PROJECT] = sample(queue=NEW)
    world.manager.status(PROJECT)
    damage_when("before the build")
    world.manager.wake(PROJECT)
    world.manager.run_once()
    assert done
    assert world.manager.status(PROJECT).error is None
    assert [path.name for path in world.folder.glob("gen-*")] == [world.manager.status(PROJECT).generation]
    assert world.search("giraffe").units[0].resource_id == "mem_queue"
    world.restart()
    assert world.manager.status(PROJECT).error is None, "every file is what its digest says"


@pytest.mark.requirement("retrieval.index.serving-damage")
def test_finding_damage_while_a_build_runs_does_not_disturb_the_build(world: World) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def hold(name: str) -> None:
        if name == "lexical written":
            reached.set()
            assert go_on.wait(60)

    world.index(sample())
    world.restart(checkpoint=hold)
    assert world.search("release", sample()).units
    world.memories[PROJECT] = memory_of(*sample(queue=NEW).resources, resource("mem_x", "x.md", "a zebra"))
    world.manager.wake(PROJECT)
    builder = threading.Thread(target=world.manager.run_once)
    builder.start()
    assert reached.wait(60)
    # A second name was given to the vectors already; the list of units is the former generation's own.
    flip(world.folder / "gen-00000001" / "units.jsonl")
    with pytest.raises(InterleafError) as caught:
        world.search("zebra")
    assert caught.value.code is ErrorCode.SEARCH_INDEX_PREPARING
    go_on.set()
    builder.join(60)
    assert world.manager.status(PROJECT).error is None
    assert world.search("zebra").units[0].resource_id == "mem_x"


def test_what_the_system_refuses_sets_no_index_aside(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.index(sample())
    world.restart()

    def refuse(path: Path) -> str:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(generation_module, "digest_of", refuse)
        status = world.manager.status(PROJECT)
        assert (status.generation, status.lag) == (None, True)
        assert "Too many open files" in str(status.error)
        world.manager.run_once()
        assert world.manager.status(PROJECT).state == "failed"
    status = world.manager.status(PROJECT)
    assert status.generation == "gen-00000001"
    world.manager.wake(PROJECT)
    world.manager.run_once()
    status = world.manager.status(PROJECT)
    assert (status.generation, status.state, status.error) == ("gen-00000001", "ready", None)


@pytest.mark.requirement("retrieval.index.versions")
def test_a_question_to_an_index_of_another_model_wakes_the_builder(world: World) -> None:
    world.index(sample())
    world.embedder = HashingEmbedder(fingerprint="hashing-2")
    with pytest.raises(InterleafError) as caught:
        world.search("publish the package")
    assert caught.value.code is ErrorCode.SEARCH_INDEX_PREPARING
    assert world.manager.run_once() == 1
    assert world.search("publish the package").units[0].resource_id == "mem_release"
    assert world.embedder.calls["passages"], "vectors of two models are never mixed"


@pytest.mark.requirement("retrieval.index.coalesced")
def test_all_wake_ups_during_a_build_are_one_more_build(world: World) -> None:
    built: list[str] = []
    reached, go_on, second = threading.Event(), threading.Event(), threading.Event()

    def checkpoint(name: str) -> None:
        if name == "planned":
            reached.set()
            assert go_on.wait(60)
        if name == "published":
            built.append(name)
            (second if len(built) == 2 else reached).set()

    manager = IndexManager(
        world.root / "indexes",
        world.memories.__getitem__,
        world.embedder_source,
        world.cache,
        checkpoint=checkpoint,
    )
    world.memories[PROJECT] = sample()
    manager.start()
    manager.wake(PROJECT)
    assert reached.wait(60)
    for number in range(50):
        world.memories[PROJECT] = sample(queue=f"# Queue\n\nversion {number}")
        manager.wake(PROJECT)
    go_on.set()
    assert second.wait(60)
    manager.stop()
    assert len(built) == 2
    assert manager.status(PROJECT).lag is False
    with manager.pin(PROJECT) as generation:
        assert generation is not None
        assert generation.manifest.memory_hash == world.memories[PROJECT].hash
