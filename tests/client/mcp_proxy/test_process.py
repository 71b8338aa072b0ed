"""The proxy as a process: handshakes, the wire, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from client.mcp_proxy.guidance import instructions
from shared_schema import limits
from shared_schema.places import find_places, make_private
from tests.client.mcp_proxy.proxy_process import INITIALIZE, WAIT_SECONDS, proxy

NEWEST = "2026-07-28"


@pytest.mark.requirement("proxy.revisions")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_handshake_revision_is_spoken(tmp_path: Path, version: str) -> None:
    with proxy(tmp_path) as host:
        assert host.initialize(version)["result"]["protocolVersion"] == version
        (tool,) = host.request("tools/list")["result"]["tools"]
        assert tool["name"] == "memory"


@pytest.mark.requirement("proxy.revisions")
@pytest.mark.parametrize("mode", ["legacy", "auto", NEWEST])
def test_the_sdks_client_works_over_real_pipes(tmp_path: Path, mode: str) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "client.mcp_proxy"],
        env={**os.environ, "INTERLEAF_HOME": str(tmp_path)},
    )

    async def run() -> tuple[str, bool, str]:
        async with mcp.Client(stdio_client(parameters), mode=mode) as client:
            tools = await client.list_tools()
            result = await client.call_tool("memory", {"op": {"load": {"ids": ["a.md"]}}})
            assert isinstance(result.structured_content, dict)
            return tools.tools[0].name, result.is_error, result.structured_content["error"]["code"]

    assert asyncio.run(run()) == ("memory", True, "daemon_unavailable")


@pytest.mark.requirement("tool.list.bounded")
def test_the_whole_answer_to_tools_list_is_small(tmp_path: Path) -> None:
    with proxy(tmp_path) as host:
        host.initialize()
        host.request("tools/list")
        assert len(host.lines[-1]) <= limits.TOOL_LIST_BYTES
    with proxy(tmp_path) as host:
        envelope = {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientInfo": INITIALIZE["clientInfo"],
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        answer = host.request("tools/list", {"_meta": envelope})
        assert answer["result"]["tools"][0]["name"] == "memory"
        assert len(host.lines[-1]) <= limits.TOOL_LIST_BYTES


@pytest.mark.requirement("proxy.malformed")
def test_malformed_lines_are_answered_and_the_proxy_goes_on(tmp_path: Path) -> None:
    with proxy(tmp_path) as host:
        host.initialize()
        host.send_line(b"{not json")
        answer = host.next_answer()
        assert answer is not None
        assert answer["error"]["code"] == -32700
        host.send_line(b'{"jsonrpc":"2.0","id":99,"method":12}')
        answer = host.next_answer()
        assert answer is not None
        assert (answer["id"], answer["error"]["code"]) == (99, -32600)
        host.send_line(b"")
        assert "error" in host.request("no/such/method")
        assert "error" in host.request("tools/call", {"name": 3})
        assert host.error_code({"load": {"ids": ["a"]}}) == "daemon_unavailable"


@pytest.mark.requirement("proxy.stdout")
def test_stdout_carries_protocol_only_even_when_something_prints(tmp_path: Path) -> None:
    script = """
import builtins, sys
from client.mcp_proxy import server
original = server.instructions
def noisy(path):
    print("stray")
    return original(path)
tool = server.memory_tool
async def answer(calls, arguments):
    print("stray", flush=True)
    return await real(calls, arguments)
