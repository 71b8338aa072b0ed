from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from client.index.files import IndexCorruptError
from client.index.generation import Generation
from client.index.manifest import read_manifest, write_manifest
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.index import building_process
from tests.client.index.building_process import NEW, larger
from tests.client.index.conftest import PROJECT, World, sample
from tests.client.index.damaging_process import FILES


def generation_folder(world: World) -> Path:
    name = world.manager.status(PROJECT).generation
    assert name is not None
    return world.folder / name


POINTS = [
    "planned",
    "batch embedded",
    "vectors written",
    "lexical written",
    "written",
    "before publication",
    "renamed",
]


def killed_at(world: World, point: str, which: str) -> None:
    """Build in another process that is killed at ``point``; this one has let go of the cache."""
    world.cache.close()
    result = subprocess.run(
        [sys.executable, building_process.__file__, str(world.root), point, which], timeout=60, check=False
    )
    assert result.returncode == -signal.SIGKILL
    world.restart()


# Of the 20 new units the first 8 were embedded when the first batch was done.
@pytest.mark.requirement("sync.invariant.9")
@pytest.mark.requirement("retrieval.index.killed")
@pytest.mark.parametrize(
    ("point", "kept"), [(point, {"planned": 0, "batch embedded": 8}.get(point, 20)) for point in POINTS]
)
def test_a_build_killed_anywhere_leaves_the_former_generation_serving(
    world: World, point: str, kept: int
) -> None:
    world.index(sample())
    killed_at(world, point, "larger")
    status = world.manager.status(PROJECT)
    assert (status.state, status.generation, status.error) == ("ready", "gen-00000001", None)
    assert world.search("expected_hash", sample()).units
    assert sorted(path.name for path in world.folder.iterdir()) == ["CURRENT", "gen-00000001"]
    before = world.embedder.calls["passages"]
    world.index(larger())
    assert world.embedder.calls["passages"] - before == 20 - kept, "the others come from the cache"
    assert world.search("giraffe").units[0].resource_id == "mem_queue"
    assert world.search("text number 7").units[0].resource_id == "mem_n07"
    world.restart()
    assert world.manager.status(PROJECT).error is None


@pytest.mark.requirement("retrieval.index.killed")
@pytest.mark.parametrize("point", POINTS)
def test_a_first_build_killed_anywhere_is_begun_again(world: World, point: str) -> None:
    killed_at(world, point, "first")
    status = world.manager.status(PROJECT)
    # Renamed and not yet pointed to: with nothing older, the whole generation is taken.
    whole = point == "renamed"
    assert (status.state, status.error) == ("ready" if whole else "none", None)
    before = world.embedder.calls["passages"]
    world.index(sample())
    assert world.embedder.calls["passages"] - before == (5 if point == "planned" else 0)
    assert world.search("publish the package").units[0].resource_id == "mem_release"
    assert len(list(world.folder.glob("gen-*"))) == 1


@pytest.mark.requirement("retrieval.index.killed")
def test_a_build_killed_right_after_publication_serves_the_new_generation(world: World) -> None:
    world.index(sample())
    killed_at(world, "published", "larger")
    assert world.manager.status(PROJECT).generation == "gen-00000002"
    assert not world.search("giraffe", larger()).candidates[0].overlay


