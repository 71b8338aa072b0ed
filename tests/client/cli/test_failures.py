"""How errors are told: words on stderr, an object on stdout, never a traceback."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Never

import pytest

from client.cli import app
from client.cli.app import execute, guarded
from shared_schema.daemon_contract import LoginCall, SyncCall
from shared_schema.errors import ErrorCode, InterleafError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERLEAF_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def raising(error: BaseException) -> Callable[[], Never]:
    def command() -> Never:
        raise error

    return command


@pytest.mark.requirement("cli.errors")
def test_an_error_is_told_with_its_code_and_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    error = InterleafError(ErrorCode.DRAFT_NOT_FOUND, "There is no Draft drf_1.")
    assert guarded(raising(error), as_json=False) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: There is no Draft drf_1.\n"
        "code:  draft_not_found\n"
        "next:  List the Drafts with: interleaf draft list\n"
    )


@pytest.mark.requirement("cli.errors")
def test_with_json_the_error_is_the_only_output(capsys: pytest.CaptureFixture[str]) -> None:
    error = InterleafError(ErrorCode.NOT_FOUND, "No such \u202ething.", details={"project": "Rocket"})
    assert guarded(raising(error), as_json=True) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "error": {"code": "not_found", "message": "No such \u202ething.", "details": {"project": "Rocket"}}
    }
    assert "\u202e" not in out


@pytest.mark.requirement("cli.errors", "cli.visible")
def test_texts_of_others_in_errors_cannot_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    details = {"missing": ["a\x1b[2J"], "suggestions": {"a\x1b[2J": ["b\u202e"]}, "request_id": "x\x07"}
    error = InterleafError(ErrorCode.MEMORY_RESOURCE_NOT_FOUND, "Not there: \x1b[31m", details=details)
    guarded(raising(error), as_json=False)
    err = capsys.readouterr().err
    assert "missing: a<U+001B>[2J" in err
    assert "(perhaps b<U+202E>)" in err
    assert not {"\x1b", "\u202e", "\x07"} & set(err)


@pytest.mark.requirement("cli.errors")
def test_every_wrong_field_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: LoginCall(server_url=1, token=""), as_json=False) == 1  # type: ignore[arg-type]  # wrong on purpose
    err = capsys.readouterr().err
    assert "server_url: must be a string" in err
    assert "token: must have at least 1 character" in err
    assert "code:  invalid_arguments" in err


@pytest.mark.requirement("cli.errors")
def test_an_unforeseen_error_shows_neither_traceback_nor_its_own_text(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(raising(RuntimeError("the secret body")), as_json=False) == 1
    err = capsys.readouterr().err
    assert "internal_error" in err
    assert "RuntimeError" in err
    assert "Traceback" not in err
    log = home / "logs" / "cli.log"
    assert str(log) in err
    entry = json.loads(log.read_text(encoding="utf-8"))
    assert entry["id"] in err
    assert "secret" not in log.read_text(encoding="utf-8") + err
    assert any("test_failures" in frame for frame in entry["frames"])
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.requirement("cli.errors")
def test_an_unforeseen_error_is_told_where_no_log_can_be_written(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.write_text("no directory", encoding="utf-8")
    assert guarded(raising(RuntimeError("x")), as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "internal_error"


@pytest.mark.requirement("cli.exit")
@pytest.mark.parametrize(
    ("raised", "status"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 1), (SystemExit(3), 3)]
)
def test_endings_from_outside_have_their_own_status(
    raised: BaseException, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(raising(raised), as_json=False) == status
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.requirement("cli.exit")
def test_ctrl_c_inside_a_command_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("client.cli.sync_commands.ask", lambda *_a, **_k: raising(KeyboardInterrupt())())
    assert execute(["sync", "--wait"]) == 130
    assert capsys.readouterr().err.strip() == ""


@pytest.mark.requirement("cli.exit")
@pytest.mark.parametrize(
    "arguments",
    [
        ["draft", "create"],
        ["draft", "creat"],
        ["bogus"],
        ["members", "role", "Rocket", "a@example.com", "emperor"],
        ["sync", "--timeout", "601"],
        ["mcp", "config", "--project-root", "no-such-directory"],
        ["project", "bind", "Rocket", "--directory", "no-such-directory"],
        ["draft", "edit", "a.md", "--delete", "--path", "b.md", "--project", "Rocket"],
    ],
)
def test_a_command_that_is_not_understood_ends_with_2_and_says_how_it_goes(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: interleaf" in err
    assert "--help" in err
    assert execute([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "invalid_arguments"


@pytest.mark.requirement("cli.errors")
@pytest.mark.parametrize(
    "arguments",
    [
        ["daemon", "status"],
        ["draft", "list"],
        ["draft", "create", "--path", "a.md", "--body-file", "a.md"],
        ["memory", "list", "--project", "Rocket"],
        ["review", "list"],
        ["project", "create", "Rocket"],
        ["selection", "list"],
        ["sync"],
        ["models", "prepare"],
        ["guidelines", "path"],
    ],
)
def test_without_a_daemon_every_command_says_how_to_start_it(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*arguments, "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "daemon_unavailable"
    assert "interleaf daemon start" in error["message"]


@pytest.mark.requirement("cli.exit")
def test_stopping_no_daemon_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["daemon", "stop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stopped": False}


def test_an_incomplete_sync_that_was_waited_for_ends_with_1_and_says_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from shared_schema.daemon_contract import SyncResult

    def left(_method: str, call: SyncCall, _answer: object, **_options: object) -> SyncResult:
        return SyncResult(pending=2, failed=1, error="the server is away")

    monkeypatch.setattr("client.cli.sync_commands.ask", left)
    assert execute(["sync", "--wait", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["pending"] == 2
    assert execute(["sync", "--wait"]) == 1
    out = capsys.readouterr().out
    assert "2 operations not sent yet." in out
    assert "the server is away" in out
    assert execute(["sync"]) == 0


def test_a_noun_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["draft"]) == 2
    assert "submit" in capsys.readouterr().err


def test_the_tree_is_named_as_people_type_it() -> None:
    assert app.build_app().info.name == "interleaf"
