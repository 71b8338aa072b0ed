"""Waiting for the end of a burst, so that background work does not get in the way of what causes it.

An agent that writes several documents goes on at once with the next call. Work that begins at the first
one's wake-up competes with all that follow, and is done again for each.
"""

from __future__ import annotations

from collections.abc import Callable


class Lull:
    """Waits in steps of ``quiet`` seconds until none of them saw a wake-up; ``longest`` seconds at most."""

    def __init__(self, quiet: float, longest: float) -> None:
        self._quiet = quiet
        self._steps = max(1, round(longest / quiet))
        self._noted = 0

    def note(self) -> None:
        """Say that something happened. May be called from any thread."""
        self._noted += 1

    def wait(self, pause: Callable[[float], bool]) -> bool:
        """Wait, and tell whether the waiting was ended early.

        ``pause`` waits so many seconds; it returns True, sooner if it can, when nobody shall wait any more.
        """
        for _ in range(self._steps):
            before = self._noted
            if pause(self._quiet):
                return True
            if self._noted == before:
                break
        return False
