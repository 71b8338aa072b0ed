"""Giving a model's memory back when nobody asks for long, without keeping the process awake.

::

    loaded ──idle for `seconds`──▶ unloaded ──next question──▶ loaded (1 to 2 s)

One thread, which sleeps until it may be time: with nothing loaded, until something is; else until the
model would have been idle for long enough. So an idle process wakes twice in all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import Event, Thread
from typing import Final, Protocol

import structlog

from client.frugal import give_back

_LOG: Final = structlog.get_logger(__name__)
_STOP_SECONDS: Final = 5.0


class Evictable(Protocol):
    """What is loaded on demand and can be let go."""

    def idle_seconds(self) -> float | None:
        """Return for how long no call used it, 0 while one runs; none: nothing is loaded."""

    def unload(self) -> bool:
        """Let it go, unless a call runs."""


class IdleEviction:
    """Unloads what ``current`` returns once it was idle for ``seconds``; 0: never. Thread-safe.

    ``wait`` sleeps for seconds (none: for ever) and returns early when woken; replaced in tests.
    """

    def __init__(
        self,
        seconds: float,
        current: Callable[[], Evictable | None],
        wait: Callable[[float | None], object] | None = None,
    ) -> None:
        self._seconds = seconds
        self._current = current
        self._woken = Event()
        self._wait = wait or self._woken.wait
        self._stopping = False
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread, once; there is none where nothing is ever unloaded."""
        if self._seconds > 0 and self._thread is None:
            self._stopping = False
            self._thread = Thread(target=self._run, name="model-eviction", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Say that something was loaded. Returns at once; may be called under any lock."""
        self._woken.set()

    def stop(self) -> None:
        """End the thread."""
        self._stopping = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)
            self._thread = None

    def look(self) -> float | None:
        """Unload what was idle for long enough; return seconds until to look again, none: once woken."""
        model = self._current()
        if model is None or (idle := model.idle_seconds()) is None:
            return None
        if idle < self._seconds:
            return self._seconds - idle
        if not model.unload():
            return self._seconds  # A call has begun meanwhile.
        # Sessions hold cycles; what is freed stays with the allocator unless it is asked for.
        gc.collect()
        give_back()
        _LOG.info("model_unloaded", idle_seconds=round(idle))
        return None

    def _run(self) -> None:
        while not self._stopping:
            pause = self.look()
            self._wait(pause)
            self._woken.clear()
