"""CPU from spawn to the answered ``initialize`` and ``tools/list``: the proxy beside a trivial server.

Run: ``python tests/bench/proxy_start.py [rounds]``. Prints both medians in milliseconds and their ratio.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

TRIVIAL = """
import asyncio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])

async def main():
    server = Server("trivial", on_list_tools=list_tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

asyncio.run(main())
"""
MESSAGES: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
]


def cpu_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Return user and system CPU of a fresh process until both answers were read."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    assert process.stdout is not None
    for message in MESSAGES:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        if "id" in message:
            assert json.loads(process.stdout.readline())["id"] == message["id"]
    process.kill()  # what either does after its answers is not what the host waits for
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    process.stdin.close()
    process.stdout.close()
    return usage.ru_utime + usage.ru_stime


def medians(rounds: int, proxy: list[str]) -> tuple[float, float]:
    """Measure both in turns, so that a busy moment hits both."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "INTERLEAF_HOME": home}
        trivial = [sys.executable, "-c", TRIVIAL]
        samples = [
            (cpu_seconds(proxy, environment), cpu_seconds(trivial, environment)) for _ in range(rounds)
        ]
    ours, theirs = zip(*samples, strict=True)
    return statistics.median(ours), statistics.median(theirs)


if __name__ == "__main__":
    command = sys.argv[2:] or [sys.executable, "-m", "client.mcp_proxy"]
    ours, theirs = medians(int(sys.argv[1]) if len(sys.argv) > 1 else 15, command)
    sys.stdout.write(f"proxy {ours * 1000:.0f} ms, trivial {theirs * 1000:.0f} ms: {ours / theirs:.2f}\n")
