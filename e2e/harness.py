"""Real programs for the demo and the end-to-end tests: a server, machines with daemons, agents.

Nothing here imports the packages under test: everything goes through the installed commands, the
HTTP API and the MCP SDK's client.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters

BIN = Path(sys.executable).parent
INTERLEAF = str(BIN / "interleaf")
INTERLEAF_SERVER = str(BIN / "interleaf-server")

T = TypeVar("T")

START_SECONDS = 60.0
SYNC_SECONDS = 60.0


class CommandError(Exception):
    """A command ended with another status than 0."""

    def __init__(self, command: list[str], result: subprocess.CompletedProcess[str]) -> None:
        self.result = result
        shown = " ".join(Path(part).name if part.startswith("/") else part for part in command)
        super().__init__(f"{shown}: exit {result.returncode}\n{result.stdout}{result.stderr}")

    @property
    def error(self) -> dict[str, Any]:
        """The error object of a ``--json`` command."""
        found = json.loads(self.result.stdout)["error"]
        assert isinstance(found, dict)
        return found


def run(command: list[str], env: dict[str, str], *, stdin: str | None = None, cwd: Path | None = None) -> str:
    """Run a command to its end and return its stdout."""
    result = subprocess.run(
        command,
        env=env,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=180,
        check=False,
    )
    if result.returncode != 0:
        raise CommandError(command, result)
    return result.stdout


def base_environment() -> dict[str, str]:
    """Return this environment without any setting of Interleaf."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INTERLEAF_")}


def free_port() -> int:
    """Return a TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_until(condition: Callable[[], T | None], what: str, seconds: float = SYNC_SECONDS) -> T:
    """Poll ``condition`` until it is truthy; a bounded wait that names what it waited for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.1)
    raise TimeoutError(f"waited {seconds:.0f} s for: {what}")


@dataclass
class OrgServer:
    """One Organization server on SQLite, or on the database of ``database_url``."""

    data: Path
    port: int = field(default_factory=free_port)
    database_url: str | None = None
    process: subprocess.Popen[str] | None = None
    owner_token: str = ""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def _where(self) -> list[str]:
        return ["--database-url", self.database_url] if self.database_url else ["--data", str(self.data)]

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run one administrative command with ``--json``."""
        command = [INTERLEAF_SERVER, *arguments, *self._where(), "--json"]
        answer: dict[str, Any] = json.loads(run(command, base_environment()))
        return answer

    def init(self, org: str, owner: str) -> str:
        """Create the Organization and return the owner's token."""
        self.owner_token = self.command("init", "--org", org, "--owner", owner)["token"]
        return self.owner_token

    def add_user(self, email: str, role: str = "member") -> str:
        """Create a user and return a token."""
        self.command("user", "add", "--email", email, "--role", role)
        token: str = self.command("token", "issue", "--user", email)["token"]
        return token

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = (self.data / "server.log").open("a", encoding="utf-8")
        self.process = subprocess.Popen(
            [INTERLEAF_SERVER, "run", *self._where(), "--port", str(self.port)],
            env=base_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )
        log.close()
        wait_until(self._answers, f"the server on port {self.port}", START_SECONDS)

    def _answers(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError((self.data / "server.log").read_text(encoding="utf-8")[-2000:])
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self, signal_number: int = signal.SIGTERM) -> None:
        """Stop it and wait for its end."""
        if self.process is not None:
            self.process.send_signal(signal_number)
            self.process.wait(timeout=20)
            self.process = None


