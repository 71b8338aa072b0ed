"""Start and stop of daemon processes, with an application of one method's weight."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from client.config import Settings
from client.daemon import lifecycle
from client.daemon.connection import DaemonConnection
from client.daemon.lifecycle import hello, lock_is_held, start_daemon, stop_daemon
from shared_schema.daemon_contract import DaemonStatus, Empty, Hello, IndexStatus, ProjectCall, runtime_marker
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.places import find_places, make_private
from tests.client.daemon.real_daemon import settings

WAIT = 30.0

RESIDENT = """
import json, logging, os, sys
from client.config import Settings
from client.daemon.app import create_app
from client.daemon.dispatch import Dispatcher
from client.daemon.lifecycle import run_daemon
from shared_schema.daemon_contract import METHODS, Empty, Hello, runtime_marker
from shared_schema.errors import InterleafError

class Small:
    def make_app(self, token, request_stop):
        def stop(_params):
            request_stop()
            return Empty()
        handlers = dict.fromkeys(METHODS, lambda _params: 1 / 0)
        handlers |= {"hello": lambda _p: Hello(marker=runtime_marker(), pid=os.getpid()), "stop": stop}
        return create_app(Dispatcher(runtime_marker(), handlers, lambda _d: None), token=token)
    def start(self): print("started", flush=True)
    def begin_stop(self): pass
    def stop(self): print("stopped", flush=True)

try:
    sys.exit(run_daemon(Settings(), lambda settings: Small()))
except InterleafError as error:
    print(json.dumps(error.as_wire()), file=sys.stderr)
    sys.exit(1)
"""


@contextmanager
def small_daemon(home: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", RESIDENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "INTERLEAF_HOME": str(home)},
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            yield process
        finally:
            process.kill()
            process.wait(WAIT)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.requirement("daemon.lifecycle")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_leaves_no_socket_pid_or_lock(tmp_path: Path, number: signal.Signals) -> None:
    places = find_places(home=tmp_path)
    with small_daemon(tmp_path) as process:
        assert line_of(process) == "started"
        assert hello(places) == Hello(marker=runtime_marker(), pid=process.pid)
        assert lock_is_held(places)
        process.send_signal(number)
        assert line_of(process) == "stopped"
        assert process.wait(WAIT) == 0
    assert not lock_is_held(places)
    assert not places.socket.exists()
    assert not places.pid.exists()


@pytest.mark.requirement("daemon.lifecycle")
def test_the_stop_call_is_answered_and_waited_for(tmp_path: Path) -> None:
    with small_daemon(tmp_path) as process:
        assert line_of(process) == "started"
        assert stop_daemon(Settings(home=tmp_path), timeout=WAIT)
        assert process.wait(WAIT) == 0
    assert not stop_daemon(Settings(home=tmp_path))


@pytest.mark.requirement("daemon.one")
def test_a_second_daemon_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with small_daemon(tmp_path) as first:
        assert line_of(first) == "started"
        with small_daemon(tmp_path) as second:
            assert second.stderr is not None
            error = json.loads(second.stderr.read().splitlines()[-1])
            assert second.wait(WAIT) == 1
        assert error["code"] == "daemon_already_running"
        assert f"pid {first.pid}" in error["message"]
        assert error["details"] == {"pid": first.pid}
        assert hello(find_places(home=tmp_path)).pid == first.pid


@pytest.mark.requirement("daemon.lifecycle")
def test_a_killed_daemon_leaves_nothing_that_keeps_the_next_from_starting(tmp_path: Path) -> None:
    places = find_places(home=tmp_path)
    with small_daemon(tmp_path) as first:
        assert line_of(first) == "started"
        first.kill()
        first.wait(WAIT)
    assert places.socket.is_socket()
    assert not lock_is_held(places)
    with pytest.raises(InterleafError, match="interleaf daemon start"):
        hello(places)
    with small_daemon(tmp_path) as second:
        assert line_of(second) == "started"
        assert hello(places).pid == second.pid


def test_everything_the_daemon_makes_is_this_users_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    former = os.umask(0)
    try:
        with small_daemon(home) as process:
            assert line_of(process) == "started"
            hello(find_places(home=home))
            for path in [home, *home.rglob("*")]:
                expected = 0o700 if path.is_dir() else 0o600
                assert path.lstat().st_mode & 0o777 == expected, path
    finally:
        os.umask(former)


def test_a_call_for_another_build_is_refused_by_the_connection_too(tmp_path: Path) -> None:
    with small_daemon(tmp_path) as process:
        assert line_of(process) == "started"
        with DaemonConnection(find_places(home=tmp_path), timeout=WAIT) as daemon:
            assert daemon.call("hello", Empty(), Hello).pid == process.pid
            with pytest.raises(InterleafError) as failure:
                daemon.call("search_index_status", ProjectCall(project="p"), IndexStatus)
            assert failure.value.code is ErrorCode.INTERNAL_ERROR
            with pytest.raises(InterleafError) as failure:
                daemon.call("hello", Empty(), IndexStatus)
            assert failure.value.code is ErrorCode.AGENT_RUNTIME_MISMATCH


@pytest.mark.requirement("daemon.start.failure")
def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    places = find_places(home=tmp_path)
    make_private(places.run)
    places.socket.write_text("precious")
    with pytest.raises(InterleafError, match="no socket") as failure:
        start_daemon(Settings(home=tmp_path), timeout=WAIT)
    assert failure.value.code is ErrorCode.INVALID_ARGUMENTS
    assert places.socket.read_text() == "precious"


def test_starting_where_one_runs_answers_with_that_one(tmp_path: Path) -> None:
    spawned = len(lifecycle._started)
    with small_daemon(tmp_path) as process:
        assert line_of(process) == "started"
        assert start_daemon(Settings(home=tmp_path), timeout=WAIT).pid == process.pid
    assert len(lifecycle._started) == spawned


@pytest.mark.requirement("daemon.lifecycle")
def test_the_whole_daemon_starts_detached_answers_and_stops(tmp_path: Path) -> None:
    made = settings(tmp_path)
    try:
        running = start_daemon(made, timeout=WAIT)
        assert running.marker == runtime_marker()
        assert os.getsid(running.pid) != os.getsid(0)
        assert start_daemon(made, timeout=WAIT) == running
        with DaemonConnection(made.places, timeout=WAIT) as daemon:
            status = daemon.call("daemon_status", Empty(), DaemonStatus)
        assert (status.pid, status.home, status.projects) == (running.pid, str(tmp_path), [])
    finally:
        assert stop_daemon(made, timeout=WAIT)
    assert not made.places.socket.exists()
    events = [json.loads(line)["event"] for line in made.places.log.read_text().splitlines()]
    assert (events[0], events[-1]) == ("started", "stopped")
    made_files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o077 for path in made_files} == {0}
