from __future__ import annotations

import threading

import pytest

from client.daemon.deadline import Deadline
from shared_schema.errors import ErrorCode, InterleafError

WAIT = 20.0


def test_a_result_or_a_failure_in_time_comes_back_as_it_is() -> None:
    deadline = Deadline(WAIT)
    assert deadline.run(lambda: 3) == 3
    with pytest.raises(TimeoutError, match="inner"):
        deadline.run(lambda: raise_(TimeoutError("inner")))
    deadline.close()


@pytest.mark.requirement("activate.deadline")
def test_work_that_is_not_finished_in_time_is_answered_and_waiting_work_is_never_begun() -> None:
    go_on, begun = threading.Event(), threading.Event()
    deadline = Deadline(0.01, workers=1)
    for work in (lambda: go_on.wait(WAIT), begun.set):
        with pytest.raises(InterleafError, match="try again later") as failure:
            deadline.run(work)
        assert failure.value.code is ErrorCode.ACTIVATION_DEADLINE
        assert failure.value.retryable
    go_on.set()
    deadline.close()
    assert not begun.is_set()


def raise_(error: Exception) -> None:
    raise error
