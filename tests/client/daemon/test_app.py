from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from client.daemon.app import REQUEST_BYTES, create_app
from client.daemon.dispatch import Dispatcher
from shared_schema.daemon_contract import AGENT_PROTOCOL, METHODS, Empty, RuntimeMarker
from shared_schema.errors import ErrorCode, InterleafError

MARKER = RuntimeMarker(protocol=AGENT_PROTOCOL, release="1", fingerprint="f")
SECRET = "the body of a memory"


def client(failure: Exception | None = None, token: str | None = None) -> Any:
    def handler(_params: Any) -> Empty:
        if failure is not None:
            raise failure
        return Empty()

    handlers: dict[str, Any] = dict.fromkeys(METHODS, handler)
    return create_app(Dispatcher(MARKER, handlers, lambda _scope: None), token=token).test_client()


def error_of(response: Any) -> dict[str, Any]:
    assert response.mimetype == "application/json"
    found: dict[str, Any] = json.loads(response.data)["error"]
    assert found.keys() == {"code", "message", "details"}
    return found


def test_a_call_is_answered_with_its_result() -> None:
    response = client().post("/rpc/stop", data=b'{"params": {}}')
    assert (response.status_code, json.loads(response.data)) == (200, {"result": {}})


@pytest.mark.requirement("daemon.errors")
def test_a_known_failure_keeps_its_code_details_and_status() -> None:
    failure = InterleafError(ErrorCode.PATH_OCCUPIED, "taken", details={"path": "a.md"})
    response = client(failure).post("/rpc/stop", data=b'{"params": {}}')
    assert (response.status_code, error_of(response)) == (409, failure.as_wire())


@pytest.mark.requirement("daemon.errors.internal")
def test_an_unexpected_failure_is_an_id_that_the_log_has_and_shows_nothing_else() -> None:
    with structlog.testing.capture_logs() as logged:
        response = client(ZeroDivisionError(SECRET)).post("/rpc/stop", data=b'{"params": {}}')
    error = error_of(response)
    assert (response.status_code, error["code"]) == (500, "internal_error")
    incident = error["details"]["id"]
    assert incident in error["message"]
    assert [entry["id"] for entry in logged if entry["event"] == "internal_error"] == [incident]
    assert SECRET not in response.text
    assert "Traceback" not in response.text


@pytest.mark.parametrize(
    ("method", "path", "data", "status", "code"),
    [
        ("GET", "/rpc/hello", b"", 405, "method_not_allowed"),
        ("POST", "/", b"", 404, "not_found"),
        ("POST", "/rpc/nothing", b"{}", 404, "not_found"),
        ("POST", "/rpc/hello", b"{", 400, "invalid_arguments"),
        ("POST", "/rpc/hello", b"x" * (REQUEST_BYTES + 1), 413, "payload_too_large"),
    ],
)
def test_http_failures_have_our_error_body(
    method: str, path: str, data: bytes, status: int, code: str
) -> None:
    response = client().open(path, method=method, data=data)
    assert (response.status_code, error_of(response)["code"]) == (status, code)


@pytest.mark.requirement("daemon.log.private")
def test_nothing_that_was_sent_is_logged() -> None:
    with structlog.testing.capture_logs() as logged:
        client().post(f"/rpc/{SECRET}", data=json.dumps({"params": {SECRET: SECRET}}).encode())
        client().post("/rpc/hello", data=json.dumps({"params": {SECRET: SECRET}}).encode())
        client().post("/rpc/hello", data=json.dumps({"params": {}}).encode())
    assert len(logged) == 3
    assert SECRET not in repr(logged)


@pytest.mark.requirement("daemon.port.token")
@pytest.mark.parametrize("given", [None, "", "Bearer wrong", "Bearer ünïcode", "s3cret"])
def test_where_a_port_is_used_a_call_without_the_token_is_refused(given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given}
    response = client(token="s3cret").post("/rpc/hello", data=b'{"params": {}}', headers=headers)
    assert (response.status_code, error_of(response)["code"]) == (401, "unauthenticated")
    accepted = {"Authorization": "Bearer s3cret"}
    assert (
        client(token="s3cret").post("/rpc/stop", data=b'{"params": {}}', headers=accepted).status_code == 200
    )


def test_no_file_is_served(tmp_path: Path) -> None:
    assert client().get("/static/anything").status_code == 404
