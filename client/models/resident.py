"""The search models as the daemon holds them: prepared in the background, loaded once."""

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
from client.models.progress import Stage
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
    """A profile's models below ``models_dir``. Thread-safe."""

    def __init__(
        self,
        profile: Profile,
        models_dir: Path,
        *,
        model_folder: Path | None = None,
        now_ms: Callable[[], int],
    ) -> None:
        self._profile = profile
        self._models_dir = models_dir
        self._preparation = ModelPreparation(
            profile.embedding, models_dir, model_folder=model_folder, now_ms=now_ms
        )
        self._lock = Lock()
        self._embedder: OnnxEmbedder | None = None

    @property
    def reranker(self) -> str:
        """What ranks the best candidates again, by name."""
        return self._profile.reranker

    def embedder(self) -> Embedder:
        """Return the one embedder of this process; its session is loaded on first use.

        Raises:
            InterleafError: ``search_model_preparing`` and ``search_model_unavailable``.
        """
        files = self._preparation.require()
        with self._lock:
            if self._embedder is None:
                self._embedder = OnnxEmbedder(files)
            return self._embedder

    def status(self) -> ModelStatus:
        """Tell how far the preparation is."""
        progress = self._preparation.status()
        ready = progress.stage is Stage.READY
        return ModelStatus(
            profile=self._profile.name,
            stage=progress.stage.value,
            ready=ready,
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
        if self._preparation.status().stage is Stage.READY:
            Thread(target=self._load, name="model-loading", daemon=True).start()

    def retry_now(self) -> None:
        """Try at once instead of after the pause."""
        self._preparation.retry_now()
        self._preparation.start()

    def stop(self) -> None:
        """End the background work."""
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
