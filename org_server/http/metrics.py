"""What Prometheus reads: counters and histograms of one process, or of all workers together.

With ``PROMETHEUS_MULTIPROC_DIR`` in the environment before this module is imported every process
counts in files of that directory, and whichever answers ``/metrics`` adds them up. Labels are routes,
statuses, codes and types: their number is that of the code, never that of users, ids or paths.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from sqlalchemy import Engine, event

from org_server.store.unit_of_work import Transaction
from shared_schema.errors import ERRORS, ErrorCode, InterleafError

DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# When each series began is nobody's question here, and doubles their number.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it ships without annotations


class Metrics:
    """The metrics of one application. ``feed_head`` is asked whenever somebody reads them."""

    def __init__(self, version: str, feed_head: Callable[[], int]) -> None:
        self._shared = DIRECTORY in os.environ
        self._registry = own = CollectorRegistry()
        self._computed = _Computed(version, feed_head)
        self.requests = Counter("interleaf_requests", "Requests.", ["route", "status"], registry=own)
        self.seconds = Histogram(
            "interleaf_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=own
        )
        self.errors = Counter("interleaf_errors", "Refused or failed.", ["kind", "code"], registry=own)
        self.running = self._gauge("interleaf_requests_in_progress", "Requests being answered.", "method")
        self.waiters = self._gauge("interleaf_waiters", "Long polls being held.")
        self.waiters_refused = Counter(
            "interleaf_waiters_refused", "Long polls answered at once: no place to wait.", registry=own
        )
        self.connections = self._gauge("interleaf_database_connections_in_use", "Connections in use.")
        self.transactions = Counter(
            "interleaf_transactions", "Transactions.", ["kind", "outcome"], registry=own
        )
        self.transaction_seconds = Histogram(
            "interleaf_transaction_seconds", "Time of each.", ["kind"], buckets=_SECONDS, registry=own
        )
        self.write_wait = Histogram(
            "interleaf_write_wait_seconds", "Time to get the writers' turn.", buckets=_SECONDS, registry=own
        )
        self.events = Counter(
            "interleaf_feed_events", "Feed events; review.merged are merges.", ["type"], registry=own
        )
        if not self._shared:
            ProcessCollector(registry=own)
            own.register(self._computed)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        # Of the living alone: what a killed worker had in hand is gone with it.
        return Gauge(name, text, labels, registry=self._registry, multiprocess_mode="livesum")

    def exposition(self) -> bytes:
        """Return the text format, of all processes where they share a directory."""
        if not self._shared:
            return generate_latest(self._registry)
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]  # it ships without annotations
        everyone.register(self._computed)
        return generate_latest(everyone)

    def transaction(self, done: Transaction) -> None:
        """Count a transaction that ended."""
        self.transactions.labels(done.kind, done.outcome).inc()
        self.transaction_seconds.labels(done.kind).observe(done.seconds)
        if done.kind == "write":
            self.write_wait.observe(done.waited)
        for event_type in done.events:
            self.events.labels(event_type).inc()

    def error(self, code: ErrorCode) -> None:
        """Count an error answer."""
        self.errors.labels(ERRORS[code].kind.value, code.value).inc()

    def waiter(self, change: int) -> None:
        """Count a long poll that begins (1), ends (-1) or finds no place (0)."""
        if change:
            self.waiters.inc(change)
        else:
            self.waiters_refused.inc()

    def watch(self, engine: Engine) -> None:
        """Count the connections of this engine that are in use."""

        def taken(*_: object) -> None:
            self.connections.inc()

        def given_back(*_: object) -> None:
            self.connections.dec()

        event.listen(engine, "checkout", taken)
        event.listen(engine, "checkin", given_back)


class _Computed(Collector):
    """What is the same whichever process is asked."""

    def __init__(self, version: str, feed_head: Callable[[], int]) -> None:
        self._labels = {"version": version, "python": platform.python_version()}
        self._feed_head = feed_head

    def collect(self) -> Iterator[GaugeMetricFamily]:
        build = GaugeMetricFamily("interleaf_build_info", "The release.", labels=list(self._labels))
        build.add_metric(list(self._labels.values()), 1)
        yield build
        try:
            head = self._feed_head()
        except InterleafError:
            return  # The database is away; the other figures tell more than a failed scrape.
        yield GaugeMetricFamily("interleaf_feed_head", "The feed's last number.", value=head)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        # Registering would ask `collect` instead, and so the database.
        yield from ()
