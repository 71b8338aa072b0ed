"""When to try again, and what an answer of the server means for the operation that met it.

Two ranges of time. Within one request a short burst rides over a hiccup (see ``org_client``).
Everything longer is a stored time: full jitter over a window that doubles from 2 s to 5 min (M.
Brooker, "Exponential Backoff and Jitter", 2015), at least 1 s, never earlier than the server's
``Retry-After``. Because the time is stored, a restart neither forgets it nor hammers.
"""

from __future__ import annotations

from enum import Enum, auto
from random import Random
from typing import Any, Final

from tenacity import RetryCallState, Retrying
from tenacity.wait import wait_base, wait_exponential

from shared_schema.errors import ErrorCode, InterleafError, Kind

LONGEST_SECONDS: Final = 300
SHORTEST_SECONDS: Final = 1
LONGEST_RETRY_AFTER_MS: Final = 3_600_000
"""A server that asks for more patience than an hour is asked again after one."""


class FullJitter(wait_exponential):
    """Tenacity's exponential window, with a moment chosen evenly in it by a given generator."""

    def __init__(self, rng: Random) -> None:
        super().__init__(multiplier=2 * SHORTEST_SECONDS, max=LONGEST_SECONDS, min=SHORTEST_SECONDS)
        self._rng = rng

    def __call__(self, retry_state: RetryCallState) -> float:
        """Return the seconds to wait after the attempt that ``retry_state`` counts."""
        return self._rng.uniform(SHORTEST_SECONDS, super().__call__(retry_state))


_RETRYING: Final = Retrying()


def delay_ms(wait: wait_base, attempts: int, *, retry_after_ms: int | None = None, rng: Random) -> int:
    """Return how long to wait after ``attempts`` tries, in milliseconds.

    ``retry_after_ms`` is a lower bound; up to a second is added to it, so that clients that were
    sent away together do not come back together.
    """
    state = RetryCallState(_RETRYING, None, (), {})
    state.attempt_number = max(attempts, 1)
    chosen = round(wait(state) * 1000)
    if retry_after_ms is None:
        return chosen
    asked = min(max(retry_after_ms, 0), LONGEST_RETRY_AFTER_MS)
    return max(chosen, asked + rng.randrange(1000))


class Verdict(Enum):
    """What an error of an upload means."""

    PATIENCE = auto()
    """No answer, or 408, 425, 429: nothing is known against the operation."""
    SERVER_FAILED = auto()
    """5xx: an outage, or this operation's own poison."""
    SIGNED_OUT = auto()
    ACCESS_LOST = auto()
    REFUSED = auto()


_PATIENCE_STATUSES: Final = frozenset({408, 425, 429})


def judge(error: InterleafError) -> Verdict:
    """Return what ``error``, as ``org_client`` raises it, means for the operations of a request.

    ``details.http_status`` is the status that came; without one nothing (readable) came at all.
    """
    status = http_status(error)
    if status is None:
        unreachable = error.kind in (Kind.UNAVAILABLE, Kind.NOT_READY)
        return Verdict.PATIENCE if unreachable else Verdict.REFUSED
    if status in _PATIENCE_STATUSES:
        return Verdict.PATIENCE
    if status >= 500:
        return Verdict.SERVER_FAILED
    if status == 401:
        return Verdict.SIGNED_OUT
    if status in (403, 404):
        return Verdict.ACCESS_LOST
    return Verdict.REFUSED


def http_status(error: InterleafError) -> int | None:
    """Return the HTTP status that an error came with, if it came from the server."""
    status: Any = error.details.get("http_status")
    return status if isinstance(status, int) else None


def retry_after_ms(error: InterleafError) -> int | None:
    """Return how long the server asked to be left alone, in milliseconds."""
    value: Any = error.details.get("retry_after_ms")
    return value if isinstance(value, int) else None


RETRY_CAN_HELP: Final = frozenset(
    {
        ErrorCode.OPERATION_OUT_OF_ORDER,
        ErrorCode.PATH_OCCUPIED,
        ErrorCode.COMMIT_UNKNOWN,
        ErrorCode.ADAPTATION_EXISTS,
    }
)
"""Refusals that depend on the server's state, not on the operation alone."""
