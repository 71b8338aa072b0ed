from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from org_server.cli import main
from shared_schema.org_contract import API_PREFIX

PROGRAM = [sys.executable, "-W", "error", "-c", "from org_server.cli.main import run; run()"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("INTERLEAF_")} | {
    "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
    "NO_COLOR": "1",
    "COLUMNS": "100",
}


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one command in this process: a start of the program takes longer than all that it does."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    mask = os.umask(0o022)
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        for name in set(os.environ) - set(ENVIRONMENT):
            patch.delenv(name)
        for name, value in (ENVIRONMENT | environment).items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["interleaf-server", *arguments])
        try:
            main.run()
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            os.umask(mask)
    assert isinstance(code, int)
    return subprocess.CompletedProcess(list(arguments), code, out.getvalue(), err.getvalue())


def as_json(*arguments: str, **environment: str) -> Any:
    result = command(*arguments, "--json", **environment)
    return json.loads(result.stdout)


def initialised(where: Path) -> Any:
    return as_json("init", "--data", str(where), "--org", "Acme", "--owner", "ada@example.org")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the server on a free port; yields the process and its address."""
    process = subprocess.Popen(
        [*PROGRAM, "run", "--port", "0", *arguments], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"listening on (http://\S+:\d+)\n", line)
        assert found is not None, line + process.stderr.read()
        yield process, found[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


@pytest.mark.requirement("server.cli.init")
def test_init_makes_a_private_directory_and_prints_the_token_once(tmp_path: Path) -> None:
    where = tmp_path / "a" / "server"
    made = initialised(where)
    assert sorted(made) == ["org_id", "token", "user_id"]
    assert re.fullmatch(r"ilt_[A-Za-z0-9_-]{43}", made["token"])
    assert where.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in where.iterdir()} == {"interleaf.db": 0o600}
    assert made["token"].encode() not in (where / "interleaf.db").read_bytes()

    again = command("init", "--data", str(where), "--org", "Other", "--owner", "eve@example.org")
    assert again.returncode == 1
    assert "already" in again.stderr
    assert as_json("user", "list", "--data", str(where))["users"][0]["email"] == "ada@example.org"


def test_init_for_people_names_the_next_commands(tmp_path: Path) -> None:
    result = command("init", "--data", str(tmp_path / "s"), "--org", "Acme", "--owner", "ada@example.org")
    assert result.returncode == 0
    assert len(re.findall(r"ilt_\S+", result.stdout)) == 1
    assert f"interleaf-server run --data {tmp_path / 's'}" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("owner", ["ada", "", "ada@", "a b@c"])
def test_init_with_an_unusable_owner_can_be_repeated_with_a_good_one(tmp_path: Path, owner: str) -> None:
    refused = command("init", "--data", str(tmp_path), "--org", "Acme", "--owner", owner, "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["code"] == "invalid_arguments"
    assert "token" in initialised(tmp_path)


@pytest.mark.requirement("server.cli.run")
def test_run_serves_until_sigterm_and_then_ends_well(tmp_path: Path) -> None:
    token = initialised(tmp_path / "s")["token"]
    with running("--data", str(tmp_path / "s")) as (process, address):
        answer = httpx.get(f"{address}{API_PREFIX}/me", headers={"Authorization": f"Bearer {token}"})
        assert answer.json()["email"] == "ada@example.org"
        assert httpx.get(f"{address}/ready").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health")
    # The log was written back: what a crash would need is gone.
    assert [file.name for file in (tmp_path / "s").iterdir()] == ["interleaf.db"]


@pytest.mark.requirement("server.cli.run")
def test_a_request_in_flight_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    token = initialised(tmp_path / "s")["token"]
    with running("--data", str(tmp_path / "s")) as (process, address):
        blocker = sqlite3.connect(tmp_path / "s" / "interleaf.db", isolation_level=None)
        httpx.get(f"{address}{API_PREFIX}/me", headers={"Authorization": f"Bearer {token}"})
        blocker.execute("BEGIN IMMEDIATE")
        answers: list[httpx.Response] = []

        def create() -> None:
            answers.append(
                httpx.post(
                    f"{address}{API_PREFIX}/projects",
                    json={"name": "Web"},
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=30,
                )
            )

        thread = threading.Thread(target=create)
        thread.start()
        wait_for_request(address, "POST")
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        blocker.execute("ROLLBACK")
        blocker.close()
        assert process.wait(30) == 0
        thread.join(30)
    assert [answer.status_code for answer in answers] == [201]


@pytest.mark.requirement("server.cli.run")
def test_a_long_poll_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {initialised(tmp_path / 's')['token']}"}
    with running("--data", str(tmp_path / "s")) as (process, address):
        cursor = httpx.get(f"{address}{API_PREFIX}/sync", headers=headers).json()["cursor"]
        answers: list[httpx.Response] = []

        def poll() -> None:
            url = f"{address}{API_PREFIX}/sync?wait=25&cursor={cursor}"
            answers.append(httpx.get(url, headers=headers, timeout=60))

        thread = threading.Thread(target=poll)
        thread.start()
        wait_for_request(address, "GET", at_least=2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        thread.join(60)
    assert [answer.status_code for answer in answers] == [304]


def wait_for_request(address: str, method: str, at_least: int = 1) -> None:
    """Return once the server is inside so many requests of this method; asking is a GET itself."""
    for _ in range(600):
        metrics = httpx.get(f"{address}/metrics").text
        found = re.search(rf'interleaf_requests_in_progress{{method="{method}"}} ([0-9.]+)', metrics)
        if found is not None and float(found[1]) >= at_least:
            return
    pytest.fail("the request never began")


def test_run_without_a_database_or_with_a_taken_port_says_so(tmp_path: Path) -> None:
    nothing = command("run", "--data", str(tmp_path / "none"))
    assert nothing.returncode == 1
    assert "interleaf-server init" in nothing.stderr
    assert not (tmp_path / "none").exists()
    initialised(tmp_path / "s")
    with running("--data", str(tmp_path / "s")) as (_, address):
        port = address.rsplit(":", 1)[1]
        taken = command("run", "--data", str(tmp_path / "s"), "--port", port)
    assert taken.returncode == 1
    assert f"Port {port}" in taken.stderr
    assert "Traceback" not in taken.stderr


@pytest.mark.requirement("server.schema.newer_refused")
@pytest.mark.parametrize(
    ("version", "advice"), [("9999", "Update this one"), (None, "interleaf-server init")]
)
def test_run_refuses_a_schema_that_is_not_its_own(tmp_path: Path, version: str | None, advice: str) -> None:
    initialised(tmp_path)
    database = sqlite3.connect(tmp_path / "interleaf.db")
    with database:
        if version is None:
            database.execute("DELETE FROM alembic_version")
        else:
            database.execute("UPDATE alembic_version SET version_num = ?", (version,))
    database.close()
    for arguments in (["run", "--port", "0"], ["user", "list"], ["check"]):
        result = command(*arguments, "--data", str(tmp_path))
        assert result.returncode == 1, arguments
        assert "code: schema_mismatch" in result.stderr
        assert advice in result.stderr


def test_users_are_managed_from_the_command_line(tmp_path: Path) -> None:
    initialised(tmp_path)
    data = ("--data", str(tmp_path))
    added = as_json("user", "add", "--email", "bob@example.org", "--role", "admin", "--name", "Bob", *data)
    assert (added["email"], added["role"], added["name"]) == ("bob@example.org", "admin", "Bob")
    assert as_json("user", "role", "bob@example.org", "member", *data)["role"] == "member"
    assert as_json("user", "disable", added["user_id"], *data)["disabled"] is True
    assert as_json("user", "enable", added["user_id"], *data)["disabled"] is False
    assert as_json("user", "add", "--email", "BOB@example.org", *data)["error"]["code"] == "already_exists"
    assert as_json("user", "role", "ada@example.org", "member", *data)["error"]["code"] == "last_owner"
    assert as_json("user", "disable", "nobody@example.org", *data)["error"]["code"] == "not_found"
    listed = command("user", "list", *data).stdout
    assert added["user_id"] in listed
    assert [user["email"] for user in as_json("user", "list", *data)["users"]] == [
        "ada@example.org",
        "bob@example.org",
    ]


def test_tokens_are_issued_listed_and_revoked_from_the_command_line(tmp_path: Path) -> None:
    token = initialised(tmp_path / "s")["token"]
    data = ("--data", str(tmp_path / "s"))
    issued = command("token", "issue", "--user", "ada@example.org", "--read-only", *data)
    assert re.fullmatch(r"ilt_[A-Za-z0-9_-]{43}\n", issued.stdout)
    made = as_json("token", "issue", "--user", "ada@example.org", "--expires-days", "3", *data)
    assert sorted(made) == ["token", "token_id"]
    unknown = as_json("token", "issue", "--user", "ada@example.org", "--project", "prj_x", *data)
    assert unknown["error"]["code"] == "invalid_arguments"
    listed = as_json("token", "list", *data)["tokens"]
    assert [row["read_only"] for row in listed] == [False, True, False]
    assert listed[2]["expires_at"] - listed[2]["created_at"] == 3 * 24 * 60 * 60 * 1000
    assert token not in command("token", "list", *data).stdout
    assert as_json("token", "revoke", made["token_id"], *data) == {
        "token_id": made["token_id"],
        "revoked": True,
    }
    assert "revoked" in command("token", "list", "--user", "ada@example.org", *data).stdout


def test_wrong_use_is_exit_code_two(tmp_path: Path) -> None:
    for arguments in (["user", "add"], ["token", "issue"], ["nonsense"], ["run", "--port", "x"]):
        assert command(*arguments).returncode == 2, arguments
    assert command("token", "issue", "--user", "a@b", "--expires-days", "0").returncode == 2


def test_the_database_is_named_once(tmp_path: Path) -> None:
    none = command("check")
    assert (none.returncode, "--data DIR" in none.stderr) == (1, True)
    both = command("check", "--data", str(tmp_path), INTERLEAF_DATABASE_URL="sqlite:////tmp/x.db")
    assert (both.returncode, "Give one" in both.stderr) == (1, True)
    secret = command("check", "--database-url", "mysql://root:hunter2@localhost/x")
    assert secret.returncode == 1
    assert "hunter2" not in secret.stderr + secret.stdout


def test_check_finds_a_text_that_was_changed_behind_the_servers_back(tmp_path: Path) -> None:
    initialised(tmp_path)
    good = as_json("check", "--data", str(tmp_path))
    assert good["problems"] == []
    database = sqlite3.connect(tmp_path / "interleaf.db")
    with database:
        database.execute("INSERT INTO blob VALUES ('sha256:00', 'forged')")
    database.close()
    result = command("check", "--data", str(tmp_path))
    assert result.returncode == 1
    assert "code: chain_broken" in result.stderr
    assert "sha256:00" in result.stderr


def test_migrate_and_openapi_print_json(tmp_path: Path) -> None:
    initialised(tmp_path)
    state = as_json("migrate", "--data", str(tmp_path))
    assert state["from"] == state["to"]
    document = json.loads(command("openapi").stdout)
    assert f"{API_PREFIX}/me" in document["paths"]


@pytest.mark.parametrize(
    "path",
    [
        [],
        ["init"],
        ["run"],
        ["migrate"],
        ["check"],
        ["openapi"],
        ["user", "add"],
        ["user", "list"],
        ["user", "role"],
        ["user", "disable"],
        ["user", "enable"],
        ["token", "issue"],
        ["token", "list"],
        ["token", "revoke"],
    ],
    ids=" ".join,
)
def test_every_command_explains_itself(path: list[str]) -> None:
    result = command(*path, "--help")
    assert result.returncode == 0
    assert "Usage: " in result.stdout
    assert "Traceback" not in result.stderr
