"""The wall clock, as a function that tests replace."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns epoch milliseconds."""


def system_clock() -> int:
    """Return now, in epoch milliseconds."""
    return time.time_ns() // 1_000_000
