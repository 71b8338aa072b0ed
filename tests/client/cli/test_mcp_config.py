"""What an agent host is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from client.cli.app import execute


@pytest.mark.requirement("cli.mcp-config")
def test_the_configuration_has_absolute_paths_that_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tmp_path / "real project"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.chdir(tmp_path)
    for option in ([], ["--json"]):
        assert execute(["mcp", "config", "--project-root", "link", *option]) == 0
        entry = json.loads(capsys.readouterr().out)["mcpServers"]["interleaf"]
        assert Path(entry["command"]).is_absolute()
        assert Path(entry["command"]).is_file()
        assert entry["args"][-4:] == ["mcp", "serve", "--project-root", str(real)]


@pytest.mark.requirement("cli.mcp-config")
def test_a_directory_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["mcp", "config", "--project-root", "/no/such/directory"]) == 2
    assert "does not exist" in capsys.readouterr().err
