"""The two ends of the local transport: serving an application, and connecting to it.

On Linux and macOS a Unix socket (0600, in a directory 0700); on Windows a loopback port and a
token in a file of the user. Everything else of the client sees only these two.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
from flask import Flask
from waitress import wasyncore  # type: ignore[import-untyped]  # it ships no types
from waitress.server import create_server  # type: ignore[import-untyped]  # it ships no types

from client.daemon.app import REQUEST_BYTES
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.local_address import USE_PORT, find_address, unavailable
from shared_schema.places import Places, is_private, make_private

DRAIN_SECONDS: Final = 3.0
"""How long calls that are being answered may take after the stop was asked for."""
CONNECT_SECONDS: Final = 2.0
_IDLE_SECONDS: Final = 60.0
"""The loop wakes by events; this is only the housekeeping of idle connections."""
_CONNECTIONS: Final = 500


class LocalServer:
    """Serves an application to this user's programs until it is asked to stop."""

    def __init__(
        self,
        make_app: Callable[[str | None], Flask],
        places: Places,
        *,
        threads: int,
        use_port: bool = USE_PORT,
    ) -> None:
        """Bind the address; the caller holds the lock. ``make_app`` gets the token, if there is one.

        Raises:
            InterleafError: ``invalid_arguments`` when something that is no socket lies in its place,
                or when the socket's directory belongs to somebody else.
        """
        self._stopping = threading.Event()
        # Reentrant: a signal handler runs in the thread that may hold it.
        self._waking = threading.RLock()
        self._ended = False
        options: dict[str, Any] = {
            "threads": threads,
            "connection_limit": _CONNECTIONS,
            "backlog": 256,
            "max_request_body_size": REQUEST_BYTES,
            "asyncore_use_poll": True,
            "channel_timeout": 3600,
            "ident": None,
            "clear_untrusted_proxy_headers": True,
        }
        self._file = places.port if use_port else places.socket
        if use_port:
            token = secrets.token_urlsafe(32)
            self._server: Any = create_server(make_app(token), listen="127.0.0.1:0", **options)
            _write_private(self._file, {"port": int(self._server.effective_port), "token": token})
        else:
            prepare_socket(self._file)
            self._server = create_server(
                make_app(None), unix_socket=str(self._file), unix_socket_perms="600", **options
            )

    def stop(self) -> None:
        """Ask the loop to end; may be called from any thread and from a signal handler."""
        with self._waking:
            if not self._stopping.is_set():
                self._stopping.set()
                if not self._ended:
                    self._server.trigger.pull_trigger()

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopping.is_set()

    def run(self, on_stopping: Callable[[], None] = lambda: None) -> None:
        """Serve until ``stop``; then take no new connections and let running calls end.

        ``on_stopping`` is called between the two, to end what such calls may be waiting for.
        """
        connections = self._server._map  # waitress runs its loop over it in the same way
        while not self._stopping.is_set():
            wasyncore.loop(timeout=_IDLE_SECONDS, use_poll=True, map=connections, count=1)
        self._remove_address()
        wasyncore.dispatcher.close(self._server)
        on_stopping()
        give_up_at = time.monotonic() + DRAIN_SECONDS
        while self._busy() and time.monotonic() < give_up_at:
            wasyncore.loop(timeout=0.05, use_poll=True, map=connections, count=1)
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=0.2)
        with self._waking:
            self._ended = True
            self._server.trigger.close()
        wasyncore.close_all(connections, ignore_all=True)

    def _busy(self) -> bool:
        channels = list(self._server.active_channels.values())
        return any(channel.requests or channel.total_outbufs_len for channel in channels)

    def _remove_address(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._file.unlink()


def prepare_socket(path: Path) -> None:
    """Make the socket's directory private, and remove the socket that a dead daemon left.

    The lock is held, so no living daemon has it; anything else than a socket is not ours to remove.
    """
    make_private_or_refuse(path.parent)
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"{path} is no socket, so it was left alone. Move it away, then start the daemon again.",
        )
    path.unlink()


def make_private_or_refuse(directory: Path) -> None:
    """Create a directory that only this user can reach, or refuse one that is somebody else's."""
    with contextlib.suppress(PermissionError, FileExistsError):
        make_private(directory)
    if not is_private(directory):
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"{directory} is not a directory of this user alone (mode 0700), so no socket is put there.",
        )


def connect(places: Places, *, timeout: float | None, use_port: bool = USE_PORT) -> httpx.Client:
    """Return a client for the daemon's ``/rpc/…``; ``timeout`` in seconds for an answer.

    Raises:
        InterleafError: ``daemon_unavailable`` when there is nothing to connect to.
    """
    address = find_address(places, use_port=use_port)
    if address.socket is not None:
        _check_listening(address.socket)
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=address.socket),
        base_url=address.base_url,
        headers={"Content-Type": "application/json", **address.headers},
        timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
        trust_env=False,  # a proxy of the environment has no business here
    )


def _check_listening(path: str) -> None:
    """Ask the socket itself: the HTTP library leaves one open when the connection is refused."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(CONNECT_SECONDS)
            probe.connect(path)
    except OSError:
        raise unavailable("The daemon is not running") from None


def _write_private(file: Path, value: dict[str, object]) -> None:
    make_private(file.parent)
    temporary = file.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(value, stream)
    temporary.replace(file)
