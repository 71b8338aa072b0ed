"""What needs real processes: a server, a daemon, a proxy."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from client.models.files import default_models_dir
from client.sync.org_client import OrgClient
from e2e.harness import Machine, Team, wait_until
from tests.bench.figures import Figure, milliseconds, share
from tests.bench.proxy_start import medians
from tests.bench.relay import Relay

QUEUED = 1_000


def measure(rounds: int, idle_seconds: float) -> list[Figure]:
    """Measure proxy, tool and daemon on a real team."""
    ours, theirs = medians(rounds, [sys.executable, "-m", "client.mcp_proxy"])
    start = Figure("proxy: spawn → tools/list, CPU / a trivial SDK server", ours / theirs, "×", 1.2)
    with tempfile.TemporaryDirectory() as folder:
        team = Team(Path(folder) / "team", default_models_dir())
        try:
            machine = team.owner
            machine.sync()
            found = [start, *_calls(machine), _quiet_round(team)]
            found += _outage(team, machine)
            found += _idle(machine, idle_seconds)
        finally:
            team.close()
    return found


def _calls(machine: Machine) -> list[Figure]:
    with machine.agent() as agent:
        tools = [t.model_dump(by_alias=True, exclude_none=True, mode="json") for t in agent.tools()]
        listed = len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode())
        instructions = len(agent.client.instructions or "")
        stores, during = [], []
        for number in range(60):
            body, path = f"# Note {number}\n\nSome text.\n", f"calls/{number}.md"
            stores.append(milliseconds(lambda p=path, b=body: agent.store("create", path=p, body=b)))
            during.append(milliseconds(lambda p=path: agent.load(p)))
        # Again, once the index and the server have what was stored.
        machine.sync()
        wait_until(lambda: not machine.command("search", "status")["lag"], "the index")
        loads = [milliseconds(lambda n=n: agent.load(f"calls/{n % 60}.md")) for n in range(120)]
    return [
        Figure("tools/list, one tool", listed, "bytes", 4_096),
        Figure("instructions", instructions, "characters", 3_000),
        Figure("store through proxy and daemon, p95", share(stores, 0.95), "ms", None, _p50(stores)),
        Figure("load through proxy and daemon, quiet, p95", share(loads, 0.95), "ms", 10, _p50(loads)),
        Figure("load, each after a store, p95", share(during, 0.95), "ms", 10, _p50(during)),
    ]


def _p50(times: list[float]) -> str:
    return f"p50 {share(times, 0.5):.1f} ms"


def _quiet_round(team: Team) -> Figure:
    """Count the bytes of a round in which nothing happened, as the client sends and gets them."""
    with Relay(team.server.port) as relay:
        client = OrgClient(f"http://127.0.0.1:{relay.port}", team.server.owner_token)
        first = client.sync(None)
        assert first is not None
        before = relay.counts()
        assert client.sync(first.cursor) is None
        client.close()
        wait_until(lambda: relay.counts()[1] > before[1], "the answer's bytes")
        sent, received = (after - earlier for after, earlier in zip(relay.counts(), before, strict=True))
    return Figure("quiet sync round, both ways", sent + received, "bytes", 500, f"{received} received")


def _outage(team: Team, machine: Machine) -> list[Figure]:
    """Queue operations while the server is away, and time how long they take when it is back."""
    machine.sync()
    team.server.stop()
    with machine.agent() as agent:
        for number in range(QUEUED // 10):
            note = agent.store("create", path=f"outage/{number}.md", body="# Outage\n\nline 0\n")
            for line in range(9):
                edit = {"old_text": f"line {line}\n", "new_text": f"line {line + 1}\n"}
                note = agent.store(
                    "update", id=note["resource_id"], expected_hash=note["content_hash"], replacements=[edit]
                )
    team.server.start()
    took = milliseconds(lambda: wait_until(lambda: machine.sync()["pending"] == 0, "the queue", 120))
    return [Figure(f"{QUEUED:,} queued operations after an outage → on the server", took / 1_000, "s", 10)]


def _idle(machine: Machine, seconds: float) -> list[Figure]:
    """Read memory and CPU of a daemon with its model loaded that nobody asks anything."""
    with machine.agent() as agent:
        wait_until(lambda: _activated(agent), "an activation", 300)
    time.sleep(2)
    pid = machine.pid()
    before = _cpu_seconds(pid)
    time.sleep(seconds)
    used = (_cpu_seconds(pid) - before) / seconds * 60
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1_024
    return [
        Figure("daemon idle, CPU a minute", used, "s", 0.1, f"over {seconds:.0f} s"),
        Figure("daemon, RSS with the model loaded", resident, "MB", 700),
    ]


def _activated(agent: object) -> bool:
    from e2e.harness import Agent, ToolError

    assert isinstance(agent, Agent)
    try:
        agent.activate("what happened in the outage?")
    except ToolError:
        return False
    return True


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
