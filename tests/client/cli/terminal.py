"""Somebody at the command line, with the real server behind it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from client.cli.app import execute
from tests.client.sync_world import Network


@dataclass
class Terminal:
    """Somebody at the command line; only the daemon's two answers are given by hand."""

    capsys: pytest.CaptureFixture[str]
    network: Network
    woken: list[str]

    def json(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        self.capsys.readouterr()
        assert execute([*arguments, "--json"]) == status
        out, err = self.capsys.readouterr()
        assert err == ""
        answer: dict[str, Any] = json.loads(out)
        return answer

    def error(self, *arguments: str) -> dict[str, Any]:
        error: dict[str, Any] = self.json(*arguments, status=1)["error"]
        return error

    def text(self, *arguments: str, status: int = 0) -> str:
        self.capsys.readouterr()
        assert execute(arguments) == status
        out, err = self.capsys.readouterr()
        return out if status == 0 else err
