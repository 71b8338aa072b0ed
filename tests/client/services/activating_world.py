"""One machine without a server, with its search: real store, services and index, hashing embedder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from client.domain.embedding import Embedder
from client.index.manager import IndexManager
from client.index.searcher import Searcher
from client.index.vector_cache import VectorCache
from client.services.activate_memory import ActivateMemory
from client.services.run_log import RunLog
from client.store.revocation import forget_project
from shared_schema.tool_contract import Activate, ActivateAnswer
from tests.client.local_world import PROJECT, LocalWorld
from tests.fakes.hashing_embedder import HashingEmbedder

KEY = b"k" * 32


class ActivatingWorld(LocalWorld):
    """A machine whose agent can activate. Nothing is indexed until `index` is called."""

    def __init__(
        self, home: Path, *, embedder: Embedder | None = None, checkpoint: Callable[[str], None] | None = None
    ) -> None:
        self.home = home
        self.follows = True
        """Whether a test lets the index follow a change."""
        self.checkpoint = checkpoint or (lambda _: None)
        self.embedder = embedder or HashingEmbedder()
        super().__init__(home)
        self.cache = VectorCache(home / "vectors.db", self.clock)
        self.open_index()

    def open_index(self) -> None:
        """Open what lies on disk, as a process does when it starts."""
        self.manager = IndexManager(
            self.home / "index",
            self.memory.get,
            lambda: self.embedder,
            self.cache,
            checkpoint=self.checkpoint,
        )
        self.searcher = Searcher(self.cache)
        self.runs = RunLog(self.store)
        models: Any = SimpleNamespace(embedder=lambda: self.embedder)
        parts = (self.store, self.memory, self.manager, self.searcher, models, self.clock, self.new_id)
        self.activate = ActivateMemory(*parts, KEY, self.runs)

    def build(self) -> None:
        """Bring the index up to date."""
        self.manager.wake(PROJECT)
        self.manager.run_once()

    def ask(self, query: str, state: str | None = None, project: str = PROJECT) -> ActivateAnswer:
        """Activate, with a state where there is one."""
        return self.activate(project, Activate(query=query, **({"state": state} if state else {})))

    def revoke(self) -> None:
        """Lose the access to the Project, as synchronisation tells of it."""
        with self.store.write() as uow:
            row = uow.projects.get(PROJECT)
            assert row is not None
            forget_project(uow, row)
        self.memory.forget(PROJECT)
        self.manager.forget(PROJECT)
        self.activate.forget(PROJECT)

    def close(self) -> None:
        self.runs.stop()
        self.cache.close()
        super().close()