real, server.answer = server.answer, answer
server.main([])
"""
    messages = [
        {"id": 1, "method": "initialize", "params": INITIALIZE | {"protocolVersion": "2025-11-25"}},
        {"id": 2, "method": "tools/call", "params": {"name": "memory", "arguments": {}}},
    ]
    ended = subprocess.run(
        [sys.executable, "-c", script],
        input="".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages),
        env={**os.environ, "INTERLEAF_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_SECONDS,
    )
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [1, 2]
    assert "stray" in ended.stderr


@pytest.mark.requirement("proxy.end")
def test_requests_read_before_the_end_of_stdin_are_answered_and_then_it_ends(tmp_path: Path) -> None:
    with proxy(tmp_path) as host:
        initialize = {
            "id": 1,
            "method": "initialize",
            "params": INITIALIZE | {"protocolVersion": "2025-06-18"},
        }
        for message in (initialize, {"id": 2, "method": "tools/list"}):
            host.send_line(json.dumps({"jsonrpc": "2.0", **message}).encode())
        host.close_stdin()
        answers = [host.next_answer(), host.next_answer(), host.next_answer()]
        assert [answer and answer["id"] for answer in answers] == [1, 2, None]
        assert host.process.wait(WAIT_SECONDS) == 0


@pytest.mark.requirement("proxy.end")
def test_it_ends_when_its_parent_dies_though_stdin_stays_open(tmp_path: Path) -> None:
    script = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "client.mcp_proxy"])
print(child.pid, flush=True)
time.sleep({WAIT_SECONDS})
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "INTERLEAF_HOME": str(tmp_path)},
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    with parent.stdin, parent.stdout:
        descriptor = os.pidfd_open(int(parent.stdout.readline()))
        parent.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        parent.stdin.flush()
        assert json.loads(parent.stdout.readline())["id"] == 1
        parent.kill()
        parent.wait(WAIT_SECONDS)
        assert ended_within(descriptor, WAIT_SECONDS)


def ended_within(descriptor: int, seconds: float) -> bool:
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    with proxy(tmp_path) as host:
        host.initialize()
        host.process.send_signal(number)
        assert host.process.wait(WAIT_SECONDS) == -number


@pytest.mark.requirement("proxy.imports")
def test_the_proxy_imports_nothing_heavy() -> None:
    heavy = [
        "sqlmodel",
        "sqlalchemy",
        "fastembed",
        "onnxruntime",
        "tantivy",
        "flask",
        "waitress",
        "typer",
        "numpy",
    ]
    script = f"""
import sys
import client.mcp_proxy.server
first = [name for name in {[*heavy, "httpx"]!r} if name in sys.modules]
import client.mcp_proxy.project_binding
print(first, [name for name in {heavy!r} if name in sys.modules])
ours = sorted({{name.split(".")[1] for name in sys.modules if name.startswith("client.")}})
print(ours)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["[] []", "['mcp_proxy']"]


@pytest.mark.requirement("guidance.path")
def test_the_instructions_name_the_configured_guide_without_a_daemon(tmp_path: Path) -> None:
    project = tmp_path / "project" / "deep"
    project.mkdir(parents=True)
    places = find_places(home=tmp_path / "home")
    make_private(places.run)
    bound = os.path.realpath(tmp_path / "project")
    places.guides.write_text(json.dumps({bound: "guides/OURS.md"}))
    with proxy(places.home, cwd=project) as host:
        assert host.initialize()["result"]["instructions"] == instructions("guides/OURS.md")
    with proxy(places.home, "--project-root", str(project), cwd=tmp_path) as host:
        assert host.initialize()["result"]["instructions"] == instructions("guides/OURS.md")
    with proxy(places.home, cwd=tmp_path) as host:
        assert host.initialize()["result"]["instructions"] == instructions()


def test_a_project_root_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with proxy(tmp_path, "--project-root", str(tmp_path / "missing")) as host:
        assert host.process.wait(WAIT_SECONDS) == 2
        assert host.lines == []


@pytest.mark.requirement("proxy.wait")
def test_the_handshake_does_not_wait_for_a_daemon_that_hangs(tmp_path: Path) -> None:
    places = find_places(home=tmp_path)
    make_private(places.run)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(places.socket))
        silent.listen()
        with proxy(tmp_path) as host:
            host.initialize()
            assert host.request("tools/list")["result"]["tools"]
            host.close_stdin()
            assert host.process.wait(WAIT_SECONDS) == 0
