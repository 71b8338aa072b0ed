"""Requests to the Organization server: one place for addresses, time-outs, bursts and errors.

Every failure is an `InterleafError`. ``details.http_status`` is there when the server itself
answered, ``details.retry_after_ms`` when it asked for patience. What came without a readable answer
(no connection, a cut body, a page of some proxy) is ``org_server_unavailable`` without a status: the
outcome of the request is unknown, and only the same request may follow.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from client.sync.http_errors import error_of, is_hiccup, network_errors, unreadable
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import API_PREFIX
from shared_schema.release import RELEASE

_Model = TypeVar("_Model", bound=BaseModel)
_Value = TypeVar("_Value")
Query = Mapping[str, str | int | None]

TIMEOUT: Final = httpx.Timeout(30, connect=10)
POLL_GRACE_SECONDS: Final = 15
BURST_SECONDS: Final = 2


class Interrupted(Exception):  # noqa: N818 - no error: somebody asked for it
    """A long poll was ended from this side."""


def check_server_url(url: str) -> httpx.URL:
    """Return the server's address, or raise ``invalid_arguments``.

    Only ``https``, but for loopback addresses, where ``http`` is fine too: a token never crosses a
    network in the clear. A path is kept as a prefix; user, query and fragment are refused.
    """
    try:
        parsed = httpx.URL(url.strip().rstrip("/"))
    except (httpx.InvalidURL, ValueError):
        raise _bad_url(f"{url!r} is no address") from None
    if parsed.scheme not in ("https", "http") or not parsed.host:
        raise _bad_url("The address has to look like https://memory.example.com")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise _bad_url("The address holds more than a host and a path")
    if parsed.scheme == "http" and not is_loopback(parsed.host):
        raise _bad_url("Use https; plain http is for loopback addresses only")
    return parsed


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, without asking a name server."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bad_url(problem: str) -> InterleafError:
    fields = [{"field": "server_url", "problem": problem}]
    return InterleafError(ErrorCode.INVALID_ARGUMENTS, f"{problem}.", details={"fields": fields})


class OrgHttp:
    """Authenticated JSON over HTTP; thread-safe. `org_client.OrgClient` gives it its routes."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        timeout: httpx.Timeout | float = TIMEOUT,
        burst: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parsed = check_server_url(base_url)
        self.base_url = str(parsed)
        self._timeout = httpx.Timeout(timeout)
        self._retrying = Retrying(
            stop=stop_after_attempt(burst) | stop_after_delay(BURST_SECONDS),
            wait=wait_random_exponential(multiplier=0.2, max=0.8),
            retry=retry_if_exception(is_hiccup),
            sleep=sleep,
            reraise=True,
        )

        def connections(limit: int) -> httpx.Client:
            client = httpx.Client(
                base_url=self.base_url + API_PREFIX,
                headers={
                    "Authorization": f"Bearer {token}",
                    "User-Agent": f"interleaf/{RELEASE}",
                    "Accept-Encoding": "gzip",
                },
                transport=transport,
                timeout=self._timeout,
                follow_redirects=False,
                # A proxy of the environment has no business between this machine and itself.
                trust_env=not is_loopback(parsed.host),
                limits=httpx.Limits(max_connections=limit),
            )
            # What HTTP/1.1 means anyway; a quiet round is kept small.
            del client.headers["Connection"]
            return client

        self._client = connections(10)
        # The long poll has a connection of its own, so that ending it disturbs nothing else.
        self._poll_client = connections(1)
        self._poll_lock = threading.Lock()
        self._poll_socket: socket.socket | None = None

    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        self._poll_client.close()

    def get(
        self, path: str, model: type[_Model], query: Query | None = None, etag: str | None = None
    ) -> _Model:
        """GET, tried again within a short burst."""
        headers = {} if etag is None else {"If-None-Match": etag}
        return self._burst(lambda: _parse(self._send("GET", path, query=query, headers=headers), model))

    def send_repeatable(self, method: str, path: str, body: BaseModel, model: type[_Model]) -> _Model:
        """Send what the server takes once however often it comes; tried again within a short burst."""
        return self._burst(lambda: _parse(self._send(method, path, body=body), model))

    def send(
        self,
        method: str,
        path: str,
        model: type[_Model],
        body: BaseModel | None = None,
        if_match: str | None = None,
    ) -> _Model:
        """Send a write, once: without an answer nobody knows whether it happened."""
        headers = {} if if_match is None else {"If-Match": if_match}
        return _parse(self._send(method, path, body=body, headers=headers), model)

    def act(
        self,
        path: str,
        model: type[_Model],
        body: BaseModel | None = None,
        *,
        if_match: str | None = None,
        key: str | None = None,
    ) -> _Model:
        """POST what must happen once; tried again within a short burst under one ``Idempotency-Key``.

        ``key`` lets a later call be the same request, too; without one, this call is a request of
        its own.
        """
        headers = {"Idempotency-Key": key or str(uuid.uuid4())}
        if if_match is not None:
            headers["If-Match"] = if_match
        return self._burst(lambda: _parse(self._send("POST", path, body=body, headers=headers), model))

    def delete(self, path: str, if_match: str | None = None) -> None:
        """DELETE; what the answer holds is not looked at."""
        self._send("DELETE", path, headers={} if if_match is None else {"If-Match": if_match})

    def poll(
        self, path: str, model: type[_Model], query: Query, wait: float, interrupted: Callable[[], bool]
    ) -> _Model | None:
        """GET that the server may hold for ``wait`` seconds; None when nothing is new (304).

        Raises `Interrupted` once ``interrupted`` is true, at the latest when `interrupt` is called.
        """
        timeout = httpx.Timeout(self._timeout.read, connect=self._timeout.connect)
        timeout.read = (timeout.read or 0) + wait + (POLL_GRACE_SECONDS if wait else 0)

        def watch(event: str, info: Mapping[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                with self._poll_lock:
                    self._poll_socket = info["return_value"].get_extra_info("socket")
                if interrupted():
                    self.interrupt()

        try:
            if interrupted():
                raise Interrupted
            response = self._send(
                "GET",
                path,
                query=query,
                client=self._poll_client,
                timeout=timeout,
                extensions={"trace": watch},
            )
            return None if response.status_code == 304 else _parse(response, model)
        except InterleafError as error:
            if interrupted() and "http_status" not in error.details:
                raise Interrupted from error
            raise

    def interrupt(self) -> None:
        """End a long poll that is under way, from another thread.

        Closing a socket does not wake a thread that reads from it; shutting it down does.
        """
        with self._poll_lock:
            if self._poll_socket is not None:
                with suppress(OSError):  # Closed already, which is as good.
                    self._poll_socket.shutdown(socket.SHUT_RDWR)
                self._poll_socket = None

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[bytes]]:
        """GET a body that is read in lines while it arrives; the lines come without their ends."""
        with network_errors(), self._client.stream("GET", path) as response:
            if not response.is_success:
                response.read()
                raise error_of(response)
            yield _lines(response)

    def _burst(self, request: Callable[[], _Value]) -> _Value:
        return self._retrying(request)

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: BaseModel | None = None,
        headers: Mapping[str, str] | None = None,
        client: httpx.Client | None = None,
        timeout: httpx.Timeout | None = None,
        extensions: dict[str, Any] | None = None,
    ) -> httpx.Response:
        content = (
            None if body is None else body.model_dump_json(exclude_none=True, exclude_unset=True).encode()
        )
        typed = {"Content-Type": "application/json"} if content is not None else {}
        with network_errors():
            response = (client or self._client).request(
                method,
                path,
                params={name: value for name, value in (query or {}).items() if value is not None},
                content=content,
                headers={**typed, **(headers or {})},
                timeout=timeout or self._timeout,
                extensions=extensions,
            )
        if response.is_success or response.status_code == 304:
            return response
        raise error_of(response)


def _lines(response: httpx.Response) -> Iterator[bytes]:
    # httpx's own iter_lines also splits at U+2028 and the like, which may stand in a JSON text.
    rest = b""
    for chunk in response.iter_bytes():
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _parse(response: httpx.Response, model: type[_Model]) -> _Model:
    try:
        # A newer server may say more than this client knows.
        return model.model_validate_json(response.content, extra="ignore")
    except ValidationError as error:
        raise unreadable(f"{error.error_count()} problems in {model.__name__}") from error
