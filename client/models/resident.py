"""The search models as the daemon holds them: prepared in the background, loaded while they are used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import Final, Protocol

import structlog

from client.domain.embedding import Embedder
from client.frugal import give_back
from client.models.background import ModelPreparation
from client.models.catalog import PROFILES, Profile
from client.models.embedder import OnnxEmbedder
from client.models.eviction import IdleEviction
from client.models.files import ModelFiles, fault_of
from client.models.progress import Stage
from client.models.projection import SHIPPED_PROJECTION
from shared_schema.daemon_contract import ModelStatus
from shared_schema.errors import ErrorCode, InterleafError

_LOG: Final = structlog.get_logger(__name__)


class SearchModels(Protocol):
    """What search needs of models; a deterministic embedder stands in for tests."""

    @property
    def reranker(self) -> str:
        """What ranks the best candidates again, by name."""

    def embedder(self) -> Embedder:
        """Return the embedder. Raises ``search_model_preparing`` or ``search_model_unavailable``."""

    def status(self) -> ModelStatus:
        """Tell how far the preparation is."""

    def start(self) -> None:
        """Begin to prepare, in the background."""

    def retry_now(self) -> None:
        """Try at once instead of after the pause."""

    def stop(self) -> None:
        """End the background work."""


class ResidentModels:
    """A profile's models below ``models_dir``. Thread-safe.

    What was idle for ``idle_minutes`` is unloaded (0: never) and comes back with the next question;
    ``on_ready`` is called when a preparation has ended well; ``projection`` is replaced in tests.
    """

    def __init__(
        self,
        profile: Profile,
        models_dir: Path,
        *,
        model_folder: Path | None = None,
        now_ms: Callable[[], int],
        idle_minutes: float = 0,
        on_ready: Callable[[], None] = lambda: None,
        projection: Path = SHIPPED_PROJECTION,
    ) -> None:
        self._profile = profile
        self._models_dir = models_dir
        self._projection = projection
        self._preparation = ModelPreparation(
            profile.embedding, models_dir, model_folder=model_folder, now_ms=now_ms, on_ready=on_ready
        )
        self._lock = Lock()
        self._files: ModelFiles | None = None
        self._embedder: OnnxEmbedder | None = None
        self._eviction = IdleEviction(idle_minutes * 60, lambda: self._embedder)

    @property
    def reranker(self) -> str:
        """What ranks the best candidates again, by name."""
        return self._profile.reranker

    def embedder(self) -> Embedder:
        """Return the one embedder of this process; its session is loaded on first use.

        Files that went while nothing was loaded are prepared again.

        Raises:
            InterleafError: ``search_model_preparing`` and ``search_model_unavailable``.
        """
        files = self._preparation.require()
        with self._lock:
            # Prepared again: what is in memory may be of the damaged files.
            if self._embedder is None or files is not self._files:
                self._embedder = OnnxEmbedder(files, self._projection, told=self._eviction.wake)
                self._files = files
            embedder = self._embedder
        if not embedder.loaded and fault_of(files, verify=False) is not None:
            self._preparation.prepare_again(lost=True)
            self._preparation.require()
        return embedder

    def status(self) -> ModelStatus:
        """Tell how far the preparation is."""
        progress = self._preparation.status()
        ready = progress.stage is Stage.READY
        return ModelStatus(
            profile=self._profile.name,
            stage=progress.stage.value,
            ready=ready,
            loaded=self._embedder is not None and self._embedder.loaded,
            current_bytes=progress.current_bytes,
            total_bytes=progress.total_bytes,
            folder=str(self._models_dir / self._profile.embedding.folder_name) if ready else None,
            reranker=self._profile.reranker,
            error=progress.error.message if progress.error is not None else None,
            next_attempt_at=progress.next_attempt_at,
        )

    def start(self) -> None:
        """Find the prepared models, or begin to make them; load found ones before they are asked for."""
        self._preparation.start()
        self._eviction.start()
        if self._preparation.status().stage is Stage.READY:
            Thread(target=self._load, name="model-loading", daemon=True).start()

    def retry_now(self) -> None:
        """Try at once instead of after the pause; prepared files are compared with their hashes."""
        self._preparation.prepare_again()

    def stop(self) -> None:
        """End the background work."""
        self._eviction.stop()
        self._preparation.stop()

    def _load(self) -> None:
        try:
            embedder = self.embedder()
            if isinstance(embedder, OnnxEmbedder):
                embedder.load()
                give_back()
        except InterleafError as error:
            # The first search meets it again and tells the agent.
            _LOG.warning("models_not_loaded", code=error.code.value)


def find_profile(name: str) -> Profile:
    """Return a profile of the catalogue. Raises ``invalid_arguments`` naming the known ones."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"There is no model profile of that name; INTERLEAF_PROFILE may be: {', '.join(PROFILES)}.",
        ) from None
