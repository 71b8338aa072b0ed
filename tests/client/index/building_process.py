"""A process that builds one generation and kills itself at a named point.

Run as ``python building_process.py ROOT POINT WHICH``: the memory is ``MEMORIES[WHICH]``. It ends by the
kill, unless the point is never reached.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from client.domain.effective_memory import EffectiveMemory
from client.index.manager import IndexManager
from client.index.vector_cache import VectorCache
from tests.client.index.conftest import PROJECT, memory_of, resource, sample
from tests.fakes.hashing_embedder import HashingEmbedder

NEW = "# Queue\n\nA giraffe guards the queue."


def larger() -> EffectiveMemory:
    """The sample with three batches of new units."""
    added = (resource(f"mem_n{n:02d}", f"n/{n}.md", f"text number {n}") for n in range(19))
    return memory_of(*sample(queue=NEW).resources, *added)


MEMORIES = {"first": sample, "larger": larger}


def main(root: str, point: str, which: str) -> None:
    def checkpoint(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    cache = VectorCache(Path(root) / "vectors.db", now=lambda: 1_000)
    manager = IndexManager(
        Path(root) / "indexes",
        lambda _: MEMORIES[which](),
        HashingEmbedder,
        cache,
        checkpoint=checkpoint,
    )
    manager.wake(PROJECT)
    manager.run_once()


if __name__ == "__main__":
    main(*sys.argv[1:])
