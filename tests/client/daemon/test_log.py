from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from client.daemon.log import LOG_FILES, configure_log, describe

SECRET = "the body of a memory"


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    root = logging.getLogger()
    level, file = root.level, tmp_path / "logs" / "daemon.log"
    former = os.umask(0)
    handler = configure_log(file, max_bytes=2_000)
    try:
        yield file
    finally:
        os.umask(former)
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()
        structlog.reset_defaults()


def entries(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def fail() -> None:
    try:
        {}[SECRET]
    except KeyError as error:
        raise ValueError(SECRET) from error


@pytest.mark.requirement("daemon.log.private")
def test_an_exception_is_logged_by_type_and_place_without_its_text(log_file: Path) -> None:
    try:
        fail()
    except ValueError:
        structlog.get_logger("x").exception("failed", id="evt_1")
        logging.getLogger("third.party").exception("it failed")
    ours, theirs = entries(log_file)
    for entry in (ours, theirs):
        assert entry["exception"] == "ValueError"
        assert entry["level"] == "error"
        assert "fail" in str(entry["frames"])
        cause = entry["cause"]
        assert isinstance(cause, dict)
        assert cause["exception"] == "KeyError"
    assert (ours["event"], ours["id"]) == ("failed", "evt_1")
    assert SECRET not in log_file.read_text()


@pytest.mark.requirement("daemon.log.bounded")
def test_the_log_is_rotated_and_every_file_is_this_users_alone(log_file: Path) -> None:
    for number in range(200):
        structlog.get_logger("x").info("line", number=number, filler="f" * 100)
    files = sorted(log_file.parent.iterdir())
    assert len(files) == LOG_FILES + 1
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert all(file.stat().st_size <= 2_000 for file in files)
    assert log_file.parent.stat().st_mode & 0o777 == 0o700


def test_libraries_that_name_urls_are_quiet(log_file: Path) -> None:
    logging.getLogger("httpx").info("HTTP Request: GET https://example.com/secret")
    structlog.get_logger("x").debug("too small")
    structlog.get_logger("x").info("there")
    assert [entry["event"] for entry in entries(log_file)] == ["there"]


def test_a_log_that_cannot_be_written_stops_nobody(log_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log_file.mkdir()
    structlog.get_logger("x").info("lost")
    assert capfd.readouterr().err == ""


def test_an_error_without_a_cause_has_none() -> None:
    assert describe(ValueError(SECRET)) == {"exception": "ValueError", "frames": []}
