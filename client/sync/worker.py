"""The thread around the engine: when the next round is due, and who waits for it.

A wake-up is a flag without data; the engine reads the store, so a lost or doubled one does no harm.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Final

import structlog

from client.domain.retry_policy import FullJitter, delay_ms
from client.lull import Lull
from client.sync.engine import RoundResult, SyncEngine
from shared_schema.errors import InterleafError

INTERVAL_SECONDS: Final = 15.0
LONGEST_PAUSE: Final = 60.0
"""Seconds after which a server that did not answer is looked for again; one request, no more."""
_SHORTEST_PAUSE: Final = 0.05
_LULL_SECONDS: Final = (0.1, 1.0)
"""A wake-up waits so long for more, and until there were none for so long, before it makes a round."""

_log = structlog.get_logger("interleaf.sync")


class SyncWorker:
    """Runs rounds in one thread until it is stopped.

    ``interval`` is the time in seconds between rounds that find nothing, give or take a fifth; with
    ``long_poll`` seconds greater than 0 the server is asked to hold the feed so long instead. After
    failures the time grows, up to a minute; a wake-up ends any waiting, and a burst of them is one round.
    """

    def __init__(
        self,
        engine: SyncEngine,
        *,
        interval: float = INTERVAL_SECONDS,
        long_poll: float = 0,
        rng: Random | None = None,
        lull: Lull | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._interval = interval
        self._long_poll = long_poll
        self._rng = rng or Random()  # noqa: S311 - jitter, no secret
        self._monotonic = monotonic
        self._lull = lull or Lull(*_LULL_SECONDS)
        self._backoff = FullJitter(self._rng)
        self._awake = threading.Event()
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._started = 0
        self._finished = 0
        self._requested = 0
        self._last: RoundResult | None = None
        self._failures = 0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; the first round begins at once."""
        self._thread = threading.Thread(target=self._run, name="interleaf-sync", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5) -> bool:
        """End the round under way at its next safe point; return whether the thread ended in time."""
        self._stopping.set()
        self._engine.stop()
        self._awake.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def wake(self) -> None:
        """Begin a round when the present one, or the waiting, has ended and no more wake-ups come."""
        self._lull.note()
        self._awake.set()
        self._engine.interrupt()

    def run_round(self, timeout: float) -> RoundResult | None:
        """Wait for a whole round that begins after this call; None when ``timeout`` seconds pass first."""
        with self._changed:
            wanted = self._started + 1
            self._requested = max(self._requested, wanted)
            self._changed.notify_all()
        self.wake()
        return self._wait_for(wanted, timeout)

    def next_round(self, timeout: float) -> RoundResult | None:
        """Wait for the end of the next round, whenever it is due; None when time passes first."""
        with self._changed:
            wanted = self._finished + 1
        return self._wait_for(wanted, timeout)

    def _wait_for(self, wanted: int, timeout: float) -> RoundResult | None:
        deadline = self._monotonic() + timeout
        with self._changed:
            while self._finished < wanted and not self._stopping.is_set():
                remaining = deadline - self._monotonic()
                if remaining <= 0 or not self._changed.wait(remaining):
                    break
            return self._last if self._finished >= wanted else None

    def _run(self) -> None:
        wait = 0.0
        while not self._stopping.is_set():
            if self._awake.is_set():
                self._lull.wait(self._until_urgent)
            # A wake-up that is wiped here came before the round, which sees what it was about.
            self._awake.clear()
            with self._changed:
                self._started += 1
                if self._requested >= self._started:
                    wait = 0.0
            began = self._monotonic()
            result = self._step(wait)
            elapsed = self._monotonic() - began
            with self._changed:
                self._finished, self._last = self._started, result
                self._changed.notify_all()
            pause = self._pause(result)
            held = wait == 0 or elapsed >= wait / 2
            wait = 0.0
            if pause == 0:
                continue
            if self._long_poll > 0 and held and result is not None and result.complete:
                wait = self._long_poll  # The next round does its waiting at the server.
            elif not self._awake.wait(pause):
                wait = self._long_poll

    def _until_urgent(self, seconds: float) -> bool:
        """Wait; whoever waits for a round or for the end is not kept waiting."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._stopping.is_set() or self._requested > self._started, seconds
            )

    def _step(self, wait: float) -> RoundResult | None:
        try:
            return self._engine.step(wait, self._awake.is_set)
        except InterleafError as error:
            # The local database is full or busy: nothing was changed, and time may help.
            _log.warning("sync_round_failed", error=error.code.value)
        except Exception as error:  # noqa: BLE001 - a defect must not end synchronisation for good
            _log.error("sync_round_failed", error=type(error).__name__, exc_info=error)
        return None

    def _pause(self, result: RoundResult | None) -> float:
        """Return the seconds until the next round; 0 for at once."""
        if result is not None and (result.interrupted or result.more):
            return 0
        if result is not None and result.complete:
            self._failures = 0
            pause = self._interval * self._rng.uniform(0.8, 1.2)
            # A stored retry may be due earlier; the engine never holds the feed past it either.
            return pause if result.due_in is None else min(pause, max(result.due_in, _SHORTEST_PAUSE))
        self._failures += 1
        asked = None if result is None else result.retry_after_ms
        delay = delay_ms(self._backoff, self._failures, retry_after_ms=asked, rng=self._rng) / 1000
        return delay if asked is not None else min(delay, LONGEST_PAUSE)
