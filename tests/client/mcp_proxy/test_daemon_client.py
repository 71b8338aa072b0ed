from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from client.mcp_proxy.daemon_client import DaemonClient
from client.mcp_proxy.project_binding import MemoryCalls, ProjectBinding
from shared_schema.daemon_contract import AGENT_PROTOCOL, Empty, Hello, RuntimeMarker
from shared_schema.directories import Directory
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.places import find_places, make_private
from shared_schema.tool_contract import Load, parse_arguments

MARKER = RuntimeMarker(protocol=AGENT_PROTOCOL, release="1", fingerprint="f")
CREATE = parse_arguments({"op": {"store": {"create": {"path": "a.md", "body": "# A"}}}})
LOAD = Load(ids=["a.md"])

Answer = Callable[[str, dict[str, Any]], Any]


class Daemon(httpx.AsyncBaseTransport):
    """Answers from a function of (method, call) and keeps what was asked."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        method = request.url.path.removeprefix("/rpc/")
        call = json.loads(await request.aread())
        self.asked.append((method, call))
        found = self.answer(method, call)
        if isinstance(found, Exception):
            raise found
        return httpx.Response(200, json=found)

    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]


def healthy(method: str, call: dict[str, Any]) -> Any:
    match method:
        case "hello":
            return {"result": Hello(marker=MARKER, pid=1).model_dump()}
        case "resolve_binding":
            return {"result": {"directory": "/w", "project_id": "prj_1"}}
        case _:
            return {"result": {"method": method}}


def calls(daemon: Daemon, tmp_path: Path, return_seconds: float = 0.3) -> MemoryCalls:
    client = DaemonClient(find_places(home=tmp_path), MARKER, transport=daemon, return_seconds=return_seconds)
    return MemoryCalls(client, ProjectBinding(client, MARKER, Directory(path="/w/x", main_checkout="/m/x")))


def failing(first: Exception, then: Answer = healthy, method: str = "store_draft_operation") -> Answer:
    """Fail the first call of ``method``, then answer as ``then``."""
    failures = [first]

    def answer(asked: str, call: dict[str, Any]) -> Any:
        if asked == method and failures:
            return failures.pop()
        return then(asked, call)

    return answer


@pytest.mark.requirement("proxy.marker")
def test_the_daemons_build_is_checked_before_the_binding_is_resolved(tmp_path: Path) -> None:
    daemon = Daemon(healthy)
    asyncio.run(calls(daemon, tmp_path)(LOAD))
    assert daemon.methods() == ["hello", "resolve_binding", "load_memory"]
    assert all(call["marker"] == MARKER.model_dump() for _, call in daemon.asked)


@pytest.mark.requirement("proxy.marker")
def test_another_build_is_refused_with_both_identities_and_nothing_else_is_asked(tmp_path: Path) -> None:
    other = MARKER.model_copy(update={"fingerprint": "other"})
    daemon = Daemon(lambda _method, _call: {"result": Hello(marker=other, pid=1).model_dump()})
    with pytest.raises(InterleafError) as failure:
        asyncio.run(calls(daemon, tmp_path)(LOAD))
    assert failure.value.code is ErrorCode.AGENT_RUNTIME_MISMATCH
    assert failure.value.details == {"proxy": MARKER.model_dump(), "daemon": other.model_dump()}
    assert daemon.methods() == ["hello"]


@pytest.mark.requirement("proxy.binding.fixed")
def test_the_binding_is_resolved_once_and_named_with_its_directory_in_every_call(tmp_path: Path) -> None:
    daemon = Daemon(healthy)
    memory = calls(daemon, tmp_path)

    async def run() -> None:
        await asyncio.gather(*(memory(LOAD) for _ in range(5)))

    asyncio.run(run())
    assert daemon.methods().count("resolve_binding") == 1
    scopes = [call["params"]["scope"] for method, call in daemon.asked if method == "load_memory"]
    expected = {"project_id": "prj_1", "directory": {"path": "/w/x", "main_checkout": "/m/x"}}
    assert scopes == [expected] * 5


def test_a_directory_that_was_not_bound_is_resolved_again_by_the_next_call(tmp_path: Path) -> None:
    unbound = InterleafError(ErrorCode.PROJECT_BINDING_NOT_FOUND)
    answers = [{"error": unbound.as_wire()}]

    def answer(method: str, call: dict[str, Any]) -> Any:
        return answers.pop() if method == "resolve_binding" and answers else healthy(method, call)

    memory = calls(Daemon(answer), tmp_path)

    async def run() -> dict[str, Any]:
        with pytest.raises(InterleafError) as failure:
            await memory(LOAD)
        assert failure.value.code is ErrorCode.PROJECT_BINDING_NOT_FOUND
        return await memory(LOAD)

    assert asyncio.run(run()) == {"method": "load_memory"}


@pytest.mark.requirement("proxy.store.retried")
@pytest.mark.parametrize(
    "lost", [httpx.RemoteProtocolError("gone"), httpx.ReadError("reset"), httpx.WriteError("reset")]
)
def test_a_write_whose_answer_was_lost_is_sent_again_with_the_same_operation_id(
    tmp_path: Path, lost: Exception
) -> None:
    daemon = Daemon(failing(lost))
    assert asyncio.run(calls(daemon, tmp_path)(CREATE)) == {"method": "store_draft_operation"}
    ids = [c["params"]["operation_id"] for method, c in daemon.asked if method == "store_draft_operation"]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert ids[0].startswith("lop_")


@pytest.mark.requirement("proxy.store.retried")
def test_it_is_sent_again_when_the_daemon_is_back_a_moment_later(tmp_path: Path) -> None:
    down = [httpx.ConnectError("refused")] * 3

    def restarting(method: str, call: dict[str, Any]) -> Any:
        return down.pop() if method == "store_draft_operation" and down else healthy(method, call)

    daemon = Daemon(failing(httpx.ReadError("reset"), restarting))
    memory = calls(daemon, tmp_path, return_seconds=30)
    assert asyncio.run(memory(CREATE)) == {"method": "store_draft_operation"}


def test_a_daemon_that_stays_away_leaves_the_outcome_unknown_and_says_so(tmp_path: Path) -> None:
    def gone(method: str, call: dict[str, Any]) -> Any:
        return httpx.ConnectError("refused") if method == "store_draft_operation" else healthy(method, call)

    daemon = Daemon(failing(httpx.ReadError("reset"), gone))
    with pytest.raises(InterleafError) as failure:
        asyncio.run(calls(daemon, tmp_path, return_seconds=0)(CREATE))
    assert failure.value.code is ErrorCode.DAEMON_UNAVAILABLE
    assert failure.value.details == {"outcome": "unknown"}
    assert "interleaf daemon start" in failure.value.message


@pytest.mark.requirement("proxy.daemon_unavailable")
@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow")])
def test_a_daemon_that_does_not_run_is_named_with_the_command_that_starts_it(
    tmp_path: Path, failure: Exception
) -> None:
    daemon = Daemon(lambda _method, _call: failure)
    with pytest.raises(InterleafError, match="interleaf daemon start") as error:
        asyncio.run(calls(daemon, tmp_path)(LOAD))
    assert error.value.code is ErrorCode.DAEMON_UNAVAILABLE
    assert daemon.methods() == ["hello"]


def test_a_slow_answer_is_not_asked_for_twice(tmp_path: Path) -> None:
    daemon = Daemon(failing(httpx.ReadTimeout("slow")))
    with pytest.raises(InterleafError, match="did not answer") as error:
        asyncio.run(calls(daemon, tmp_path)(CREATE))
    assert error.value.code is ErrorCode.DAEMON_UNAVAILABLE
    assert daemon.methods().count("store_draft_operation") == 1


def test_an_error_of_the_daemon_comes_back_unchanged(tmp_path: Path) -> None:
    occupied = InterleafError(ErrorCode.PATH_OCCUPIED, "taken", details={"path": "a.md"})
    daemon = Daemon(failing(httpx.ReadError("x"), lambda m, c: healthy(m, c)))
    daemon.answer = lambda m, c: {"error": occupied.as_wire()} if m.startswith("store") else healthy(m, c)
    with pytest.raises(InterleafError) as error:
        asyncio.run(calls(daemon, tmp_path)(CREATE))
    assert error.value.as_wire() == occupied.as_wire()


@pytest.mark.parametrize("answer", [[], {}, {"result": None, "error": 3}, "text"])
def test_an_answer_that_is_not_understood_is_an_error_and_no_crash(tmp_path: Path, answer: Any) -> None:
    client = DaemonClient(find_places(home=tmp_path), MARKER, transport=Daemon(lambda _method, _call: answer))
    with pytest.raises(InterleafError) as error:
        asyncio.run(client.call("hello", Empty()))
    assert error.value.code is ErrorCode.INTERNAL_ERROR


@pytest.mark.requirement("daemon.socket.private")
def test_a_socket_in_a_directory_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    places = find_places(home=tmp_path)
    make_private(places.socket.parent)
    places.socket.parent.chmod(0o777)
    with pytest.raises(InterleafError, match="0700") as error:
        asyncio.run(DaemonClient(places, MARKER).call("hello", Empty()))
    assert error.value.code is ErrorCode.DAEMON_UNAVAILABLE
