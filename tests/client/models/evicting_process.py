"""A process that loads the real model, uses it, evicts it and uses it again.

Run as ``python evicting_process.py FOLDER``; prints its resident memory in MB at each step as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from client.frugal import bound_arenas
from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.embedder import OnnxEmbedder
from client.models.eviction import IdleEviction
from client.models.files import ModelFiles


def resident_megabytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def main(folder: str) -> None:
    now = [0.0]
    bound_arenas()
    embedder = OnnxEmbedder(ModelFiles(MULTILINGUAL_E5_SMALL, Path(folder)), monotonic=lambda: now[0])
    eviction = IdleEviction(60, lambda: embedder)
    seen: dict[str, int] = {}
    for step in ("loaded", "again"):
        first = embedder.embed_query("how do I reset my password").pooled
        embedder.embed_passages(["Open the account settings. " * 30] * 8)
        seen[step] = resident_megabytes()
        now[0] += 60
        assert eviction.look() is None
        seen[f"{step}, evicted"] = resident_megabytes()
        assert (embedder.embed_query("how do I reset my password").pooled == first).all()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
