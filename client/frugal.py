"""Keeping the resident process small: it lives all day beside an editor."""

from __future__ import annotations

import ctypes
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


def give_back() -> None:
    """Return freed memory to the system where the allocator would keep it: after a load or a build."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):
            return
