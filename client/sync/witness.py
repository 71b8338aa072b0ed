"""Telling an operation that the server chokes on from a server that is not well.

A server failure counts against an operation only when the same server took another Draft's
operation since the failures began, and when the last answer to anything else was a good one.
"""

from __future__ import annotations

from itertools import count

SYNC = "sync"
"""Stands for the requests that carry no operation."""


class Witness:
    """What this process saw of the server; a restart only delays a verdict."""

    def __init__(self) -> None:
        self._moments = count(1)
        self._latest: dict[str, tuple[int, bool]] = {}
        self._accepted: dict[str, int] = {}
        self._failing_since: dict[str, int] = {}

    def begin_round(self) -> int:
        """Return the moment at which a round begins."""
        return next(self._moments)

    def saw(self, subject: str, good: bool) -> None:
        """Note how the server answered about a Draft, or about `SYNC`."""
        moment = next(self._moments)
        self._latest[subject] = (moment, good)
        if good and subject != SYNC:
            self._accepted[subject] = moment
            self._failing_since.pop(subject, None)

    def others_pass(self, draft_id: str, round_began: int) -> bool:
        """Note a server failure of a Draft; tell whether the server is well otherwise."""
        since = self._failing_since.setdefault(draft_id, round_began)
        others = [seen for subject, seen in self._latest.items() if subject != draft_id]
        accepted = any(moment > since for subject, moment in self._accepted.items() if subject != draft_id)
        self._latest[draft_id] = (next(self._moments), False)
        return accepted and max(others)[1]
