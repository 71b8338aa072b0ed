from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from client.credentials import FileCredentials
from client.sync.org_client import OrgClient
from shared_schema.daemon_contract import Account, Binding
from shared_schema.org_contract import Me
from tests.client.cli.terminal import Terminal
from tests.client.sync_world import URL, Network
from tests.org_server.harness import Caller, Server


@pytest.fixture
def terminal_of(
    org: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Terminal]]:
    monkeypatch.setenv("INTERLEAF_HOME", str(tmp_path / "home"))
    network = Network(httpx.WSGITransport(org.app))
    monkeypatch.setattr("client.sync.org_client.OrgClient", partial(OrgClient, transport=network))
    woken: list[str] = []

    def make(caller: Caller, bound: str = "") -> Terminal:
        FileCredentials(tmp_path / "home" / "credentials.json").put(URL, caller.token)
        account = Account(server_url=URL, me=Me.model_validate_json(caller.get("/me").data))
        binding = Binding(directory=str(tmp_path), project_id=bound)
        monkeypatch.setattr("client.cli.organization.ask", lambda *_call: account)
        monkeypatch.setattr("client.cli.organization.binding", lambda: binding)
        for module in ("projects", "members", "selection", "reviews", "guidelines"):
            name = f"client.cli.{module}_commands"
            __import__(name)
            monkeypatch.setattr(sys.modules[name], "wake", lambda: woken.append("sync"))
        return Terminal(capsys, network, woken)

    # The server in this process would log to the standard output that is looked at here.
    with capture_logs():
        yield make


@pytest.fixture
def ada(org: Server, terminal_of: Callable[..., Terminal]) -> Terminal:
    """The owner, in a directory that is bound to no Project that exists."""
    return terminal_of(org.ada)
