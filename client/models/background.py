"""Preparation that never blocks a start: one thread, tried again with growing pauses."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

import structlog
from tenacity import RetryCallState
from tenacity.wait import wait_base, wait_random_exponential

from client.models.catalog import EmbeddingModel
from client.models.files import ModelFiles, find_prepared
from client.models.preparation import prepare_model
from client.models.progress import PreparationProgress, PreparationStopped, Stage, unavailable
from shared_schema.errors import ErrorCode, InterleafError

_LOG: Final = structlog.get_logger(__name__)
_STOP_SECONDS: Final = 10.0
_FIRST_PAUSE_SECONDS: Final = 15
_LONGEST_PAUSE_SECONDS: Final = 1800


class ModelPreparation:
    """Prepares one model in the background and answers how far it is. Thread-safe.

    ``wait`` is asked for the pause after the n-th failed attempt; ``pause`` sleeps it and returns early
    when woken; ``now_ms`` is the clock of ``next_attempt_at``. These are replaced in tests. ``on_ready`` is
    called in the thread when it made the model.
    """

    def __init__(
        self,
        model: EmbeddingModel,
        models_dir: Path,
        *,
        model_folder: Path | None = None,
        wait: wait_base | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        pause: Callable[[float], object] | None = None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self._model = model
        self._models_dir = models_dir
        self._model_folder = model_folder
        self._wait = wait or wait_random_exponential(
            multiplier=_FIRST_PAUSE_SECONDS, min=_FIRST_PAUSE_SECONDS, max=_LONGEST_PAUSE_SECONDS
        )
        self._now_ms = now_ms
        self._on_ready = on_ready
        self._wake = Event()
        self._pause = pause or self._wake.wait
        self._stop = Event()
        self._lock = Lock()
        self._progress = PreparationProgress(Stage.WAITING, 0, model.download_bytes)
        self._files: ModelFiles | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Find the prepared model at once, or begin to make it in a thread. Calling again is harmless."""
        with self._lock:
            if self._thread is not None or self._files is not None:
                return
            self._files = find_prepared(self._model, self._models_dir)
            if self._files is not None:
                self._progress = self._ready_progress()
                return
            self._stop.clear()
            self._thread = Thread(target=self._run, name="model-preparation", daemon=True)
            self._thread.start()

    def status(self) -> PreparationProgress:
        """Return how far it is."""
        with self._lock:
            return self._progress

    def require(self) -> ModelFiles:
        """Return the prepared model.

        Raises:
            InterleafError: SEARCH_MODEL_PREPARING with ``stage``, ``current_bytes`` and ``total_bytes``
                while it is being made; SEARCH_MODEL_UNAVAILABLE with ``last_error`` and
                ``next_attempt_at`` between a failed attempt and the next.
        """
        with self._lock:
            files, progress = self._files, self._progress
        if files is not None:
            return files
        if progress.stage is Stage.FAILED and progress.error is not None:
            raise unavailable(
                f"The search model could not be prepared: {progress.error.message}", **progress.as_details()
            )
        raise InterleafError(
            ErrorCode.SEARCH_MODEL_PREPARING,
            f"The search model is being prepared ({progress.stage.value}, {progress.current_bytes} of "
            f"{progress.total_bytes} bytes). Try again soon; load and store work meanwhile.",
            details=progress.as_details(),
        )

    def prepare_again(self, *, lost: bool = False) -> None:
        """Try at once: end the pause between two attempts, or look at what is prepared again, by hash.

        A model that is found damaged is made again; until then it serves on, unless the caller has seen
        that it is ``lost``.
        """
        with self._lock:
            if lost:
                self._files = None
            if self._thread is not None and self._thread.is_alive():
                self._wake.set()
                return
            total = self._model.download_bytes
            self._progress = PreparationProgress(Stage.VERIFY, total, total)
            self._stop.clear()
            self._thread = Thread(
                target=self._run, kwargs={"verify": True}, name="model-preparation", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End the thread and its download; the next ``start`` goes on where that left off."""
        self._stop.set()
        self._wake.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_STOP_SECONDS)

    def _run(self, *, verify: bool = False) -> None:
        if verify:
            found = find_prepared(self._model, self._models_dir, verify=True)
            with self._lock:
                # Whole: the same object stays, so that what is loaded is not loaded again.
                self._files = (self._files or found) if found is not None else None
                if self._files is not None:
                    self._progress = self._ready_progress()
                    return
        attempts = 0
        while not self._stop.is_set():
            self._wake.clear()
            attempts += 1
            try:
                files = prepare_model(
                    self._model,
                    self._models_dir,
                    model_folder=self._model_folder,
                    verify=verify,
                    report=self._report,
                    stop=self._stop,
                )
            except PreparationStopped:
                return
            except InterleafError as error:
                self._failed(error, attempts)
            except Exception:  # noqa: BLE001 - a dead thread would leave "preparing" standing for ever
                _LOG.exception("model_preparation_failed", model=self._model.name)
                self._failed(InterleafError(ErrorCode.INTERNAL_ERROR), attempts)
            else:
                with self._lock:
                    self._files = files
                    self._progress = self._ready_progress()
                self._on_ready()
                return

    def _failed(self, error: InterleafError, attempts: int) -> None:
        state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]
        state.attempt_number = attempts
        seconds = self._wait(state)
        with self._lock:
            self._progress = PreparationProgress(
                Stage.FAILED,
                self._progress.current_bytes,
                self._model.download_bytes,
                error=error,
                attempts=attempts,
                next_attempt_at=self._now_ms() + int(seconds * 1000),
            )
        if not self._stop.is_set():
            self._pause(seconds)

    def _report(self, stage: Stage, current_bytes: int) -> None:
        with self._lock:
            self._progress = PreparationProgress(
                stage,
                current_bytes,
                self._model.download_bytes,
                error=self._progress.error,
                attempts=self._progress.attempts,
            )

    def _ready_progress(self) -> PreparationProgress:
        total = self._model.download_bytes
        return PreparationProgress(Stage.READY, total, total)
