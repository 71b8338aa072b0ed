"""A process that builds one generation and kills itself at a named point.

Run as ``python building_process.py ROOT POINT TEXT``; the process never ends by itself otherwise than
by the kill, unless the point is never reached.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from client.index.manager import IndexManager
from client.index.vector_cache import VectorCache
from tests.client.index.conftest import PROJECT, sample
from tests.fakes.hashing_embedder import HashingEmbedder


def main(root: str, point: str, text: str) -> None:
    def checkpoint(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    cache = VectorCache(Path(root) / "vectors.db", now=lambda: 1_000)
    manager = IndexManager(
        Path(root) / "indexes",
        lambda _: sample(queue=text),
        HashingEmbedder,
        cache,
        checkpoint=checkpoint,
    )
    manager.wake(PROJECT)
    manager.run_once()


if __name__ == "__main__":
    main(*sys.argv[1:])
