"""The built-in web server: waitress, started and stopped with care.

waitress' own loop ends in the middle of answers when a signal comes. Here a stop closes the
listening socket first, lets what is being answered finish for a while, and then ends.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from flask import Flask
from waitress import create_server, wasyncore  # type: ignore[import-untyped]  # it ships no types
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.task import ErrorTask  # type: ignore[import-untyped]

from org_server.http import errors
from org_server.http.app import STOPPING
from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError

GRACE_SECONDS: Final = 10.0
_TICK_SECONDS: Final = 0.25
_LINGER_SECONDS: Final = 0.5
_CONNECTIONS: Final = 1_000
_READ_BYTES: Final = 4 * limits.REQUEST_BYTES
"""What is read of a request before the connection is given up; the application refuses far less."""


def serve(app: Flask, host: str, port: int, threads: int, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``announce`` gets the address once connections are accepted.

    Port 0 takes a free one. Raises ``invalid_arguments`` for an address that cannot be used.
    """
    server = _listen(app, host, port, threads)
    stopping: threading.Event = app.extensions[STOPPING]

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopping.set()
        server.pull_trigger()

    former = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{server.effective_port}")
        while not stopping.is_set():
            _turn(server)
        _drain(server)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        server.task_dispatcher.shutdown(timeout=1)
        server.close()


def _listen(app: Flask, host: str, port: int, threads: int) -> Any:
    server = create_server(
        app,
        sockets=[_bind(host, port)],
        threads=threads,
        ident="interleaf",
        connection_limit=_CONNECTIONS,
        max_request_body_size=_READ_BYTES,
    )
    server.channel_class = _Channel
    return server


class _ErrorTask(ErrorTask):  # type: ignore[misc]  # waitress ships no types
    """Answers in the contract's form what waitress refuses by itself."""

    def execute(self) -> None:
        error = self.request.error
        body, headers = errors.outside(error.code)
        self.status = f"{error.code} {error.reason}"
        self.response_headers.extend(headers)
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Channel(HTTPChannel):  # type: ignore[misc]  # waitress ships no types
    error_task_class = _ErrorTask


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to one address: "localhost" may name two, with port 0 each on its own."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise _unusable(host, port, error) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _unusable(host, port, error) from None
    return bound


def _unusable(host: str, port: int, error: Exception) -> InterleafError:
    why = getattr(error, "strerror", None) or "no such address"
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"Port {port} of {host} cannot be used: {why}. Choose another with --host and --port.",
    )


def _turn(server: Any) -> None:
    wasyncore.loop(timeout=_TICK_SECONDS, use_poll=True, map=server._map, count=1)


def _drain(server: Any) -> None:
    """Take no more connections, and give those that are being answered their time.

    A connection that the kernel accepted already is taken, and whoever is just sending on an open
    one gets a moment: a caller cannot know that the server was about to end.
    """
    while _took_one(server):
        pass
    wasyncore.dispatcher.close(server)
    began = time.monotonic()
    while (_busy(server) and time.monotonic() < began + GRACE_SECONDS) or (
        time.monotonic() < began + _LINGER_SECONDS
    ):
        _turn(server)


def _took_one(server: Any) -> bool:
    before = len(server.active_channels)
    server.handle_accept()
    return len(server.active_channels) > before


def _busy(server: Any) -> bool:
    return any(
        channel.requests or channel.request is not None or channel.total_outbufs_len
        for channel in list(server.active_channels.values())
    )
