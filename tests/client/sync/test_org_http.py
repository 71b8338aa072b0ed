from __future__ import annotations

import threading
from collections.abc import Iterator
from socket import socket

import httpx
import pytest

from client.sync.org_client import OrgClient
from client.sync.org_http import Interrupted, check_server_url
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import ProjectChange, ProjectCreate
from tests.client.sync_world import URL


def client_of(*answers: httpx.Response | Exception) -> tuple[OrgClient, list[httpx.Request]]:
    seen: list[httpx.Request] = []
    left = list(answers)

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    transport = httpx.MockTransport(handle)
    return OrgClient(URL, "ilt_secret", transport=transport, sleep=lambda _seconds: None), seen


@pytest.mark.requirement("sync.client.address")
@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "ftp://localhost",
        "localhost:8000",
        "https://",
        "https://a:b@c",
        "https://a/?q=1",
    ],
)
def test_an_address_that_would_show_the_token_or_is_none_is_refused(url: str) -> None:
    with pytest.raises(InterleafError) as refused:
        check_server_url(url)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS


@pytest.mark.requirement("sync.client.address")
@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://memory.example.org/", "https://memory.example.org"),
        ("https://example.org/memory/", "https://example.org/memory"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
        ("http://localhost:1", "http://localhost:1"),
    ],
)
def test_https_and_loopback_are_fine(url: str, kept: str) -> None:
    assert str(check_server_url(url)) == kept


def test_a_hiccup_is_ridden_over_within_the_request() -> None:
    client, seen = client_of(httpx.ConnectError("no"), httpx.Response(503), httpx.Response(204))
    with pytest.raises(InterleafError):
        client.me()
    assert len(seen) == 3


def test_a_write_that_is_not_repeatable_is_sent_once() -> None:
    client, seen = client_of(httpx.ReadError("cut"))
    with pytest.raises(InterleafError) as failed:
        client.change_project("prj_1", ProjectChange(name="Web"), 1)
    assert failed.value.code is ErrorCode.ORG_SERVER_UNAVAILABLE
    assert len(seen) == 1


@pytest.mark.requirement("client.repeats")
def test_what_is_made_is_sent_again_under_one_key_and_each_call_has_its_own() -> None:
    client, seen = client_of(*[httpx.ReadError("cut"), httpx.Response(502)] * 3)
    for _ in range(2):
        with pytest.raises(InterleafError):
            client.create_project(ProjectCreate(name="Web"))
    keys = [request.headers["Idempotency-Key"] for request in seen]
    assert len(keys) == 6
    assert keys[0] == keys[1] == keys[2] != keys[3] == keys[4] == keys[5]


def test_a_server_that_asks_for_patience_is_not_asked_again_at_once() -> None:
    client, seen = client_of(httpx.Response(503, headers={"Retry-After": "7"}))
    with pytest.raises(InterleafError) as failed:
        client.me()
    assert failed.value.details["retry_after_ms"] == 7_000
    assert len(seen) == 1


@pytest.mark.requirement("sync.client.address")
def test_a_redirect_is_not_followed() -> None:
    client, seen = client_of(httpx.Response(302, headers={"Location": "https://evil.example"}))
    with pytest.raises(InterleafError) as failed:
        client.me()
    assert failed.value.code is ErrorCode.ORG_SERVER_UNAVAILABLE
    assert {request.url.host for request in seen} == {"127.0.0.1"}


def test_an_error_comes_with_its_code_status_and_request() -> None:
    body = {"error": {"code": "last_owner", "message": "no", "request_id": "req_7", "details": {"a": 1}}}
    client, _ = client_of(httpx.Response(409, json=body))
    with pytest.raises(InterleafError) as failed:
        client.remove_member("prj_1", "usr_1")
    assert failed.value.code is ErrorCode.LAST_OWNER
    assert failed.value.details == {"a": 1, "http_status": 409, "request_id": "req_7"}


def test_ids_cannot_leave_their_place_in_the_path() -> None:
    client, seen = client_of(httpx.Response(404))
    with pytest.raises(InterleafError):
        client.project("../admin?x=1#")
    assert seen[0].url.raw_path == b"/api/v1/projects/..%2Fadmin%3Fx%3D1%23"


@pytest.fixture
def silent_server() -> Iterator[tuple[str, threading.Event]]:
    """Listens, accepts, and never answers."""
    listener = socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    accepted = threading.Event()
    held: list[socket] = []

    def accept() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        held.append(connection)
        connection.recv(10_000)
        accepted.set()

    thread = threading.Thread(target=accept)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", accepted
    for connection in held:
        connection.close()
    listener.close()
    thread.join(5)


@pytest.mark.requirement("sync.worker.wakes")
def test_a_long_poll_ends_at_once_when_it_is_interrupted(
    silent_server: tuple[str, threading.Event],
) -> None:
    url, accepted = silent_server
    client = OrgClient(url, "t")
    flag = threading.Event()
    outcome: list[str] = []

    def poll() -> None:
        try:
            client.sync("c.1", 25, flag.is_set)
        except Interrupted:
            outcome.append("interrupted")

    thread = threading.Thread(target=poll)
    thread.start()
    assert accepted.wait(10)
    flag.set()
    client.interrupt()
    thread.join(10)
    client.close()
    assert outcome == ["interrupted"]
