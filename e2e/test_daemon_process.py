"""What needs a process: one daemon a home, sudden deaths, releases that do not fit, full disks."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness import Agent, CommandError, Machine, Team, ToolError, wait_until

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and Unix sockets")


@pytest.fixture
def sara(acme: Team, tmp_path: Path) -> Iterator[Machine]:
    """A fresh machine of a member, without models of its own; its daemon runs."""
    machine = Machine(tmp_path / "sara")
    machine.start(acme.server, acme.server.owner_token)
    machine.command("project", "bind", "Rocket")
    machine.sync()
    yield machine
    machine.text("daemon", "stop")


@pytest.mark.requirement("daemon.single")
def test_a_second_daemon_is_refused_and_names_the_first(sara: Machine) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "client.daemon"],
        env=sara.environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert second.returncode != 0
    assert str(sara.pid()) in second.stderr
    assert "Traceback" not in second.stderr
    assert sara.command("daemon", "start")["pid"] == sara.pid()


@pytest.mark.requirement("daemon.private")
def test_files_and_sockets_are_the_users_own(sara: Machine) -> None:
    open_to_others = [
        path
        for path in [sara.home, *sara.home.rglob("*")]
        if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077
    ]
    assert open_to_others == []


@pytest.mark.requirement("daemon.killed", "sync.durable")
def test_a_killed_daemon_loses_nothing_that_it_acknowledged(acme: Team, sara: Machine) -> None:
    acme.server.stop()
    with sara.agent() as agent:
        stored = [
            agent.store("create", path=f"killed/{number}.md", body=f"# Killed {number}\n")
            for number in range(5)
        ]
        os.kill(sara.pid(), signal.SIGKILL)
    acme.server.start()
    sara.command("daemon", "start")
    assert sara.sync() == sara.sync() | {"pending": 0, "failed": 0}
    kept = {draft["id"]: draft["sync_status"] for draft in sara.drafts()}
    assert {kept[answer["draft_id"]] for answer in stored} == {"synced"}


@pytest.mark.requirement("error.agent_runtime_mismatch")
def test_a_proxy_of_another_build_is_refused_and_nothing_is_executed(sara: Machine, tmp_path: Path) -> None:
    other = tmp_path / "other-build"
    for package in ("client", "shared_schema"):
        shutil.copytree(ROOT / package, other / package)
    with (other / "client" / "clock.py").open("a", encoding="utf-8") as file:
        file.write("\n# another build\n")
    environment = sara.environment | {"PYTHONPATH": str(other)}
    launcher = tmp_path / "interleaf"
    launcher.write_text(
        f"#!{sys.executable} -P\nimport sys\nsys.path.insert(0, {str(other)!r})\n"
        "from client.cli.main import run\nsys.exit(run())\n",
        encoding="utf-8",
    )
    launcher.chmod(0o755)
    with (
        Agent(environment, sara.checkout, command=str(launcher)) as stale,
        pytest.raises(ToolError) as mismatch,
    ):
        stale.store("create", path="notes/stale.md", body="# Stale\n")
    assert mismatch.value.code == "agent_runtime_mismatch"
    assert {"proxy", "daemon"} <= mismatch.value.details.keys()
    assert "interleaf daemon restart" in str(mismatch.value)
    assert "notes/stale.md" not in {draft["path"] for draft in sara.drafts()}


@pytest.mark.requirement("daemon.newer-database")
def test_a_database_of_a_newer_release_is_refused_and_left_alone(sara: Machine) -> None:
    sara.text("daemon", "stop")
    database = sara.home / "interleaf.db"
    with sqlite3.connect(database) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.close()
    before = database.read_bytes()
    with pytest.raises(CommandError) as refused:
        sara.command("daemon", "start")
    assert refused.value.error["code"] == "daemon_too_old"
    assert database.read_bytes() == before
    with sqlite3.connect(database) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    sara.command("daemon", "start")


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="mounting a small disk needs root")
@pytest.mark.requirement("error.storage_full")
def test_a_full_disk_refuses_writes_and_goes_on_reading(acme: Team, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        machine = Machine(disk / "tara")
        machine.start(acme.server, acme.server.owner_token)
        machine.command("project", "bind", "Rocket")
        machine.sync()
        with machine.agent() as agent:
            agent.store("create", path="disk/first.md", body="# First\n")
            error = None
            for number in range(40):
                try:
                    agent.store("create", path=f"disk/{number}.md", body="x" * 400_000)
                except ToolError as refused:
                    error = refused
                    break
            assert error is not None
            assert error.code == "storage_full"
            assert agent.load("disk/first.md")[0]["content"] == "# First\n"
        machine.text("daemon", "stop")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.requirement("proxy.ends")
def test_a_proxy_ends_with_its_input_and_leaves_no_process(sara: Machine) -> None:
    proxy = subprocess.Popen(
        [str(Path(sys.executable).parent / "interleaf"), "mcp", "serve"],
        env=sara.environment,
        cwd=sara.checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = proxy.communicate(b"", timeout=30)
    assert (proxy.returncode, out) == (0, b"")
    assert b"Traceback" not in err


@pytest.mark.requirement("proxy.malformed")
def test_malformed_lines_do_not_end_a_proxy_or_reach_its_output(sara: Machine) -> None:
    lines = [
        b"not json\n",
        b'{"jsonrpc":"2.0","id":1}\n',
        b"\xff\xfe\n",
        b"[]\n",
        (
            b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
            b'"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}\n'
        ),
    ]
    proxy = subprocess.Popen(
        [str(Path(sys.executable).parent / "interleaf"), "mcp", "serve"],
        env=sara.environment,
        cwd=sara.checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    proxy.stdin.write(b"".join(lines))
    proxy.stdin.flush()
    answers = []

    def initialised() -> bool:
        assert proxy.stdout is not None
        answers.append(proxy.stdout.readline())
        return b'"id":7' in answers[-1]

    wait_until(initialised, "the answer to initialize", 30)
    proxy.stdin.close()
    assert proxy.wait(timeout=30) == 0
    proxy.stdout.close()
    assert all(answer.startswith((b'{"jsonrpc"', b"{")) for answer in answers)
