"""A process whose index lies on a small disk that fills up, or becomes read-only, before a build.

Run as ``python full_disk_process.py FOLDER CACHE CASE`` by `run_with_own_disk`; prints one JSON line a
build that was tried.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from client.domain.effective_memory import EffectiveMemory
from client.index.vector_cache import VectorCache
from tests.client.index.conftest import PROJECT, World, memory_of, resource, sample
from tests.client.own_disk import fill, mount, remount
from tests.fakes.hashing_embedder import HashingEmbedder

STEP = 4 * 1024


def later() -> EffectiveMemory:
    """The sample and enough more that the files of its index differ much in size."""
    texts = (f"text number {n} " + f"word{n} " * n for n in range(25))
    return memory_of(
        *sample().resources, *(resource(f"mem_n{n:02d}", f"n/{n}.md", text) for n, text in enumerate(texts))
    )


def tell(world: World, left: int) -> bool:
    """Say how the build went and whether the index answers; return whether it succeeded."""
    status = world.manager.status(PROJECT)
    found = "nothing"
    if status.generation is not None:
        found = world.search("publish the package", sample()).units[0].resource_id
    left_behind = sorted(path.name for path in world.folder.iterdir())
    print(json.dumps([left, status.state, status.generation, status.error_code, status.error, found]))
    print(json.dumps(left_behind), flush=True)
    return status.state == "ready"


def full(world: World) -> None:
    for left in range(0, 2**22, STEP):
        filler = fill(world.root, left)
        world.index(later())
        if tell(world, left):
            return
        filler.unlink()


def read_only(world: World) -> None:
    remount(world.root, "ro")
    world.index(later())
    tell(world, 0)
    world.restart()
    tell(world, 0)
    remount(world.root, "rw")
    world.index(later())
    tell(world, 0)


def main(folder: str, cache: str, case: str) -> None:
    mount(Path(folder), "4m")
    world = World(Path(folder), HashingEmbedder(), VectorCache(Path(cache) / "vectors.db", now=lambda: 1_000))
    world.index(sample())
    {"full": full, "read-only": read_only}[case](world)
    world.cache.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
