"""Keeping the resident process small: it lives all day beside an editor."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
"""glibc gives every thread an arena of its own and keeps what was freed there; two serve as well."""


def bound_arenas() -> bool:
    """Bound the allocator's arenas where it is glibc's; return whether that was possible."""
    if sys.platform != "linux":
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS))
    except (OSError, AttributeError):
        return False


def one_blas_thread() -> None:
    """Let NumPy compute with one thread. Before NumPy is imported; a setting of the user stays.

    A product with 10,000 vectors takes 0.6 ms with one thread and 0.3 ms with two on idle cores, but
    1.2 and 12 ms (medians) beside other programs: the second thread waits for a core, the first for it.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def give_back() -> None:
    """Return freed memory to the system where the allocator would keep it: after a load or a build."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):
            return
