"""Every route, as the application has mounted it, refuses what is wrong in the contract's form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.test import TestResponse

from org_server.http.openapi import Route
from org_server.wiring import ROUTES
from shared_schema import limits
from shared_schema.org_contract import API_PREFIX, ErrorAnswer
from tests.org_server.harness import Server

_DEPTH = 700
WRONG_BODIES = {
    "no JSON": b"{",
    "not UTF-8": b'{"name": "\xff"}',
    "NUL": b'{"name": "a\\u0000b"}',
    "NUL deep inside": b'{"a": ' + b"[" * _DEPTH + b'"\\u0000"' + b"]" * _DEPTH + b"}",
    "deep": b"[" * 100_000,
    "half a character": b'{"name": "\\ud800"}',
    "a huge number": b'{"version": ' + b"9" * 5_000 + b"}",
    "a key twice": b'{"name": "a", "name": "b"}',
}


def routes() -> Iterator[Route]:
    return (route for table in ROUTES for route in table.routes)


def path_of(route: Route) -> str:
    return re.sub(r"<\w+>", "unknown", route.path)


def refused(answer: TestResponse, status: int, code: str, about: object) -> None:
    assert answer.status_code == status, (about, answer.get_data(as_text=True))
    assert answer.mimetype == "application/json", about
    error = ErrorAnswer.model_validate_json(answer.get_data()).error
    assert (error.code, error.request_id) == (code, answer.headers["X-Request-ID"]), about
    assert error.message, about


@pytest.mark.requirement("server.api.one_error")
def test_every_route_asks_for_a_token(server: Server) -> None:
    client = server.app.test_client()
    for route in routes():
        answer = client.open(API_PREFIX + path_of(route), method=route.method)
        refused(answer, 401, "unauthenticated", route.name)
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.requirement("server.api.one_error")
def test_every_path_names_its_methods_to_who_uses_another(server: Server) -> None:
    methods: dict[str, set[str]] = {}
    for route in routes():
        methods.setdefault(path_of(route), set()).add(route.method)
    for path, known in methods.items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - known:
            answer = server.ada.request(method, path)
            if answer.status_code == 405:  # else a longer rule with a part for any name takes it
                refused(answer, 405, "method_not_allowed", (method, path))
                assert known <= set(answer.headers["Allow"].split(", ")), path
            else:
                assert answer.status_code in {400, 404, 415, 428}, (method, path)


@pytest.mark.requirement("server.api.one_error")
@pytest.mark.parametrize("wrong", WRONG_BODIES)
def test_every_route_with_a_body_refuses_one_that_is_not_the_contract(server: Server, wrong: str) -> None:
    for route in (route for route in routes() if route.request is not None):
        answer = send(server, route, WRONG_BODIES[wrong])
        refused(answer, 400, "invalid_arguments", (route.name, wrong))


@pytest.mark.requirement("server.api.one_error")
def test_every_route_with_a_body_refuses_another_type_and_an_encoding(server: Server) -> None:
    for route in (route for route in routes() if route.request is not None):
        refused(
            send(server, route, b"{}", content_type="text/plain"), 415, "unsupported_media_type", route.name
        )
        encoded = send(server, route, b"{}", headers={"Content-Encoding": "gzip", "If-Match": '"1"'})
        refused(encoded, 415, "unsupported_media_type", route.name)


@pytest.mark.requirement("server.api.one_error")
@pytest.mark.parametrize("chunked", [False, True])
def test_every_route_with_a_body_refuses_one_over_four_mebibytes(server: Server, chunked: bool) -> None:
    raw = b" " * (limits.REQUEST_BYTES + 1)
    # A web server hands a chunked body over without a length, and says that it ends.
    environ = {"wsgi.input_terminated": True, "CONTENT_LENGTH": ""} if chunked else {}
    for route in (route for route in routes() if route.request is not None):
        answer = send(server, route, raw, environ_overrides=environ)
        refused(answer, 413, "payload_too_large", route.name)


@pytest.mark.requirement("server.api.one_error")
def test_every_route_refuses_a_query_that_it_does_not_know(server: Server) -> None:
    for route in (route for route in routes() if route.request is None):
        answer = server.ada.request(route.method, f"{path_of(route)}?nobody_knows=1")
        refused(answer, 400, "invalid_arguments", route.name)


def send(server: Server, route: Route, raw: bytes, **arguments: Any) -> TestResponse:
    arguments.setdefault("content_type", "application/json")
    arguments.setdefault("headers", {"If-Match": '"1"'})
    return server.ada.request(route.method, path_of(route), data=raw, **arguments)
