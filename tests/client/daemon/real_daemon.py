"""The whole daemon in this process, on a real store and a real socket, without a server."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from client.config import Settings
from client.daemon.local_server import LocalServer
from client.models.resident import SearchModels
from client.store.projects import BindingRow, ProjectRow
from client.wiring import Daemon, build_daemon
from shared_schema.daemon_contract import ModelStatus
from shared_schema.memory import PublishedResource
from tests.client.local_world import COMMIT, OWN, PROJECT, REFERENCE
from tests.fakes.hashing_embedder import HashingEmbedder

WAIT_SECONDS = 30.0


class ReadyModels:
    """Models that are there at once: the deterministic embedder."""

    reranker = "late_interaction"

    def __init__(self) -> None:
        self._embedder = HashingEmbedder()

    def embedder(self) -> HashingEmbedder:
        return self._embedder

    def status(self) -> ModelStatus:
        return ModelStatus(
            profile="test",
            stage="ready",
            ready=True,
            current_bytes=0,
            total_bytes=0,
            folder=None,
            reranker=self.reranker,
        )

    def start(self) -> None:
        """Nothing to prepare."""

    def retry_now(self) -> None:
        """Nothing to prepare."""

    def stop(self) -> None:
        """Nothing to end."""


def settings(home: Path, **changes: object) -> Settings:
    """No package index is asked: the folder for models is empty."""
    empty = home / "no models"
    empty.mkdir(parents=True, exist_ok=True)
    # The models that the environment may name are not these tests'.
    own = {"home": home, "models_dir": home / "models", "model_folder": empty}
    return Settings.model_validate(own | changes)


@contextmanager
def running(made: Settings, models: SearchModels | None = None) -> Iterator[Daemon]:
    """Serve until the block ends; everything as in the process, but for the lock and the log."""
    made.places.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    daemon = build_daemon(made, models)
    server: LocalServer | None = None
    server = LocalServer(
        lambda token: daemon.make_app(token, lambda: server.stop() if server else None),
        made.places,
        threads=made.threads,
    )
    thread = threading.Thread(target=server.run, args=(daemon.begin_stop,))
    daemon.start()
    thread.start()
    try:
        yield daemon
    finally:
        server.stop()
        thread.join(WAIT_SECONDS)
        daemon.stop()
        assert not thread.is_alive()


def install(
    daemon: Daemon, project_id: str = PROJECT, resources: Iterable[PublishedResource] = (OWN, REFERENCE)
) -> None:
    """Make a Project as after its first pull."""
    with daemon.store.write() as uow:
        row = ProjectRow(project_id, project_id, installed_commit=COMMIT, installed_seq=1, snapshot_at=1)
        uow.projects.put(row)
        uow.published.replace_all(project_id, resources)
        uow.touch(project_id)
    daemon.published(project_id)


def bind(daemon: Daemon, directory: Path, project_id: str = PROJECT) -> None:
    """Bind a directory; another binding of it is replaced."""
    with daemon.store.write() as uow:
        uow.bindings.put(BindingRow(str(directory.resolve()), project_id, 1))
    daemon.guides.refresh()
