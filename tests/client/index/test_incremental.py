"""What a new generation takes over from the former one, with no help of the vectors' cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from client.domain.effective_memory import EffectiveMemory
from client.index.generation import Generation
from tests.client.index.conftest import PROJECT, World, memory_of, resource, sample
from tests.client.index.damaging_process import flip
from tests.fakes.hashing_embedder import HashingEmbedder

Queries = list[list[tuple[str, float]]]


class Counting(HashingEmbedder):
    """Keeps every text whose tokens were counted: what was cut."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.counted.extend(texts)
        return super().count_tokens(texts)


def notes(numbers: Sequence[int], version: int = 0) -> EffectiveMemory:
    """A memory of short notes; the last one is of the given version."""
    return memory_of(
        *(
            resource(
                f"mem_{n:03d}", f"n/{n}.md", f"note {n} about topic{n} {version if n == numbers[-1] else 0}"
            )
            for n in numbers
        )
    )


def without_cache(world: World) -> None:
    world.cache.close()
    for path in world.root.glob("vectors.db*"):
        path.unlink()


def serving(world: World) -> Generation:
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        return generation


def answers(world: World, queries: Sequence[str]) -> Queries:
    return [
        sorted((each.unit_key, round(each.dense, 5)) for each in world.search(query).candidates)
        for query in queries
    ]


def built_whole(world: World, queries: Sequence[str]) -> Queries:
    """Return what an index says that takes nothing over."""
    world.manager.rebuild(PROJECT)
    world.manager.run_once()
    return answers(world, queries)


@pytest.mark.requirement("retrieval.index.incremental")
def test_what_did_not_change_is_neither_cut_nor_embedded_again_without_any_cache(world: World) -> None:
    embedder = Counting()
    world.embedder = embedder
    world.index(sample())
    without_cache(world)
    embedder.counted.clear()
    before = embedder.calls["passages"]
    changed = "# Release\n\nTag the commit, sign the package and publish it.\n\n## Rollback\n\nAsk Olga."
    world.index(sample(release=changed))
    assert embedder.calls["passages"] == before + 1, "its other section is the former generation's"
    assert embedder.counted
    assert all("Migrations" not in text and "合同" not in text for text in embedder.counted)
    assert world.search("ask olga").candidates[0].resource_id == "mem_release"


@pytest.mark.requirement("retrieval.index.incremental")
def test_a_segment_of_mostly_deleted_rows_is_written_again_without_embedding(world: World) -> None:
    world.index(notes(range(30)))
    without_cache(world)
    before = world.embedder.calls["passages"]
    world.index(notes(range(20, 30)))
    assert world.embedder.calls["passages"] == before
    (segment,) = [info for info in serving(world).manifest.segments if info.rows]
    assert segment.rows == 10
    queries = ("topic25", "note about")
    assert answers(world, queries) == built_whole(world, queries)


@pytest.mark.requirement("retrieval.index.incremental")
def test_many_additions_leave_few_segments_and_the_same_index(world: World) -> None:
    for count in range(1, 25):
        world.index(notes(range(count)))
        assert len(serving(world).manifest.segments) <= 9
    assert len(serving(world).manifest.segments) > 1, "a large segment is rarely written again"
    queries = ("topic3 topic20", "note about", "n/7.md")
    assert answers(world, queries) == built_whole(world, queries)


@pytest.mark.requirement("retrieval.index.incremental")
def test_the_lexical_index_shares_files_until_much_of_it_is_deleted(world: World) -> None:
    def shared(folder: Path) -> int:
        return sum(path.stat().st_nlink > 1 for path in (folder / "lexical").glob("*.term"))

    numbers = list(range(20))
    world.index(notes(numbers))
    seen = []
    for version in range(1, 10):
        world.index(notes(numbers, version))
        generation = serving(world)
        seen.append((generation.manifest.lexical_removed, shared(generation.folder)))
    assert [removed for removed, _ in seen] == [1, 2, 3, 4, 5, 6, 0, 1, 2]
    assert [files > 0 for _, files in seen] == [True] * 6 + [False] + [True] * 2
    queries = ("topic19", "note 19 about")
    assert answers(world, queries) == built_whole(world, queries)


@pytest.mark.parametrize("point", ["planned", "lexical written", "written", "before publication"])
def test_a_project_forgotten_at_any_point_of_a_build_leaves_nothing_behind(world: World, point: str) -> None:
    def forget(name: str) -> None:
        if name == point:
            world.manager.forget(PROJECT)

    world.index(sample())
    world.restart(checkpoint=forget)
    world.manager.status(PROJECT)
    world.index(sample(queue="# Queue\n\nAnother text."))
    assert not world.folder.exists()


@pytest.mark.requirement("retrieval.index.corrupt")
def test_a_fault_is_over_when_the_former_generation_is_of_the_very_memory(world: World) -> None:
    world.index(sample())
    world.index(sample(queue="# Queue\n\nAnother text."))
    world.memories[PROJECT] = sample()
    flip(serving(world).folder / "units.jsonl")
    status = world.manager.status(PROJECT)
    assert (status.generation, status.lag) == ("gen-00000001", True)
    assert world.manager.run_once() == 1
    status = world.manager.status(PROJECT)
    assert (status.generation, status.state, status.error, status.lag) == (
        "gen-00000001",
        "ready",
        None,
        False,
    )
    world.search("publish the package")
    assert world.manager.run_once() == 0, "nobody wakes the builder again and again"