class ToolError(Exception):
    """The tool answered with ``isError``."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.code: str = error["code"]
        self.details: Any = error["details"]
        super().__init__(f"{self.code}: {error['message']}")


class Agent:
    """A coding agent: the SDK's client on a real ``interleaf mcp serve``."""

    def __init__(
        self, environment: dict[str, str], directory: Path, mode: str = "auto", command: str = INTERLEAF
    ) -> None:
        self._stack = ExitStack()
        portal = self._stack.enter_context(start_blocking_portal())
        parameters = StdioServerParameters(
            command=command, args=["mcp", "serve"], env=environment, cwd=directory
        )
        client = Client(parameters, mode=mode, read_timeout_seconds=120)
        self.client = self._stack.enter_context(portal.wrap_async_context_manager(client))
        self._portal = portal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tools(self) -> list[Any]:
        """Return the listed tools."""
        return list(self._portal.call(self.client.list_tools).tools)

    def raw(self, arguments: dict[str, Any], tool: str = "memory") -> Any:
        """Call the tool and return the SDK's result, error or not."""
        return self._portal.call(self.client.call_tool, tool, arguments)

    def call(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call the tool and return the domain object; both fields of the result must agree."""
        result = self.raw({"op": {operation: arguments}})
        structured: dict[str, Any] = result.structured_content
        assert json.loads(result.content[0].text) == structured
        if result.is_error:
            raise ToolError(structured["error"])
        return structured

    def activate(self, query: str, state: str | None = None) -> dict[str, Any]:
        """Activate; with ``state`` the fragments come as a delta."""
        return self.call("activate", {"query": query, **({"state": state} if state else {})})

    def load(self, *ids: str, known: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """Load complete resources."""
        arguments: dict[str, Any] = {"ids": list(ids), **({"knownHashes": known} if known else {})}
        resources: list[dict[str, Any]] = self.call("load", arguments)["resources"]
        return resources

    def store(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Store one operation."""
        return self.call("store", {operation: arguments})

    def replace(self, resource: str, old: str, new: str) -> dict[str, Any]:
        """Load a resource and replace one passage of it."""
        loaded = self.load(resource)[0]
        return self.store(
            "update",
            id=loaded["resource_id"],
            expected_hash=loaded["content_hash"],
            replacements=[{"old_text": old, "new_text": new}],
        )


@dataclass
class Machine:
    """One member's machine: a home of its own, a checkout, a daemon."""

    root: Path
    models: Path | None = None
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home = self.root / "home"
        self.checkout = self.root / "checkout"
        self.checkout.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every program on this machine."""
        found = base_environment() | {"INTERLEAF_HOME": str(self.home), "NO_COLOR": "1"} | self.extra
        if self.models is not None:
            found["INTERLEAF_MODELS_DIR"] = str(self.models)
        return found

    def text(self, *arguments: str, stdin: str | None = None) -> str:
        """Run ``interleaf`` in the checkout and return what a person reads."""
        return run([INTERLEAF, *arguments], self.environment, stdin=stdin, cwd=self.checkout)

    def command(self, *arguments: str, stdin: str | None = None) -> dict[str, Any]:
        """Run ``interleaf … --json`` in the checkout."""
        answer: dict[str, Any] = json.loads(self.text(*arguments, "--json", stdin=stdin))
        return answer

    def start(self, server: OrgServer, token: str) -> None:
        """Start the daemon and sign in."""
        self.command("daemon", "start")
        self.command("login", "--server", server.url, "--token-stdin", stdin=token + "\n")

    def stop(self) -> None:
        """Stop the daemon."""
        self.command("daemon", "stop")

    def pid(self) -> int:
        """Return the daemon's process id."""
        found: int = self.command("daemon", "status")["pid"]
        return found

    def sync(self) -> dict[str, Any]:
        """Push and pull everything; an incomplete sync is an answer, not an error."""
        try:
            return self.command("sync", "--wait")
        except CommandError as failed:
            answer: dict[str, Any] = json.loads(failed.result.stdout)
            return answer

    def agent(self, mode: str = "auto", directory: Path | None = None) -> Agent:
        """Start an agent in the checkout."""
        return Agent(self.environment, directory or self.checkout, mode)

    def document(self, name: str, text: str) -> str:
        """Write a file beside the checkout and return its path."""
        file = self.root / name
        file.write_bytes(text.encode("utf-8"))
        return str(file)

    def prepare_models(self, seconds: float = 900) -> None:
        """Wait until the models are prepared."""
        self.command("models", "prepare")
        wait_until(lambda: self.command("models", "status")["ready"], "the models", seconds)

    def drafts(self, *options: str) -> list[dict[str, Any]]:
        """List the Drafts."""
        drafts: list[dict[str, Any]] = self.command("draft", "list", *options)["drafts"]
        return drafts


@dataclass
class Team:
    """A server, its owner's machine, a Project, and the machines of other members."""

    root: Path
    models: Path | None = None
    org: str = "Acme"
    project: str = "Rocket"
    machines: dict[str, Machine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "server").mkdir(parents=True)
        self.server = OrgServer(self.root / "server")
        self.server.init(self.org, "olga@example.com")
        self.server.start()
        self.owner = self.join("olga", self.server.owner_token)
        self.project_id: str = self.owner.command("project", "create", self.project)["id"]
        self.owner.command("project", "bind", self.project)

    def join(self, name: str, token: str) -> Machine:
        """Give a member a machine with a running, signed-in daemon."""
        machine = Machine(self.root / name, self.models)
        self.machines[name] = machine
        machine.start(self.server, token)
        return machine

    def member(self, name: str, role: str = "member") -> Machine:
        """Add a user to the Organization and the Project, with a bound machine."""
        token = self.server.add_user(f"{name}@example.com")
        self.owner.command("members", "add", self.project, f"{name}@example.com", "--role", role)
        machine = self.join(name, token)
        machine.command("project", "bind", self.project)
        machine.sync()
        return machine

    def publish(self, machine: Machine, *drafts: str, reviewer: Machine | None = None) -> str:
        """Submit Drafts, merge the Review as ``reviewer`` (the owner) and return its id."""
        machine.sync()
        review: str = machine.command("draft", "submit", *drafts)["review_id"]
        (reviewer or self.owner).command("review", "merge", review)
        return review

    def close(self) -> None:
        """End every process."""
        for machine in self.machines.values():
            try:
                machine.stop()
            except (CommandError, subprocess.TimeoutExpired) as error:
                print(f"stopping a daemon failed: {error}", file=sys.stderr)
        self.server.stop()


@contextmanager
def team(root: Path, models: Path | None = None) -> Iterator[Team]:
    """Run a team and take it down, whatever happens."""
    made = Team(root, models)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(root, ignore_errors=True)
