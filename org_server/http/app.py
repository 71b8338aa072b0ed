"""The Flask application: request ids, authentication, dispatch of the routes, metrics."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog
from flask import Flask, Response, g, request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel

from org_server.config import Settings
from org_server.http import auth, conditional, errors, parsing
from org_server.http.openapi import Answer, Call, Route, RouteTable, document
from org_server.store.unit_of_work import UnitOfWorkFactory
from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import API_PREFIX

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
STOPPING: Final = "interleaf.stopping"
"""The application's extension that holds the event of its end."""
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_log = structlog.get_logger("interleaf.server")


def create_app(
    units: UnitOfWorkFactory,
    settings: Settings,
    tables: Sequence[RouteTable],
    version: str,
    ready: Callable[[], None],
) -> Flask:
    """Return the application; ``ready`` raises when database or schema are not fit for use."""
    app = Flask("org_server", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = limits.REQUEST_BYTES
    app.url_map.redirect_defaults = False
    app.url_map.strict_slashes = True
    errors.install(app)
    _observe(app)
    _add_probes(app, ready)
    description = document(tables, version)
    app.add_url_rule(f"{API_PREFIX}/openapi.json", "openapi", lambda: description)
    app.extensions[STOPPING] = stopping = threading.Event()
    waiters = threading.BoundedSemaphore(settings.max_waiters or 1)
    if settings.max_waiters == 0:
        waiters.acquire()
    for table in tables:
        for route in table.routes:
            app.add_url_rule(
                API_PREFIX + route.path,
                route.name,
                _view(route, units, settings, waiters, stopping),
                methods=[route.method],
                provide_automatic_options=False,
            )
    return app


def _view(
    route: Route,
    units: UnitOfWorkFactory,
    settings: Settings,
    waiters: threading.BoundedSemaphore,
    stopping: threading.Event,
) -> Callable[..., Response]:
    def view(**parts: str) -> Response:
        for part in parts.values():
            parsing.check_text(part)
        actor = auth.actor_of(request.headers, units)
        arguments: dict[str, Any] = dict(parts)
        if route.request is not None:
            if request.mimetype != "application/json":
                raise InterleafError(ErrorCode.UNSUPPORTED_MEDIA_TYPE)
            arguments["body"] = parsing.parse_body(route.request, request.get_data(cache=False))
        if route.query is not None:
            arguments["query"] = parsing.parse_query(route.query, request.args.items(multi=True))
        call = Call(actor, units, settings, g.request_id, request.headers, waiters, stopping)
        return _respond(route, route.handler(call, **arguments))

    return view


def _respond(route: Route, result: Any) -> Response:
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(status=route.status)
    answer = Answer(result) if isinstance(result, BaseModel) else result
    if not isinstance(answer, Answer) or route.answer is None or not isinstance(answer.model, route.answer):
        raise TypeError(f"{route.name} answers something else than it declares")
    body = answer.model.model_dump_json().encode()
    response = Response(body, status=answer.status or route.status, mimetype="application/json")
    etag = answer.etag
    if etag is None and (route.tagged or answer.version is not None):
        etag = conditional.etag_of(body, answer.version)
    if etag is not None:
        response.headers["ETag"] = etag
        if route.method == "GET" and conditional.matches(request.headers.get("If-None-Match"), etag):
            response.status_code = 304
            response.set_data(b"")
            del response.headers["Content-Type"]
    return response


def _observe(app: Flask) -> None:
    registry = CollectorRegistry()
    requests = Counter("interleaf_requests_total", "Requests.", ["route", "status"], registry=registry)
    seconds = Histogram("interleaf_request_seconds", "Time to answer.", ["route"], registry=registry)

    running = Gauge(
        "interleaf_requests_in_progress", "Requests being answered.", ["method"], registry=registry
    )

    @app.before_request
    def start() -> None:
        given = request.headers.get("X-Request-ID", "")
        g.request_id = given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}"
        g.started = time.perf_counter()
        running.labels(request.method).inc()

    @app.teardown_request
    def end(_error: BaseException | None) -> None:
        running.labels(request.method).dec()

    @app.after_request
    def finish(response: Response) -> Response:
        # The rule, never the path: ids would make a time series each.
        route = f"{request.method} {request.url_rule.rule}" if request.url_rule else "none"
        elapsed = time.perf_counter() - g.started
        requests.labels(route, str(response.status_code)).inc()
        seconds.labels(route).observe(elapsed)
        response.headers["X-Request-ID"] = g.request_id
        if response.status_code != 304:  # nothing to sniff, and a quiet round is kept small
            response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers.setdefault("Cache-Control", "private, no-cache")
        _log.debug(
            "request",
            route=route,
            status=response.status_code,
            milliseconds=round(elapsed * 1000, 1),
            request_id=g.request_id,
        )
        return response

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(registry), content_type=METRICS_TYPE)


def _add_probes(app: Flask, ready: Callable[[], None]) -> None:
    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready")
    def is_ready() -> dict[str, str]:
        ready()
        return {"status": "ready"}
