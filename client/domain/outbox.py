"""How an operation travels to the server: one state, the events that happen to it, one function.

::

                     claimed                 accepted
    queued ───────────────────────▶ syncing ──────────▶ synced
      ▲                             │ │ │ │                │
      │ due, restored, woken        │ │ │ └─ refused,      │ reoffered (the server was restored)
      ├───────────── retrying ◀─────┘ │ │    poison        ▼
      │                ▲   no answer, │ │      │         queued
      │                │   429, 5xx   │ │      ▼
      │                └──────────────┘ │    failed ── retried by a person ──▶ queued
      └──────── put back ───────────────┘

A parked operation is ``retrying`` with a cause and no time: it waits for the account to sign in, or
for access to its Project, and burns no attempts meanwhile. A pair of state and event that the table
does not have raises `ImpossibleTransition`; nothing is guessed.

Pure: who calls brings times, delays and lease tokens along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from shared_schema.sync_status import ParkingCause, SyncStatus

POISON_STREAK: Final = 8
"""So many equal server failures of one operation, while others pass, end its attempts."""

_MESSAGE_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where one operation is on its way; times in epoch milliseconds."""

    sync_status: SyncStatus = SyncStatus.QUEUED
    attempts: int = 0
    lease: str | None = None
    """Names the attempt under way: an answer that comes with another lease is too late."""
    lease_at: int | None = None
    next_attempt_at: int | None = None
    cause: ParkingCause | None = None
    error_code: str | None = None
    error_message: str | None = None
    retry_can_help: bool | None = None
    streak: int = 0
    """Equal server failures in a row that were this operation's own, not an outage's."""


class ImpossibleTransition(Exception):  # noqa: N818 - names the thing that was asked for
    """An event that cannot happen to an operation in its state."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, for people: a stable code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """An attempt begins, under a lease token of its own."""

    lease: str
    at: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server has it, for the first time or as a replay."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer, or one that asks for patience (408, 425, 429): try again at ``next_attempt_at``."""

    problem: Problem
    next_attempt_at: int


@dataclass(frozen=True, slots=True)
class ServerFailed:
    """A 5xx. ``others_pass``: the server took other Drafts' operations meanwhile, so it is up."""

    problem: Problem
    next_attempt_at: int
    others_pass: bool


@dataclass(frozen=True, slots=True)
class Parked:
    """The account is signed out, or the Project is out of reach: wait for that to change."""

    cause: ParkingCause
    problem: Problem


@dataclass(frozen=True, slots=True)
class Refused:
    """The server said no to this operation, and would say so again."""

    problem: Problem
    retry_can_help: bool = False


@dataclass(frozen=True, slots=True)
class PutBack:
    """Another operation stopped the attempt: this one was not judged, and the attempt not its own."""


@dataclass(frozen=True, slots=True)
class ProcessDied:
    """Whoever held the lease is gone: the outcome is unknown, and the operation id makes it safe."""

    at: int


@dataclass(frozen=True, slots=True)
class Due:
    """The waiting time is over, or somebody asked for it to be over."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a parked operation waited for has come back."""

    cause: ParkingCause


@dataclass(frozen=True, slots=True)
class RetriedByPerson:
    """A person asked for another try: same operation id, new budget of attempts."""


@dataclass(frozen=True, slots=True)
class Reoffered:
    """The server's database is another one now (a restore): what it took may be gone."""


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """Its Draft was published without it; it goes on in a Draft of its own, as if never sent."""


Event = (
    Claimed
    | Accepted
    | Unanswered
    | ServerFailed
    | Parked
    | Refused
    | PutBack
    | ProcessDied
    | Due
    | Restored
    | RetriedByPerson
    | Reoffered
    | CarriedOver
)

_QUEUED, _SYNCING, _RETRYING, _SYNCED, _FAILED = (
    SyncStatus.QUEUED,
    SyncStatus.SYNCING,
    SyncStatus.RETRYING,
    SyncStatus.SYNCED,
    SyncStatus.FAILED,
)


