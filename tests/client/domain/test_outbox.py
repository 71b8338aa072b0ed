"""The transition table, written out, against the one function that has to keep it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.outbox import (
    POISON_STREAK,
    Accepted,
    CarriedOver,
    Claimed,
    Delivery,
    Due,
    Event,
    ImpossibleTransition,
    Parked,
    Problem,
    ProcessDied,
    PutBack,
    Refused,
    Reoffered,
    Restored,
    RetriedByPerson,
    ServerFailed,
    Unanswered,
    transition,
)
from shared_schema.sync_status import ParkingCause, SyncStatus

Q, S, R, OK, F = (
    SyncStatus.QUEUED,
    SyncStatus.SYNCING,
    SyncStatus.RETRYING,
    SyncStatus.SYNCED,
    SyncStatus.FAILED,
)
PROBLEM = Problem("org_server_unavailable", "no answer")

STATES: dict[str, Delivery] = {
    "queued": Delivery(),
    "syncing": Delivery(sync_status=S, attempts=3, lease="l1", lease_at=10),
    "retrying": Delivery(sync_status=R, attempts=3, next_attempt_at=50, error_code="x"),
    "signed_out": Delivery(sync_status=R, attempts=3, cause=ParkingCause.SIGNED_OUT),
    "access_lost": Delivery(sync_status=R, attempts=3, cause=ParkingCause.ACCESS_LOST),
    "synced": Delivery(sync_status=OK, attempts=3),
    "failed": Delivery(sync_status=F, attempts=3, error_code="x", retry_can_help=False),
}
EVENTS: dict[str, Event] = {
    "claimed": Claimed("l2", 20),
    "accepted": Accepted(),
    "unanswered": Unanswered(PROBLEM, 99),
    "server_failed": ServerFailed(PROBLEM, 99, others_pass=True),
    "outage": ServerFailed(PROBLEM, 99, others_pass=False),
    "signed_out": Parked(ParkingCause.SIGNED_OUT, PROBLEM),
    "access_lost": Parked(ParkingCause.ACCESS_LOST, PROBLEM),
    "refused": Refused(PROBLEM),
    "put_back": PutBack(),
    "process_died": ProcessDied(20),
    "due": Due(),
    "signed_in": Restored(ParkingCause.SIGNED_OUT),
    "access_back": Restored(ParkingCause.ACCESS_LOST),
    "person": RetriedByPerson(),
    "reoffered": Reoffered(),
    "carried_over": CarriedOver(),
}
# Every pair that is allowed, and where it leads; every other pair has to be refused.
TABLE: dict[str, dict[str, SyncStatus]] = {
    "queued": {"claimed": S, "signed_out": R, "access_lost": R, "carried_over": Q},
    "syncing": {
        "accepted": OK,
        "unanswered": R,
        "server_failed": R,
        "outage": R,
        "signed_out": R,
        "access_lost": R,
        "refused": F,
        "put_back": Q,
        "process_died": R,
        "carried_over": Q,
    },
    "retrying": {"due": Q, "signed_out": R, "access_lost": R, "person": Q, "carried_over": Q},
    "signed_out": {"signed_in": Q, "signed_out": R, "access_lost": R, "person": Q, "carried_over": Q},
    "access_lost": {"access_back": Q, "signed_out": R, "access_lost": R, "person": Q, "carried_over": Q},
    "synced": {"reoffered": Q},
    "failed": {"person": Q, "carried_over": Q},
}


@pytest.mark.requirement("sync.outbox.table")
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_every_pair_of_state_and_event_is_what_the_table_says(state: str, event: str) -> None:
    expected = TABLE[state].get(event)
    if expected is None:
        with pytest.raises(ImpossibleTransition):
            transition(STATES[state], EVENTS[event])
    else:
        assert transition(STATES[state], EVENTS[event]).sync_status is expected


def test_a_claim_counts_the_attempt_and_holds_the_lease() -> None:
    claimed = transition(Delivery(attempts=2, error_code="x", error_message="m"), Claimed("l2", 20))
    assert claimed == Delivery(
        sync_status=S, attempts=3, lease="l2", lease_at=20, error_code="x", error_message="m"
    )


def test_an_accepted_operation_keeps_its_attempts_and_no_trouble() -> None:
    troubled = replace(STATES["syncing"], error_code="x", error_message="m", streak=4)
    assert transition(troubled, Accepted()) == Delivery(sync_status=OK, attempts=3)


@pytest.mark.requirement("sync.outbox.parked")
@pytest.mark.parametrize("cause", list(ParkingCause))
def test_parking_gives_the_attempt_back_and_sets_no_time(cause: ParkingCause) -> None:
    parked = transition(STATES["syncing"], Parked(cause, PROBLEM))
    assert (parked.attempts, parked.next_attempt_at, parked.lease) == (2, None, None)
    again = transition(parked, Parked(cause, PROBLEM))
    assert again == parked


def test_a_process_that_died_leaves_the_operation_due_at_once() -> None:
    left = transition(STATES["syncing"], ProcessDied(20))
    assert (left.next_attempt_at, left.lease, left.attempts) == (20, None, 3)


def test_a_person_s_retry_starts_a_new_budget() -> None:
    assert transition(STATES["failed"], RetriedByPerson()) == Delivery()


def _attempts(outcomes: list[Event]) -> Delivery:
    delivery = Delivery()
    for number, outcome in enumerate(outcomes):
        delivery = transition(delivery, Claimed(f"l{number}", number))
        delivery = transition(delivery, outcome)
        if delivery.sync_status is R:
            delivery = transition(delivery, Due())
    return delivery


@pytest.mark.requirement("sync.outbox.poison")
def test_the_same_failure_eight_times_while_others_pass_ends_in_failed() -> None:
    poison = ServerFailed(Problem("internal_error", "boom"), 1, others_pass=True)
    assert _attempts([poison] * (POISON_STREAK - 1)).sync_status is Q
    failed = _attempts([poison] * POISON_STREAK)
    assert (failed.sync_status, failed.attempts, failed.retry_can_help) == (F, 8, True)
    assert failed.error_message is not None
    assert failed.error_message.endswith("boom")


@pytest.mark.requirement("sync.outbox.poison")
def test_an_outage_never_ends_in_failed_however_long_it_lasts() -> None:
    outage = ServerFailed(Problem("database_unavailable", "down"), 1, others_pass=False)
    assert _attempts([outage] * 100).sync_status is Q


def test_another_failure_in_between_begins_the_streak_anew() -> None:
    one = ServerFailed(Problem("internal_error", "boom"), 1, others_pass=True)
    other = ServerFailed(Problem("database_unavailable", "down"), 1, others_pass=True)
    assert _attempts([one] * 7 + [other] + [one] * 7).sync_status is Q


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=30))
def test_whatever_happens_every_state_rests_or_has_a_next_action(names: list[str]) -> None:
    delivery = Delivery()
    for name in names:
        try:
            delivery = transition(delivery, EVENTS[name])
        except ImpossibleTransition:
            continue
        assert (delivery.lease is not None) == (delivery.sync_status is S)
        waits = delivery.next_attempt_at is not None or delivery.cause is not None
        assert waits == (delivery.sync_status is R)
        assert delivery.attempts >= 0
        if delivery.sync_status is F:
            assert delivery.error_code
            assert delivery.error_message
            assert delivery.retry_can_help is not None
