from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.retry_policy import FullJitter, Verdict, delay_ms, judge
from shared_schema.errors import ErrorCode, InterleafError


@pytest.mark.requirement("sync.outbox.backoff")
@given(st.integers(1, 10_000), st.integers())
def test_a_wait_is_between_a_second_and_five_minutes(attempts: int, seed: int) -> None:
    rng = Random(seed)
    assert 1_000 <= delay_ms(FullJitter(rng), attempts, rng=rng) <= 300_000


def test_the_window_doubles_with_every_attempt_up_to_five_minutes() -> None:
    class Last(Random):
        def uniform(self, a: float, b: float) -> float:
            return max(a, b)

    rng = Last()
    waits = [delay_ms(FullJitter(rng), attempt, rng=rng) for attempt in (1, 2, 3, 8, 9, 1_000)]
    assert waits == [2_000, 4_000, 8_000, 256_000, 300_000, 300_000]


@pytest.mark.requirement("sync.outbox.backoff")
@given(st.integers(0, 10**9), st.integers())
def test_the_server_s_wish_is_a_lower_bound_of_at_most_an_hour(asked: int, seed: int) -> None:
    rng = Random(seed)
    assert delay_ms(FullJitter(rng), 1, retry_after_ms=asked, rng=rng) >= min(asked, 3_600_000)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (None, Verdict.PATIENCE),
        (400, Verdict.REFUSED),
        (401, Verdict.SIGNED_OUT),
        (403, Verdict.ACCESS_LOST),
        (404, Verdict.ACCESS_LOST),
        (408, Verdict.PATIENCE),
        (409, Verdict.REFUSED),
        (410, Verdict.REFUSED),
        (413, Verdict.REFUSED),
        (422, Verdict.REFUSED),
        (425, Verdict.PATIENCE),
        (429, Verdict.PATIENCE),
        (500, Verdict.SERVER_FAILED),
        (503, Verdict.SERVER_FAILED),
    ],
)
def test_a_status_means_what_the_outbox_table_says(status: int | None, verdict: Verdict) -> None:
    details = {} if status is None else {"http_status": status}
    assert judge(InterleafError(ErrorCode.ORG_SERVER_UNAVAILABLE, details=details)) is verdict


def test_an_error_of_this_machine_is_no_reason_for_patience() -> None:
    assert judge(InterleafError(ErrorCode.INVALID_ARGUMENTS)) is Verdict.REFUSED
