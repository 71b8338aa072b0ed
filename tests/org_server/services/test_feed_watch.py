"""Many who wait, one who looks."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from org_server.domain.change_feed import Reader
from org_server.services import feed_watch
from org_server.services.feed_watch import FeedWatch
from org_server.store.unit_of_work import Transaction, UnitOfWorkFactory
from shared_schema.org_contract import FeedEventType
from tests.org_server.harness import Server

MINE, OTHER = "prj_mine", "prj_other"
READER = Reader("usr_me", frozenset({MINE}))


class Time:
    """A clock that sleeping alone moves; ``during`` happens in the sleep of that number."""

    def __init__(self, during: dict[int, Callable[[], object]] | None = None) -> None:
        self.now = 0.0
        self.slept = 0
        self._during = during or {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += 1
        self._during.get(self.slept, lambda: None)()

    def monotonic(self) -> float:
        return self.now


def emit(server: Server, project_id: str, event: FeedEventType = FeedEventType.REVIEW_OPENED) -> None:
    with server.units.write() as uow:
        uow.emit(event, project_id=project_id)


def head_of(server: Server) -> int:
    with server.units.read() as uow:
        return uow.feed_head()


def waited(watch: FeedWatch, after: int, time: Time, seconds: float = 5.0) -> int:
    """Wait and return how often was slept."""
    watch.wait(after, READER, seconds, sleep=time.sleep, monotonic=time.monotonic)
    return time.slept


@pytest.mark.requirement("sync.watch")
def test_a_waiter_sleeps_through_what_does_not_concern_it(server: Server) -> None:
    time = Time({2: lambda: emit(server, OTHER), 4: lambda: emit(server, MINE)})
    assert waited(FeedWatch(server.units, 1), head_of(server), time) == 4


@pytest.mark.requirement("sync.watch")
def test_a_change_of_membership_wakes_everybody_because_it_may_change_what_they_see(server: Server) -> None:
    time = Time({3: lambda: emit(server, OTHER, FeedEventType.MEMBERSHIP_CHANGED)})
    assert waited(FeedWatch(server.units, 1), head_of(server), time) == 3


def test_a_waiter_ends_at_its_deadline(server: Server) -> None:
    time = Time()
    waited(FeedWatch(server.units, 1), head_of(server), time, 1.1)
    assert time.now == pytest.approx(1.1)


@pytest.mark.requirement("sync.watch")
def test_what_happened_while_nobody_looked_is_not_slept_through(server: Server) -> None:
    watch = FeedWatch(server.units, 1)
    before = head_of(server)
    waited(watch, before, Time(), 1.0)
    emit(server, OTHER)
    emit(server, MINE)
    assert waited(watch, before, Time()) == 1, "the next look finds both"
    assert waited(watch, before, Time()) == 0, "and the one after knows them already"
    emit(server, MINE)
    newest = head_of(server)
    waited(watch, newest, Time(), 1.0)
    assert waited(watch, before, Time()) == 0, "who is further behind than what is known looks for itself"


@pytest.mark.requirement("sync.watch")
def test_a_burst_of_more_events_than_are_remembered_hides_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_watch, "KEPT", 3)

    def burst() -> None:
        emit(server, MINE)
        for _ in range(5):
            emit(server, OTHER)

    watch = FeedWatch(server.units, 1)
    after = head_of(server)
    assert waited(watch, after, Time({1: burst})) == 1
    assert waited(watch, head_of(server), Time(), 1.0) == 4, "the remembered others concern nobody here"
    for _ in range(5):
        emit(server, OTHER)
        waited(watch, head_of(server) - 1, Time(), 0.5)
    assert waited(watch, after, Time()) == 0, "what was forgotten may have concerned it"


@pytest.mark.requirement("sync.watch")
def test_the_database_is_asked_as_often_with_many_waiters_as_with_one(server: Server) -> None:
    looks: list[Transaction] = []
    units = UnitOfWorkFactory(server.units.engine, server.clock, looks.append)
    watch = FeedWatch(units, 40)
    after = head_of(server)
    turn, go_on = threading.Semaphore(0), threading.Event()
    woken: list[int] = []

    def sleep(_seconds: float) -> None:
        turn.release()
        assert go_on.wait(30)

    def wait(number: int) -> None:
        watch.wait(after, READER, 1_000.0, sleep=sleep, monotonic=lambda: 0.0)
        woken.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    assert turn.acquire(timeout=30), "one sleeps before it looks"
    assert not turn.acquire(blocking=False), "and no other does"
    emit(server, MINE)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert sorted(woken) == list(range(40))
    assert len(looks) == 1


@pytest.mark.requirement("sync.watch")
def test_when_the_one_that_looks_ends_another_takes_its_place(server: Server) -> None:
    watch = FeedWatch(server.units, 2)
    after = head_of(server)
    looking, first_ends = threading.Event(), threading.Event()

    def sleep(_seconds: float) -> None:
        looking.set()
        assert first_ends.wait(30)

    first_left = iter([0.0, 10.0])
    first = threading.Thread(
        target=lambda: watch.wait(after, READER, 5.0, sleep=sleep, monotonic=lambda: next(first_left))
    )
    time = Time({2: lambda: emit(server, MINE)})
    second = threading.Thread(target=lambda: waited(watch, after, time, 1_000.0))
    first.start()
    assert looking.wait(30)
    second.start()
    first_ends.set()
    first.join(30)
    second.join(30)
    assert not first.is_alive()
    assert not second.is_alive()
    assert time.slept == 2


def test_a_look_that_fails_is_told_to_who_looked_and_to_nobody_else(server: Server) -> None:
    watch = FeedWatch(server.units, 1)

    def fail(_seconds: float) -> None:
        raise RuntimeError("on purpose")

    after = head_of(server)
    with pytest.raises(RuntimeError, match="on purpose"):
        watch.wait(after, READER, 5.0, sleep=fail, monotonic=lambda: 0.0)
    assert waited(watch, after, Time({1: lambda: emit(server, MINE)})) == 1