def _truncate(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()  # Other generations may share the file.
    path.write_bytes(content[: len(content) // 2])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 0x40
    else:
        content = bytearray(b"x")
    path.unlink()
    path.write_bytes(content)


def _empty(path: Path) -> None:
    path.unlink()
    path.touch()


@pytest.mark.requirement("retrieval.index.corrupt")
@pytest.mark.parametrize(
    "damage", [_truncate, _flip, _empty, Path.unlink], ids=["truncated", "flipped", "emptied", "missing"]
)
@pytest.mark.parametrize("pattern", FILES)
def test_a_damaged_file_is_found_quarantined_and_the_index_built_again(
    world: World, pattern: str, damage: Callable[[Path], None]
) -> None:
    world.index(sample())
    damage(max(generation_folder(world).glob(pattern), key=lambda path: path.stat().st_size))
    world.restart()
    status = world.manager.status(PROJECT)
    assert status.generation is None
    assert status.error is not None
    assert "broken" in status.error
    assert [path.name for path in world.folder.glob("quarantine-*")] == ["quarantine-gen-00000001"]
    with pytest.raises(InterleafError) as caught:
        world.search("release", sample())
    assert caught.value.code is ErrorCode.SEARCH_INDEX_PREPARING
    before = world.embedder.calls["passages"]
    assert world.manager.run_once() == 1
    assert world.search("publish the package").units
    assert world.embedder.calls["passages"] == before, "vectors come from the cache"
    assert world.manager.status(PROJECT).error is None
    assert list(world.folder.glob("quarantine-*")) == []


@pytest.mark.requirement("retrieval.index.corrupt")
def test_a_number_changed_in_the_manifest_is_found(world: World) -> None:
    world.index(sample())
    path = generation_folder(world) / "manifest.json"
    text = path.read_text()
    assert '"next_uid": 5' in text
    # Read as it stands, the next generation would give one number to two units.
    path.write_text(text.replace('"next_uid": 5', '"next_uid": 1'))
    world.restart()
    assert "the manifest was changed" in str(world.manager.status(PROJECT).error)


@pytest.mark.requirement("retrieval.index.corrupt")
def test_when_the_newest_generation_is_broken_the_former_one_serves_until_the_rebuild(world: World) -> None:
    world.index(sample())
    world.index(sample(queue=NEW))
    _truncate(generation_folder(world) / "units.jsonl")
    world.restart()
    status = world.manager.status(PROJECT)
    assert (status.generation, status.lag) == ("gen-00000001", True)
    assert world.search("giraffe", sample(queue=NEW)).units[0].resource_id == "mem_queue", "by the overlay"
    world.manager.run_once()
    assert world.manager.status(PROJECT).generation == "gen-00000003"


def test_two_broken_generations_are_a_build_from_nothing(world: World) -> None:
    world.index(sample())
    world.index(sample(queue=NEW))
    for folder in world.folder.glob("gen-*"):
        (folder / "manifest.json").write_text("{}")
    world.restart()
    assert world.manager.status(PROJECT).generation is None
    world.manager.run_once()
    assert world.search("giraffe").units


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", '{"current": 7, "former": null}', '{"current": "../x"}']
)
def test_a_broken_pointer_is_no_reason_to_lose_the_index(world: World, content: str | None) -> None:
    world.index(sample())
    pointer = world.folder / "CURRENT"
    pointer.unlink() if content is None else pointer.write_text(content)
    world.restart()
    assert world.manager.status(PROJECT).generation == "gen-00000001"
    assert world.search("publish the package").units
    world.index(sample(queue=NEW))
    world.restart()
    assert world.manager.status(PROJECT).generation == "gen-00000002"


def test_a_missing_folder_is_an_index_to_be_built(world: World) -> None:
    world.index(sample())
    shutil.rmtree(world.folder)
    world.restart()
    world.index(sample())
    assert world.search("publish the package").units


@pytest.mark.requirement("retrieval.index.versions")
@pytest.mark.parametrize("name", ["tantivy", "analysis", "chunker", "format"])
def test_an_index_of_another_version_is_set_aside_and_built_again(world: World, name: str) -> None:
    world.index(sample())
    manifest = read_manifest(generation_folder(world))
    other: dict[str, object] = {name: "0.0.0" if name == "tantivy" else -1}
    versions = replace(manifest.versions, **other)  # type: ignore[arg-type]  # one of several types
    write_manifest(generation_folder(world), replace(manifest, versions=versions))
    world.restart()
    assert world.manager.status(PROJECT).generation is None
    assert "another version" in str(world.manager.status(PROJECT).error)
    world.manager.run_once()
    assert world.search("publish the package").units


def test_an_index_that_breaks_while_it_serves_is_set_aside(world: World) -> None:
    world.index(sample())
    world.index(sample(queue=NEW))

    def broken(terms: object, limit: int) -> list[tuple[int, float]]:
        raise IndexCorruptError(f"{terms} {limit}")

    with world.manager.pin(PROJECT) as generation:
        assert isinstance(generation, Generation)
        generation.lexical.search = broken  # type: ignore[method-assign]  # a file that broke just now
    with pytest.raises(InterleafError) as caught:
        world.search("giraffe")
    assert caught.value.code is ErrorCode.SEARCH_INDEX_PREPARING
    assert world.manager.status(PROJECT).generation == "gen-00000001"
    assert world.search("giraffe").units, "the former generation serves"
    world.manager.run_once()
    assert world.manager.status(PROJECT).generation == "gen-00000003"
    assert world.search("giraffe").units


def test_a_failed_build_is_tried_again_later_and_not_at_once(world: World) -> None:
    world.fault = InterleafError(ErrorCode.SEARCH_MODEL_UNAVAILABLE, "broken model")
    world.index(sample())
    assert world.manager._woken(due_only=True) == []
    world.now += 3
    assert [each.project_id for each in world.manager._woken(due_only=True)] == [PROJECT]
