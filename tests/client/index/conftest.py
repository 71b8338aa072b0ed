from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from client.domain.chunking import text_hash
from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.embedding import Embedder
from client.index.builder import Checkpoint
from client.index.manager import IndexManager
from client.index.searcher import Searcher, Snapshot
from client.index.trace import Trace
from client.index.vector_cache import VectorCache
from shared_schema.memory import Provenance, Scope
from tests.fakes.hashing_embedder import HashingEmbedder

PROJECT = "prj_1"


def resource(
    resource_id: str, path: str, body: str, *, title: str = "", description: str = "", draft: bool = False
) -> EffectiveResource:
    return EffectiveResource(
        resource_id=resource_id,
        scope=Scope.PROJECT,
        path=path,
        title=title or path.rpartition("/")[2].removesuffix(".md"),
        description=description,
        body=body,
        content_hash=text_hash(body),
        provenance=Provenance.DRAFT if draft else Provenance.AUTHORITY,
    )


def memory_of(*resources: EffectiveResource, project_id: str = PROJECT) -> EffectiveMemory:
    return EffectiveMemory.of(project_id, None, resources)


BODIES: Mapping[str, str] = {
    "release": (
        "# Release\n\nTag the commit, sign the package and publish it.\n\n## Rollback\n\nYank the wheel."
    ),
    "database": "# Database\n\nMigrations run before the deployment; take a backup first.",
    "chinese": "# 发布流程\n\n发布之前请先检查合同编号，再下载视频。",
    "queue": "# Queue\n\nThe worker uses `expected_hash` to skip messages that it has seen.",
}


def sample(**changed: str) -> EffectiveMemory:
    bodies = {**BODIES, **changed}
    return memory_of(
        *(resource(f"mem_{name}", f"guides/{name}.md", body) for name, body in bodies.items() if body)
    )


@dataclass
class World:
    """One machine's indexes: memories by Project, real files, the hashing embedder."""

    root: Path
    embedder: HashingEmbedder
    cache: VectorCache
    memories: dict[str, EffectiveMemory] = field(default_factory=dict)
    fault: Exception | None = None
    manager: IndexManager = field(init=False)
    searcher: Searcher = field(init=False)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self, checkpoint: Checkpoint = lambda _: None) -> None:
        self.manager = IndexManager(
            self.root / "indexes",
            self.memories.__getitem__,
            self.embedder_source,
            self.cache,
            checkpoint=checkpoint,
            monotonic=lambda: self.now,
        )
        self.searcher = Searcher(self.cache)

    def embedder_source(self) -> Embedder:
        if self.fault is not None:
            raise self.fault
        return self.embedder

    def index(self, memory: EffectiveMemory) -> None:
        self.memories[memory.project_id] = memory
        self.manager.wake(memory.project_id)
        self.manager.run_once()

    def search(self, query: str, memory: EffectiveMemory | None = None) -> Trace:
        memory = memory or self.memories[PROJECT]
        with self.manager.pin(memory.project_id) as generation:
            if generation is None:
                raise self.manager.preparing(memory.project_id)
            return self.searcher.search(Snapshot(generation, memory), query, self.embedder)

    @property
    def folder(self) -> Path:
        return self.root / "indexes" / PROJECT


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    cache = VectorCache(tmp_path / "vectors.db", now=lambda: 1_000)
    yield World(tmp_path, HashingEmbedder(), cache)
    cache.close()
