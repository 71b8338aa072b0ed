"""How far a preparation is: one value, and the errors that end one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from threading import Event
from typing import Any

from client.disk import is_full
from shared_schema.errors import ErrorCode, InterleafError


class Stage(StrEnum):
    """What a preparation is doing. ``WAITING``: not started, or another process prepares the same."""

    WAITING = "waiting"
    DOWNLOAD = "download"
    VERIFY = "verify"
    CONVERT = "convert"
    SELF_TEST = "self_test"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PreparationProgress:
    """The state of one preparation; bytes are those of the download.

    ``error`` is the last attempt's, kept while the next one runs; ``next_attempt_at`` is epoch
    milliseconds, set only between two attempts.
    """

    stage: Stage
    current_bytes: int
    total_bytes: int
    error: InterleafError | None = None
    attempts: int = 0
    next_attempt_at: int | None = None

    def as_details(self) -> dict[str, Any]:
        """Return the JSON-able form, as in the details of ``search_model_preparing``."""
        details: dict[str, Any] = {
            "stage": self.stage.value,
            "current_bytes": self.current_bytes,
            "total_bytes": self.total_bytes,
        }
        if self.error is not None:
            details["last_error"] = self.error.as_wire()
            details["attempts"] = self.attempts
        if self.next_attempt_at is not None:
            details["next_attempt_at"] = self.next_attempt_at
        return details


class PreparationStopped(Exception):  # noqa: N818 - an outcome that the caller asked for, not an error
    """The caller asked a running preparation to stop; nothing was put in place."""


Report = Callable[[Stage, int], None]
"""Receives the stage and the bytes downloaded so far."""


def check_stop(stop: Event) -> None:
    """Raise ``PreparationStopped`` when ``stop`` is set."""
    if stop.is_set():
        raise PreparationStopped


def unavailable(message: str, **details: Any) -> InterleafError:
    """Return a SEARCH_MODEL_UNAVAILABLE error with this sentence."""
    return InterleafError(ErrorCode.SEARCH_MODEL_UNAVAILABLE, message, details=details)


def storage_full(needed_bytes: int, where: object) -> InterleafError:
    """Return a STORAGE_FULL error that says how much room a model needs."""
    details: Mapping[str, Any] = {"needed_bytes": needed_bytes, "folder": str(where)}
    megabytes = -(-needed_bytes // 1_000_000)
    return InterleafError(
        ErrorCode.STORAGE_FULL,
        f"The disk has no room for the search model; free about {megabytes} MB, or set another folder "
        "with INTERLEAF_MODELS_DIR.",
        details=details,
    )


def from_os_error(error: OSError, needed_bytes: int, where: object) -> InterleafError:
    """Turn an ``OSError`` of a preparation into an expected error."""
    if is_full(error):
        return storage_full(needed_bytes, where)
    return unavailable(
        f"The search model could not be written: {error.strerror or type(error).__name__}. "
        "Check the models folder's permissions.",
        folder=str(where),
    )
