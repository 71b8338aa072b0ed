from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from flask import Flask

from client.daemon.local_server import LocalServer, connect, prepare_socket
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.local_address import find_address
from shared_schema.places import Places, find_places, make_private

WAIT = 20.0


def echo(_token: str | None) -> Flask:
    app = Flask("echo")
    app.add_url_rule("/", view_func=lambda: "pong")
    return app


@contextmanager
def serving(
    places: Places, make_app: Callable[[str | None], Flask] = echo, *, use_port: bool = False
) -> Iterator[LocalServer]:
    server = LocalServer(make_app, places, threads=4, use_port=use_port)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(WAIT)
        assert not thread.is_alive()


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = find_places(home=tmp_path / "home")
    make_private(found.home)
    return found


@pytest.mark.requirement("daemon.socket.private")
def test_the_socket_and_its_directory_are_this_users_alone(places: Places) -> None:
    with serving(places), connect(places, timeout=WAIT) as client:
        assert client.get("/").text == "pong"
        assert places.socket.stat().st_mode & 0o777 == 0o600
        assert places.socket.parent.stat().st_mode & 0o777 == 0o700
    assert not places.socket.exists()


def test_a_home_with_a_long_path_is_served_too(tmp_path: Path) -> None:
    places = find_places(home=tmp_path / ("x" * 120))
    with serving(places), connect(places, timeout=WAIT) as client:
        assert client.get("/").text == "pong"
    places.socket.parent.rmdir()


@pytest.mark.requirement("daemon.socket.stale")
def test_the_socket_of_a_dead_daemon_is_replaced(places: Places) -> None:
    make_private(places.run)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(places.socket))
    assert places.socket.is_socket()
    with serving(places), connect(places, timeout=WAIT) as client:
        assert client.get("/").text == "pong"


@pytest.mark.requirement("daemon.socket.stale")
@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_what_is_no_socket_is_left_alone_and_named(places: Places, kind: str) -> None:
    make_private(places.run)
    match kind:
        case "file":
            places.socket.write_text("precious")
        case "directory":
            places.socket.mkdir()
        case _:
            places.socket.symlink_to(places.home / "elsewhere")
    with pytest.raises(InterleafError, match="no socket"):
        LocalServer(echo, places, threads=2, use_port=False)
    assert places.socket.lstat()


def test_a_socket_directory_that_is_a_link_is_refused(places: Places) -> None:
    make_private(places.home / "elsewhere")
    places.run.symlink_to(places.home / "elsewhere")
    with pytest.raises(InterleafError, match="0700"):
        prepare_socket(places.socket)


@pytest.mark.requirement("daemon.drain")
def test_a_running_call_is_answered_after_the_stop_was_asked_for(places: Places) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(_token: str | None) -> Flask:
        app = Flask("slow")

        def view() -> str:
            entered.set()
            go_on.wait(WAIT)
            return "finished"

        app.add_url_rule("/", view_func=view)
        return app

    answers: list[str] = []

    def ask() -> None:
        with connect(places, timeout=WAIT) as client:
            answers.append(client.get("/").text)

    asking = threading.Thread(target=ask)
    with serving(places, slow) as server:
        asking.start()
        assert entered.wait(WAIT)
        server.stop()
        go_on.set()
        asking.join(WAIT)
    assert answers == ["finished"]


def test_nothing_to_connect_to_is_daemon_unavailable(places: Places) -> None:
    with pytest.raises(InterleafError, match="interleaf daemon start") as failure:
        connect(places, timeout=1)
    assert failure.value.code is ErrorCode.DAEMON_UNAVAILABLE


@pytest.mark.requirement("daemon.port.token")
def test_a_port_stands_in_for_the_socket_with_a_token_in_a_private_file(places: Places) -> None:
    tokens: list[str | None] = []

    def make(token: str | None) -> Flask:
        tokens.append(token)
        return echo(token)

    with serving(places, make, use_port=True):
        address = find_address(places, use_port=True)
        assert address.socket is None
        assert address.token == tokens[0]
        assert address.token not in repr(address)
        assert address.base_url == f"http://127.0.0.1:{address.port}"
        assert places.port.stat().st_mode & 0o777 == 0o600
        with connect(places, timeout=WAIT, use_port=True) as client:
            assert client.headers["Authorization"] == f"Bearer {tokens[0]}"
            assert client.get("/").text == "pong"
    with pytest.raises(InterleafError):
        find_address(places, use_port=True)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"port": "x", "token": "t"}'])
def test_a_broken_port_file_is_a_daemon_that_does_not_run(places: Places, content: str) -> None:
    make_private(places.run)
    places.port.write_text(content)
    with pytest.raises(InterleafError) as failure:
        find_address(places, use_port=True)
    assert failure.value.code is ErrorCode.DAEMON_UNAVAILABLE


def test_many_callers_are_answered_at_once(places: Places) -> None:
    together = threading.Barrier(4)

    def meeting(_token: str | None) -> Flask:
        app = Flask("meeting")
        app.add_url_rule("/", view_func=lambda: str(together.wait(WAIT)))
        return app

    def ask() -> None:
        with connect(places, timeout=WAIT) as client:
            assert client.get("/").status_code == 200

    with serving(places, meeting):
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
    assert not together.broken


def test_a_proxy_of_the_environment_is_ignored(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with serving(places), connect(places, timeout=WAIT) as client:
        assert isinstance(client, httpx.Client)
        assert client.get("/").text == "pong"


@pytest.mark.requirement("daemon.lifecycle")
def test_a_stop_that_comes_when_the_loop_has_ended_does_nothing(places: Places) -> None:
    with serving(places) as server:
        server._stopping.set()
        server._server.trigger.pull_trigger()
        ended = threading.Event()
        threading.Thread(target=lambda: (wait_for_end(server), ended.set())).start()
        assert ended.wait(WAIT)
        server._stopping.clear()
        server.stop()


def wait_for_end(server: LocalServer) -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and getattr(thread, "_target", None) == server.run:
            thread.join(WAIT)
