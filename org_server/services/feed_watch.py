"""One look at the feed for everybody who waits in this process.

Of all that wait one looks at the counter, a few times a second; when it moved, that one reads who
may see the new events, and only those whom they concern look for themselves. So the database is
asked as often with two hundred waiters as with one, and a busy Project does not wake the others.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from org_server.domain.change_feed import Reader, may_read
from org_server.store.feed import events_after, feed_head
from org_server.store.unit_of_work import UnitOfWorkFactory
from shared_schema.org_contract import FeedEventType

LOOK_SECONDS: Final = 0.25
"""How often the feed's counter is looked at while anybody waits."""
KEPT: Final = 2_000
"""Events that are remembered; who is further behind looks for itself."""


class _Event(NamedTuple):
    """Who may read an event, without what it says."""

    seq: int
    event_type: str
    audience: str
    project_id: str | None
    user_id: str | None


class FeedWatch:
    """The places to wait of one process. ``told`` gets 1 and -1 as they are taken and left, 0 when full."""

    def __init__(
        self, units: UnitOfWorkFactory, places: int, told: Callable[[int], None] = lambda _change: None
    ) -> None:
        self._units = units
        self._places = threading.Semaphore(places)
        self._told = told
        self._moved = threading.Condition()
        self._looking = False
        self._events: deque[_Event] = deque(maxlen=KEPT)
        self._floor = self._head = 0
        """What is remembered is all that happened after the one, up to the other."""

    def enter(self) -> bool:
        """Take a place to wait, if there is one; `leave` gives it back."""
        entered = self._places.acquire(blocking=False)
        self._told(1 if entered else 0)
        return entered

    def leave(self) -> None:
        """Give a place back."""
        self._places.release()
        self._told(-1)

    def wait(
        self,
        after: int,
        reader: Reader,
        deadline: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Return when something after number ``after`` may concern the reader, or at the deadline."""
        with self._moved:
            if not self._looking and after > self._head:
                # Nobody looked for a while; what was in between concerns nobody who waits.
                self._forget(after)
            while not self._concerns(reader, after) and (left := deadline - monotonic()) > 0:
                after = max(after, self._head)
                if self._looking:
                    self._moved.wait(min(left, LOOK_SECONDS))
                else:
                    self._look_later(min(left, LOOK_SECONDS), sleep)

    def _look_later(self, seconds: float, sleep: Callable[[float], None]) -> None:
        """Sleep and look, while others may come, go and wait; they are woken in any case."""
        self._looking, seen = True, self._head
        self._moved.release()
        head, events = seen, list[_Event]()
        try:
            sleep(seconds)
            head, events = self._read(seen)
        finally:
            self._moved.acquire()
            self._looking = False
            if len(events) < head - seen:
                self._forget(head - len(events))
            self._events.extend(events)
            if self._events:
                self._floor = max(self._floor, self._events[0].seq - 1)
            self._head = head
            self._moved.notify_all()

    def _read(self, seen: int) -> tuple[int, list[_Event]]:
        with self._units.read() as uow:
            head = feed_head(uow)
            if head == seen:
                return head, []
            rows = events_after(uow, max(seen, head - KEPT))
            return head, [
                _Event(row.seq, row.type, row.audience, row.project_id, row.user_id) for row in rows
            ]

    def _forget(self, floor: int) -> None:
        self._events.clear()
        self._floor = self._head = floor

    def _concerns(self, reader: Reader, after: int) -> bool:
        if after < self._floor:
            return True
        return self._head > after and any(
            event.seq > after and _may_concern(reader, event) for event in self._events
        )


def _may_concern(reader: Reader, event: _Event) -> bool:
    """Tell whether to look; any change of membership may change what the reader sees."""
    return event.event_type == FeedEventType.MEMBERSHIP_CHANGED or may_read(
        reader,
        event_type=event.event_type,
        audience=event.audience,
        project_id=event.project_id,
        user_id=event.user_id,
    )
