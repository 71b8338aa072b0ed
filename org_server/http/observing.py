"""What is noted of every request: its id, its metrics and one line in the log.

Never a body, a query, a token or a path: the route's rule stands for the path, and a user's id for
the address.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

import structlog
from flask import Flask, Response, g, request

from org_server.http.metrics import CONTENT_TYPE, Metrics

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PROBES: Final = frozenset({"/health", "/ready", "/metrics"})
_log = structlog.get_logger("interleaf.server")


def new_request_id() -> str:
    """Return an id for a request that brought none."""
    return f"req_{secrets.token_hex(8)}"


def observe(app: Flask, metrics: Metrics) -> None:
    """Give every request an id, count it and log it; ``GET /metrics`` shows the counts."""

    @app.before_request
    def start() -> None:
        given = request.headers.get("X-Request-ID", "")
        g.request_id = given if _REQUEST_ID.fullmatch(given) else new_request_id()
        g.noted = noted = _Noted(metrics)
        metrics.running.labels(noted.method).inc()

    @app.after_request
    def finish(response: Response) -> Response:
        response.headers["X-Request-ID"] = g.request_id
        if response.status_code != 304:  # nothing to sniff, and a quiet round is kept small
            response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers.setdefault("Cache-Control", "private, no-cache")
        g.noted.answered(response)
        return response

    @app.teardown_request
    def end(_error: BaseException | None) -> None:
        if "noted" in g:
            g.noted.left()

    @app.get("/metrics")
    def read_metrics() -> Response:
        return Response(metrics.exposition(), content_type=CONTENT_TYPE)


class _Noted:
    """One request from its arrival to the last byte of its answer."""

    def __init__(self, metrics: Metrics) -> None:
        self.method = request.method
        self._metrics = metrics
        self._request_id: str = g.request_id
        # The rule, never the path: ids would make a time series each.
        self._rule = request.url_rule.rule if request.url_rule else None
        self._started = time.perf_counter()
        self._streams = False
        self._running = True

    def answered(self, response: Response) -> None:
        """Take what there is to say of the answer; one that streams is noted at its end."""
        status, user, code = response.status_code, g.get("user_id"), g.get("error_code")
        if code is not None:
            self._metrics.error(code)
        if not response.is_streamed:
            self._note(status, user, response.calculate_content_length() or 0)
            return
        self._streams = True
        counted = _Counted(response.response, lambda sent: self._note(status, user, sent))
        response.response = cast("Iterable[bytes]", counted)

    def left(self) -> None:
        """Note that the request's context has gone; a stream goes on without it."""
        if not self._streams:
            self._stop()

    def _stop(self) -> None:
        if self._running:
            self._running = False
            self._metrics.running.labels(self.method).dec()

    def _note(self, status: int, user: str | None, sent: int) -> None:
        elapsed = time.perf_counter() - self._started
        route = f"{self.method} {self._rule}" if self._rule else "none"
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(elapsed)
        tell = _log.debug if self._rule in _PROBES else _log.info
        tell(
            "request",
            request_id=self._request_id,
            route=route,
            status=status,
            milliseconds=round(elapsed * 1000, 1),
            user_id=user,
            bytes=sent,
        )
        if self._streams:
            self._stop()


class _Counted:
    """A streamed body that tells its size once it ended, or was given up."""

    def __init__(self, parts: Iterable[bytes | str], tell: Callable[[int], None]) -> None:
        self._parts = parts
        self._tell: Callable[[int], None] | None = tell
        self._sent = 0

    def __iter__(self) -> Iterator[bytes | str]:
        for part in self._parts:
            self._sent += len(part)
            yield part

    def close(self) -> None:
        try:
            if (close := getattr(self._parts, "close", None)) is not None:
                close()
        finally:
            if self._tell is not None:
                tell, self._tell = self._tell, None
                tell(self._sent)
