"""Work that must be answered within a time, whether or not it is finished by then."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Final, TypeVar

from shared_schema.errors import ErrorCode, InterleafError

WORKERS: Final = 4
"""Activations that run at once; more would only share the same few cores."""

Value = TypeVar("Value")


class Deadline:
    """Runs activations in a few threads of its own.

    What is still waiting for a thread when its time is over is never begun; what runs goes on to
    its end and its result is dropped, because a thread cannot be stopped from outside.
    """

    def __init__(self, seconds: float, workers: int = WORKERS) -> None:
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="activation")

    def run(self, work: Callable[[], Value]) -> Value:
        """Return the result of ``work``.

        Raises:
            InterleafError: ``activation_deadline`` when there is none in time, else what ``work`` raises.
        """
        future = self._pool.submit(work)
        try:
            return future.result(timeout=self._seconds)
        except FutureTimeoutError:
            if future.done():  # ``work`` itself raised a TimeoutError
                raise
            future.cancel()
            raise InterleafError(
                ErrorCode.ACTIVATION_DEADLINE,
                f"The activation took longer than {self._seconds:g} seconds; this machine is busy. "
                "Go on without it and try again later.",
            ) from None

    def close(self) -> None:
        """Take no more work; running work is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
