"""What needs real processes: a server, a daemon, a proxy."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from client.models.files import default_models_dir
from client.sync.org_client import OrgClient
from e2e.harness import INTERLEAF, Agent, Machine, Team, ToolError, wait_until
from tests.bench.figures import Figure, milliseconds, share
from tests.bench.proxy_start import medians
from tests.bench.relay import Relay

QUEUED = 1_000
WARM_UP = 10
LONG_ROUNDS = 600
"""Stores and loads in a row: several seconds, in which index and sync have to do their work too."""
LATER_SECONDS = 0.25
"""After a store, when index and sync have just begun with it."""
LATER_ROUNDS = 60
WINDOW_SECONDS = 20
HELD_SECONDS = 10
"""How long the server holds the quiet round: as many digits as the daemon's own wish has."""


def measure(rounds: int, windows: int) -> list[Figure]:
    """Measure proxy, tool and daemon on a real team."""
    start = [
        _proxy_start(rounds, [sys.executable, "-m", "client.mcp_proxy"], "python -m client.mcp_proxy"),
        _proxy_start(rounds, [INTERLEAF, "mcp", "serve"], "interleaf mcp serve"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        team = Team(Path(folder) / "team", default_models_dir())
        try:
            machine = team.owner
            machine.sync()
            found = [*start, *_calls(machine), _quiet_round(team)]
            found += _outage(team, machine)
            found += _idle(machine, windows)
        finally:
            team.close()
    return found


def _proxy_start(rounds: int, command: list[str], called: str) -> Figure:
    medians(1, command)  # A warm-up: byte code is compiled, files are in memory.
    ours, theirs = medians(rounds, command)
    beside = f"{ours * 1_000:.0f} ms, trivial {theirs * 1_000:.0f} ms"
    return Figure(
        f"{called}: spawn → tools/list, CPU / a trivial SDK server", ours / theirs, "×", 1.2, beside
    )


def _calls(machine: Machine) -> list[Figure]:
    with machine.agent() as agent:
        tools = [t.model_dump(by_alias=True, exclude_none=True, mode="json") for t in agent.tools()]
        listed = len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode())
        instructions = len(agent.client.instructions or "")
        stores, during, later = [], [], []
        for number in range(WARM_UP + LONG_ROUNDS):
            body, path = f"# Note {number}\n\nSome text.\n", f"calls/{number}.md"
            stores.append(milliseconds(partial(agent.store, "create", path=path, body=body)))
            during.append(milliseconds(partial(agent.load, path)))
        for number in range(LATER_ROUNDS):
            path = f"later/{number}.md"
            agent.store("create", path=path, body=f"# Later {number}\n\nSome text.\n")
            time.sleep(LATER_SECONDS)
            later.append(milliseconds(partial(agent.load, path)))
        # Again, once the index and the server have what was stored.
        machine.sync()
        wait_until(lambda: not machine.command("search", "status")["lag"], "the index")
        loads = [milliseconds(partial(agent.load, f"calls/{n % 60}.md")) for n in range(WARM_UP + 120)]
    stores, during, loads = stores[WARM_UP:], during[WARM_UP:], loads[WARM_UP:]
    busy = f"{_p50(during)}; {LONG_ROUNDS} stores and loads in a row, index and sync catch up in between"
    begun = f"{_p50(later)}; when index and sync have just begun"
    return [
        Figure("tools/list, one tool", listed, "bytes", 4_096),
        Figure("instructions", instructions, "characters", 3_000),
        Figure("store through proxy and daemon, p95", share(stores, 0.95), "ms", None, _p50(stores)),
        Figure("load through proxy and daemon, quiet, p95", share(loads, 0.95), "ms", 10, _p50(loads)),
        Figure("load through proxy and daemon, each after a store, p95", share(during, 0.95), "ms", 10, busy),
        Figure(
            f"load through proxy and daemon, {LATER_SECONDS} s after a store, p95",
            share(later, 0.95),
            "ms",
            10,
            begun,
        ),
    ]


def _p50(times: list[float]) -> str:
    return f"p50 {share(times, 0.5):.1f} ms"


def _quiet_round(team: Team) -> Figure:
    """Count the bytes of a round in which nothing happened, as the daemon's client sends and gets them."""
    with Relay(team.server.port) as relay:
        client = OrgClient(f"http://127.0.0.1:{relay.port}", team.server.owner_token)
        first = client.sync(None)
        if first is None:
            raise RuntimeError("the first round brought nothing")
        # What the daemons upload meanwhile moves the feed, so the round is tried until one is quiet.
        cursor = first.cursor
        while True:
            before = relay.counts()
            answer = client.sync(cursor, HELD_SECONDS)
            if answer is None:
                break
            cursor = answer.cursor
        client.close()
        wait_until(lambda: relay.counts()[1] > before[1], "the answer's bytes")
        sent, received = (after - earlier for after, earlier in zip(relay.counts(), before, strict=True))
    beside = f"request {sent}, answer {received}: lines, headers and bodies; connection kept, no TCP or IP"
    return Figure("quiet sync round, request and answer", sent + received, "bytes", 500, beside)


def _outage(team: Team, machine: Machine) -> list[Figure]:
    """Queue operations while the server is away, and time how long they take when it is back."""
    machine.sync()
    client = OrgClient(team.server.url, team.server.owner_token)
    earlier = sum(draft.last_ordinal for draft in client.drafts())
    team.server.stop()
    with machine.agent() as agent:
        for number in range(QUEUED // 10):
            note = agent.store("create", path=f"outage/{number}.md", body="# Outage\n\nline 0\n")
            for line in range(9):
                edit = {"old_text": f"line {line}\n", "new_text": f"line {line + 1}\n"}
                note = agent.store(
                    "update", id=note["resource_id"], expected_hash=note["content_hash"], replacements=[edit]
                )
    queued = len(machine.command("outbox", "list")["operations"])
    starting = time.perf_counter()
    team.server.start()
    up = (time.perf_counter() - starting) * 1_000
    took = milliseconds(lambda: wait_until(lambda: machine.sync()["pending"] == 0, "the queue", 120))
    arrived = sum(draft.last_ordinal for draft in client.drafts()) - earlier
    client.close()
    if not queued == arrived == QUEUED:
        raise RuntimeError(f"{QUEUED} operations: {queued} were queued and {arrived} are on the server")
    beside = f"from the answering server on, its start took {up / 1_000:.1f} s; all there, none twice"
    return [
        Figure(f"{QUEUED:,} queued operations after an outage → on the server", took / 1_000, "s", 10, beside)
    ]


def _idle(machine: Machine, windows: int) -> list[Figure]:
    """Read memory and CPU of a daemon with its model loaded that nobody asks anything."""
    with machine.agent() as agent:
        wait_until(lambda: _activated(agent), "an activation", 300)
    machine.sync()
    wait_until(lambda: not machine.command("search", "status")["lag"], "the index")
    pid = machine.pid()
    time.sleep(2)
    used = []
    for _ in range(windows):
        before = _cpu_seconds(pid)
        time.sleep(WINDOW_SECONDS)
        used.append((_cpu_seconds(pid) - before) / WINDOW_SECONDS * 60)
    each = ", ".join(f"{value:.2f}" for value in used)
    beside = f"mean of {windows} × {WINDOW_SECONDS} s: {each}; the clock ticks in 0.01 s"
    return [
        Figure("daemon idle, CPU a minute", sum(used) / len(used), "s", 0.1, beside),
        Figure(
            "daemon idle, RSS with the model loaded",
            _memory(pid, "VmRSS"),
            "MB",
            700,
            f"peak since its start {_memory(pid, 'VmHWM'):.0f} MB",
        ),
    ]


def _memory(pid: int, field: str) -> float:
    """Return a size in MiB from the kernel's account of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split(f"{field}:")[1].split()[0]) / 1_024


def _activated(agent: Agent) -> bool:
    try:
        agent.activate("what happened in the outage?")
    except ToolError:
        return False
    return True


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
