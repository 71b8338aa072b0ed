"""A process whose index is damaged while it serves, once for every kind of file.

Run as ``python damaging_process.py FOLDER DAMAGE own|shared``; prints one JSON line a kind of file. It
is a process of its own because a mapped file that was cut short ends the one that reads it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from client.index.vector_cache import VectorCache
from shared_schema.errors import InterleafError
from tests.client.index.conftest import PROJECT, World, sample
from tests.fakes.hashing_embedder import HashingEmbedder

NEW = "# Queue\n\nA giraffe guards the queue."
FILES = [
    "manifest.json",
    "units.jsonl",
    "lexical/meta.json",
    "lexical/*.term",
    "lexical/*.idx",
    "lexical/*.fast",
    "lexical/*.store",
    "lexical/*.fieldnorm",
    "vectors/*.pooled",
    "vectors/*.tokens",
    "vectors/*.scales",
    "vectors/*.offsets",
]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes() or b"x")
    content[len(content) // 2] ^= 0x40
    with path.open("r+b") as file:
        file.write(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "flipped": flip,
    "deleted": Path.unlink,
}


def found(world: World, query: str) -> str:
    """Return the best resource's id and whether the overlay knew it, or the error's code."""
    try:
        trace = world.search(query)
    except InterleafError as error:
        return error.code.value
    best = trace.candidates[0]
    return f"{best.resource_id} {'overlay' if best.overlay else 'index'}"


def damage(root: Path, pattern: str, how: str, *, shared: bool) -> dict[str, object]:
    """Damage one file of the serving generation; ``shared``: one that the former generation has too."""
    cache = VectorCache(root / "vectors.db", now=lambda: 1_000)
    world = World(root, HashingEmbedder(), cache)
    world.index(sample())
    world.index(sample(queue=NEW))
    before = found(world, "giraffe")
    serving = world.folder / str(world.manager.status(PROJECT).generation)
    files = [path for path in serving.glob(pattern) if (path.stat().st_nlink > 1) == shared]
    if not files:
        return {}
    DAMAGES[how](max(files, key=lambda path: path.stat().st_size))
    during = found(world, "giraffe")
    status = world.manager.status(PROJECT)
    quarantined = sorted(path.name for path in world.folder.glob("quarantine-*"))
    embedded = world.embedder.calls["passages"]
    built = world.manager.run_once()
    after, later = found(world, "giraffe"), world.manager.status(PROJECT)
    cache.close()
    return {
        "file": pattern,
        "found": [before, during, after],
        "generations": [status.generation, later.generation],
        "errors": [status.error, later.error],
        "lag": [status.lag, later.lag],
        "quarantined": quarantined,
        "built": [built, world.embedder.calls["passages"] - embedded],
        "left": sorted(path.name for path in world.folder.iterdir()),
    }


def main(folder: str, how: str, shared: str) -> None:
    for number, pattern in enumerate(FILES):
        root = Path(folder) / str(number)
        root.mkdir()
        print(json.dumps(damage(root, pattern, how, shared=shared == "shared")), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
