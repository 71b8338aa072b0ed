"""Which resources changed between two projection versions, as far as this process saw it."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from typing import Final, NamedTuple

KEPT: Final = 512
"""Changes remembered for each Project; a reader further behind computes everything anew."""


class Change(NamedTuple):
    """The resources that a version changed; None: any of them may have."""

    version: int
    resource_ids: frozenset[str] | None


class ChangeLog:
    """A memory aid, never the truth: whoever finds a gap reads the tables instead.

    A change is noted before its transaction commits, so a version that a reader can see is never
    missing here because of timing. Of a version that was rolled back and then given again, the
    later note holds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: dict[str, deque[Change]] = defaultdict(lambda: deque(maxlen=KEPT))

    def note(self, project_id: str, change: Change) -> None:
        """Remember what the version changes."""
        with self._lock:
            self._changes[project_id].append(change)

    def between(self, project_id: str, older: int, newer: int) -> frozenset[str] | None:
        """Return the ids that changed after ``older`` up to ``newer``; None: compute all anew."""
        ids: set[str] = set()
        expected = newer
        with self._lock:
            # From the newest on: few versions are read, and the later note of a version comes first.
            for change in reversed(self._changes[project_id]):
                if expected == older:
                    break
                if change.version > expected:
                    continue
                if change.version < expected or change.resource_ids is None:
                    return None
                ids |= change.resource_ids
                expected -= 1
        return frozenset(ids) if expected == older else None
