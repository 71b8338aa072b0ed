"""Start, run and stop the resident daemon.

Order at start: lock, open, migrate, remove a stale socket, bind, serve. The lock is the operating
system's and ends with the process, so a crash leaves nothing to clean up by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import structlog
from filelock import FileLock, Timeout
from flask import Flask

from client.config import ENV_PREFIX, Settings
from client.daemon.connection import DaemonConnection
from client.daemon.local_server import LocalServer, make_private_or_refuse
from client.daemon.log import configure_log
from client.frugal import bound_arenas, one_blas_thread
from shared_schema.daemon_contract import Empty, Hello
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.places import Places, make_private

_PAUSE: Final = 0.05
_HELLO_SECONDS: Final = 2.0

log = structlog.get_logger("interleaf.daemon")


class Resident(Protocol):
    """What the lifecycle needs of the daemon: the application and its background threads."""

    def make_app(self, token: str | None, request_stop: Callable[[], None]) -> Flask:
        """Return the application; ``request_stop`` answers the ``stop`` call."""

    def start(self) -> None:
        """Start the background threads."""

    def begin_stop(self) -> None:
        """Tell them to end, and let calls that wait for them return; does not wait itself."""

    def stop(self) -> None:
        """Wait for them, a second or two at most, and close the store."""


Build = Callable[[Settings], Resident]


def run_daemon(settings: Settings, build: Build | None = None) -> int:
    """Serve in the foreground until SIGTERM, SIGINT or the ``stop`` call; return the exit status.

    Raises:
        InterleafError: ``daemon_already_running`` with the holder's pid, and what opening the store
            or binding the socket says.
    """
    places = settings.places
    # Databases, downloads and indexes are for their owner alone, whoever writes them.
    os.umask(0o077)
    bound_arenas()
    one_blas_thread()
    for directory in (places.home, places.run, places.log.parent):
        make_private_or_refuse(directory)
    with _lock(places):
        handler = configure_log(places.log)
        resident = (build or _build_of_wiring())(settings)
        server: LocalServer | None = None
        try:
            server = LocalServer(
                lambda token: resident.make_app(token, lambda: server.stop() if server else None),
                places,
                threads=settings.threads,
            )
            _stop_on_signals(server)
            resident.start()
            log.info("started", pid=os.getpid())
            server.run(resident.begin_stop)
        finally:
            resident.stop()
            log.info("stopped", pid=os.getpid())
            handler.close()
    return 0


def _build_of_wiring() -> Build:
    # Imported here: only the process that becomes the daemon pays for the models and the store.
    from client.wiring import build_daemon

    return build_daemon


def start_daemon(settings: Settings, timeout: float = 30.0) -> Hello:
    """Return the running daemon's answer to ``hello``, starting a detached one when none runs.

    It returns as soon as calls are answered; models and indexes may still be in preparation.

    Raises:
        InterleafError: what the new daemon failed with, or ``daemon_unavailable`` after ``timeout``
            seconds without an answer.
    """
    places = settings.places
    with contextlib.suppress(InterleafError):
        return hello(places)
    make_private_or_refuse(places.home)
    make_private(places.log.parent)
    process, errors = _spawn(settings, places)
    give_up_at = time.monotonic() + timeout
    while time.monotonic() < give_up_at:
        with contextlib.suppress(InterleafError):
            return hello(places)
        if process.poll() is not None:
            failure = _failure_in(errors)
            # Another start was quicker; its daemon will answer in a moment.
            if failure.code is not ErrorCode.DAEMON_ALREADY_RUNNING:
                raise failure
        time.sleep(_PAUSE)
    raise InterleafError(
        ErrorCode.DAEMON_UNAVAILABLE,
        f"The daemon did not answer within {timeout:.0f} seconds. See {places.log}",
    )


def stop_daemon(settings: Settings, timeout: float = 15.0) -> bool:
    """Ask the running daemon to stop and wait until it has let go of its lock.

    Returns False when none was running. Raises ``daemon_unavailable`` when it is still there after
    ``timeout`` seconds.
    """
    places = settings.places
    try:
        with DaemonConnection(places, timeout=_HELLO_SECONDS) as daemon:
            daemon.call("stop", Empty(), Empty)
    except InterleafError:
        if not lock_is_held(places):
            return False
    give_up_at = time.monotonic() + timeout
    while lock_is_held(places):
        if time.monotonic() > give_up_at:
            raise InterleafError(
                ErrorCode.DAEMON_UNAVAILABLE,
                f"The daemon (pid {_holder(places)}) is still running after {timeout:.0f} seconds.",
            )
        time.sleep(_PAUSE)
    _reap()
    return True


def hello(places: Places) -> Hello:
    """Ask the running daemon who it is. Raises ``daemon_unavailable``."""
    with DaemonConnection(places, timeout=_HELLO_SECONDS) as daemon:
        return daemon.call("hello", Empty(), Hello)


def lock_is_held(places: Places) -> bool:
    """Tell whether a daemon lives, by trying its lock."""
    if not places.lock.exists():
        return False
    lock = _new_lock(places)
    try:
        lock.acquire()
    except Timeout:
        return True
    lock.release()
    return False


def _new_lock(places: Places) -> FileLock:
    # A soft lock would survive a crash and keep every later daemon from starting.
    return FileLock(places.lock, blocking=False, mode=0o600, fallback_to_soft=False, is_singleton=False)


@contextmanager
def _lock(places: Places) -> Iterator[None]:
    lock = _new_lock(places)
    try:
        lock.acquire()
    except Timeout:
        raise InterleafError(
            ErrorCode.DAEMON_ALREADY_RUNNING,
            f"A daemon already runs for {places.home} (pid {_holder(places)}). See: interleaf daemon status",
            details={"pid": _holder(places)},
        ) from None
    try:
        descriptor = os.open(places.pid, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(str(os.getpid()))
        yield
    finally:
        places.pid.unlink(missing_ok=True)
        lock.release()


def _holder(places: Places) -> int | None:
    try:
        return int(places.pid.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _stop_on_signals(server: LocalServer) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: server.stop())


_started: list[subprocess.Popen[bytes]] = []
"""Detached daemons that this process started; they are kept so that they can be reaped."""


def _spawn(settings: Settings, places: Places) -> tuple[subprocess.Popen[bytes], Path]:
    errors = places.log.with_name("daemon.start")
    descriptor = os.open(errors, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    # Paths made absolute here: the daemon runs in another directory.
    given = {
        ENV_PREFIX + name.upper(): str(value.expanduser().absolute() if isinstance(value, Path) else value)
        for name, value in settings.model_dump(exclude_defaults=True).items()
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "client.daemon"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=descriptor,
            cwd=places.home,  # any other would keep a directory of the user from being unmounted
            env={**os.environ, **given},
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    _started.append(process)
    return process, errors


def _failure_in(errors: Path) -> InterleafError:
    """Return what a daemon that ended at start wrote as its last line."""
    lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    try:
        return InterleafError.from_wire(json.loads(lines[-1]))
    except (IndexError, ValueError, AttributeError):
        return InterleafError(ErrorCode.INTERNAL_ERROR, f"The daemon ended while it started. See {errors}")


def _reap() -> None:
    _started[:] = [process for process in _started if process.poll() is None]
