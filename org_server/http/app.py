"""The Flask application: authentication and dispatch of the routes, the probes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from flask import Flask, Response, g, request
from pydantic import BaseModel

from org_server.config import Settings
from org_server.http import auth, conditional, errors, parsing, repeats
from org_server.http.metrics import Metrics
from org_server.http.observing import observe
from org_server.http.openapi import Answer, Call, Route, RouteTable, document
from org_server.services.feed_watch import FeedWatch
from org_server.store.unit_of_work import UnitOfWorkFactory
from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import API_PREFIX

STOPPING: Final = "interleaf.stopping"
"""The application's extension that holds the event of its end."""


def create_app(
    units: UnitOfWorkFactory,
    settings: Settings,
    tables: Sequence[RouteTable],
    version: str,
    ready: Callable[[], None],
) -> Flask:
    """Return the application; ``ready`` raises when database or schema are not fit for use."""
    app = Flask("org_server", static_folder=None)
    # One more than is taken: a body of unknown length is cut there in silence, and is told by it.
    app.config["MAX_CONTENT_LENGTH"] = limits.REQUEST_BYTES + 1
    app.url_map.redirect_defaults = False
    app.url_map.strict_slashes = True
    metrics = Metrics(version, partial(_feed_head, units))
    metrics.watch(units.engine)
    units = units.observed(metrics.transaction)
    app.url_map.merge_slashes = False
    errors.install(app)
    observe(app, metrics)
    _add_probes(app, ready)
    description = document(tables, version)
    app.add_url_rule(f"{API_PREFIX}/openapi.json", "openapi", lambda: description)
    app.extensions[STOPPING] = stopping = threading.Event()
    watch = FeedWatch(units, settings.max_waiters, metrics.waiter)
    for table in tables:
        for route in table.routes:
            app.add_url_rule(
                API_PREFIX + route.path,
                route.name,
                _view(route, units, settings, watch, stopping),
                methods=[route.method],
                provide_automatic_options=False,
            )
    return app


def _view(
    route: Route,
    units: UnitOfWorkFactory,
    settings: Settings,
    watch: FeedWatch,
    stopping: threading.Event,
) -> Callable[..., Response]:
    def view(**parts: str) -> Response:
        for part in parts.values():
            parsing.check_text(part)
        actor = auth.actor_of(request.headers, units)
        g.user_id = actor.user_id
        arguments: dict[str, Any] = dict(parts)
        raw = b""
        if route.request is not None:
            parsing.require_json(request.mimetype, request.headers.get("Content-Encoding"))
            raw = request.get_data(cache=False)
            if len(raw) > limits.REQUEST_BYTES:
                raise InterleafError(ErrorCode.PAYLOAD_TOO_LARGE)
            arguments["body"] = parsing.parse_body(route.request, raw)
        query = parsing.parse_query(route.query or parsing.NoQuery, request.args.items(multi=True))
        if route.query is not None:
            arguments["query"] = query

        def respond(units: UnitOfWorkFactory) -> Response:
            call = Call(actor, units, settings, g.request_id, request.headers, watch, stopping)
            return _respond(route, route.handler(call, **arguments))

        key = repeats.key_of(route, raw)
        return respond(units) if key is None else repeats.answer_once(route, units, actor, key, respond)

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


def _add_probes(app: Flask, ready: Callable[[], None]) -> None:
    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready")
    def is_ready() -> dict[str, str]:
        ready()
        return {"status": "ready"}


def _feed_head(units: UnitOfWorkFactory) -> int:
    with units.read() as uow:
        return uow.feed_head()