def transition(delivery: Delivery, event: Event) -> Delivery:
    """Return the state after ``event``, or raise `ImpossibleTransition`; see the diagram above."""
    status = delivery.sync_status
    match event:
        case Claimed() if status is _QUEUED:
            return replace(
                delivery,
                sync_status=_SYNCING,
                attempts=delivery.attempts + 1,
                lease=event.lease,
                lease_at=event.at,
                next_attempt_at=None,
            )
        case Parked() if status in (_QUEUED, _SYNCING, _RETRYING):
            return _park(delivery, event)
        case Due() if status is _RETRYING and delivery.cause is None:
            return _queue(delivery)
        case Restored() if status is _RETRYING and delivery.cause is event.cause:
            return _queue(delivery)
        case RetriedByPerson() if status in (_FAILED, _RETRYING):
            return Delivery()
        case Reoffered() if status is _SYNCED:
            return Delivery()
        case CarriedOver() if status is not _SYNCED:
            return Delivery()
    if status is _SYNCING:
        return _answered(delivery, event)
    raise ImpossibleTransition(f"{type(event).__name__} cannot happen to an operation that is {status}")


def _answered(delivery: Delivery, event: Event) -> Delivery:
    """What becomes of an attempt under way."""
    released = replace(delivery, lease=None, lease_at=None)
    match event:
        case Accepted():
            return Delivery(sync_status=_SYNCED, attempts=delivery.attempts)
        case Unanswered():
            return _retry_later(released, event.problem, event.next_attempt_at)
        case ServerFailed():
            return _server_failed(released, event)
        case Refused():
            return _fail(released, event.problem, event.retry_can_help)
        case PutBack():
            return replace(released, sync_status=_QUEUED, attempts=delivery.attempts - 1)
        case ProcessDied():
            return replace(released, sync_status=_RETRYING, next_attempt_at=event.at)
    raise ImpossibleTransition(f"{type(event).__name__} cannot happen to an operation that is syncing")


def _server_failed(delivery: Delivery, event: ServerFailed) -> Delivery:
    same = delivery.error_code == event.problem.code
    # An outage proves nothing about this operation, so it does not count.
    streak = (delivery.streak if same else 0) + event.others_pass
    if streak >= POISON_STREAK:
        problem = Problem(
            event.problem.code,
            f"The server failed on this operation {streak} times while it took others: "
            f"{event.problem.message}",
        )
        return _fail(replace(delivery, streak=streak), problem, retry_can_help=True)
    return _retry_later(replace(delivery, streak=streak), event.problem, event.next_attempt_at)


def _retry_later(delivery: Delivery, problem: Problem, next_attempt_at: int) -> Delivery:
    return replace(
        delivery,
        sync_status=_RETRYING,
        next_attempt_at=next_attempt_at,
        error_code=problem.code,
        error_message=problem.message[:_MESSAGE_CHARACTERS],
    )


def _park(delivery: Delivery, event: Parked) -> Delivery:
    # The attempt that met the closed door is given back: only answers about an operation count.
    attempts = delivery.attempts - (delivery.sync_status is _SYNCING)
    return replace(
        delivery,
        sync_status=_RETRYING,
        attempts=attempts,
        lease=None,
        lease_at=None,
        next_attempt_at=None,
        cause=event.cause,
        error_code=event.problem.code,
        error_message=event.problem.message[:_MESSAGE_CHARACTERS],
    )


def _queue(delivery: Delivery) -> Delivery:
    # What went wrong last stays readable until the next answer.
    return replace(delivery, sync_status=_QUEUED, next_attempt_at=None, cause=None)


def _fail(delivery: Delivery, problem: Problem, retry_can_help: bool) -> Delivery:
    return replace(
        delivery,
        sync_status=_FAILED,
        next_attempt_at=None,
        cause=None,
        error_code=problem.code,
        error_message=problem.message[:_MESSAGE_CHARACTERS],
        retry_can_help=retry_can_help,
    )
