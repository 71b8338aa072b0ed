"""Memory, Drafts, bindings, operations and runs, through the local protocol to the real services."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

import pytest
from structlog.testing import capture_logs

from client.cli.app import execute
from client.daemon.app import create_app
from client.daemon.dispatch import Dispatcher, Handler
from client.daemon.local_server import LocalServer
from client.services.bind_directories import BindDirectories
from client.services.read_memory import ReadMemory
from client.services.read_runs import ReadRuns
from client.store.activations import RunRow
from shared_schema.daemon_contract import METHODS, runtime_marker
from shared_schema.drafts import Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract
from shared_schema.places import Places, find_places
from tests import text_fixtures as texts
from tests.client.cli.test_writing import Stdin
from tests.client.local_world import PROJECT, LocalWorld


def handlers(world: LocalWorld) -> dict[str, Handler]:
    """The services that need neither network nor models; the rest refuses."""

    def absent(_call: Contract) -> Never:
        raise InterleafError(ErrorCode.NOT_FOUND)

    bindings = BindDirectories(world.store, world.clock)
    memory, runs = ReadMemory(world.store, world.memory), ReadRuns(world.store)
    return dict.fromkeys(METHODS, absent) | {
        "resolve_binding": lambda call: bindings.resolve(call.directory),
        "bind": bindings.bind,
        "unbind": bindings.unbind,
        "list_bindings": lambda _call: bindings.list(),
        "list_memory": lambda call: memory.list(call.project),
        "show_memory": lambda call: memory.show(call.project, call.resource),
        "list_drafts": world.drafts.list,
        "show_draft": world.drafts.show,
        "create_draft": world.edit.create,
        "edit_draft": world.edit.edit,
        "discard_draft": world.edit.discard,
        "import_drafts": world.imports,
        "export_memory": world.exports,
        "list_runs": runs.list,
        "show_run": runs.show,
    }


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    made = LocalWorld(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    monkeypatch.setenv("INTERLEAF_HOME", str(tmp_path / "home"))
    (tmp_path / "checkout" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkout" / "deep")
    return find_places()


@pytest.fixture(autouse=True)
def daemon(world: LocalWorld, places: Places) -> Iterator[None]:
    dispatcher = Dispatcher(runtime_marker(), handlers(world), lambda _directory: None)
    server = LocalServer(lambda token: create_app(dispatcher, token=token), places, threads=2)
    thread = threading.Thread(target=server.run, name="local-server")
    # The daemon in this process would log to the standard output that is looked at here.
    with capture_logs():
        thread.start()
        yield
        server.stop()
        thread.join(10)
    assert not thread.is_alive()


Say = Callable[..., Any]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a command for people and returns what they read: stdout, or stderr when it failed."""

    def run(*arguments: str, status: int = 0) -> str:
        capsys.readouterr()
        assert execute(arguments) == status
        out, err = capsys.readouterr()
        return out if status == 0 else err

    return run


@pytest.fixture
def answered(said: Say) -> Say:
    """Runs a command with ``--json`` and returns the object."""

    def run(*arguments: str) -> Any:
        return json.loads(said(*arguments, "--json"))

    return run


@pytest.fixture
def bound(answered: Say) -> None:
    assert answered("project", "bind", "Alpha", "--directory", "..")["project_id"] == PROJECT


@pytest.mark.requirement("cli.project-names")
def test_the_project_is_that_of_the_directory_unless_it_is_named(
    said: Say, answered: Say, tmp_path: Path
) -> None:
    told = said("memory", "list", status=1)
    assert "interleaf project bind PROJECT" in told
    assert "--project" in told
    for name in ("Alpha", PROJECT):
        assert len(answered("memory", "list", "--project", name)["resources"]) == 2
    assert answered("project", "bind", "Alpha", "--directory", "..")["directory"] == str(
        tmp_path / "checkout"
    )
    assert len(answered("memory", "list")["resources"]) == 2
    assert answered("project", "current")["project_id"] == PROJECT
    assert "Alpha" in said("project", "bindings")
    assert answered("project", "unbind") == {"count": 0}
    assert answered("project", "unbind", "--directory", "..") == {"count": 1}


@pytest.mark.requirement("cli.json")
@pytest.mark.usefixtures("bound")
def test_a_draft_is_created_edited_shown_listed_and_discarded(
    said: Say, answered: Say, tmp_path: Path
) -> None:
    body = tmp_path / "body.md"
    body.write_text("# Release\n\nTag it.\n", encoding="utf-8")
    created = answered(
        "draft", "create", "--scope", "project", "--path", "release.md", "--body-file", str(body)
    )
    assert created["draft_id"].startswith("drf_")
    assert created["resource_id"].startswith("mem_")
    body.write_text("# Release\n\nSign it.\n", encoding="utf-8")
    edited = answered("draft", "edit", "release.md", "--body-file", str(body), "--path", "guides/release.md")
    assert edited["draft_id"] == created["draft_id"]
    listed = answered("draft", "list")["drafts"]
    assert [(item["id"], item["path"]) for item in listed] == [(created["draft_id"], "guides/release.md")]
    shown = said("draft", "show", "guides/release.md")
    assert "+Sign it." in shown.splitlines()
    occupied = said("draft", "create", "--path", "own.md", "--body-file", str(body), status=1)
    assert "interleaf draft edit own.md" in occupied
    assert answered("draft", "discard", "guides/release.md")["draft_id"] == created["draft_id"]
    assert answered("draft", "list") == {"drafts": []}
    assert [item["status"] for item in answered("draft", "list", "--all")["drafts"]] == ["discarded"]


@pytest.mark.requirement("cli.json")
@pytest.mark.usefixtures("bound")
def test_editing_an_organization_document_adapts_it_or_proposes_a_change(
    said: Say, answered: Say, tmp_path: Path
) -> None:
    body = tmp_path / "body.md"
    body.write_text("# Reference\n\nours\n", encoding="utf-8")
    proposed = answered("draft", "edit", "ref.md", "--body-file", str(body), "--scope", "org")
    assert (proposed["resource_id"], proposed["adapts"]) == ("mem_ref", None)
    answered("draft", "discard", "ref.md")
    adapted = answered("draft", "edit", "ref.md", "--body-file", str(body))
    assert adapted["adapts"] == "mem_ref"
    assert "adaptation" in said("draft", "list")
    assert answered("draft", "edit", "own.md", "--delete")["resource_id"] == "mem_own"
    assert "deletes the document" in said("draft", "show", "mem_own")


@pytest.mark.requirement("cli.bytes")
@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("name", sorted(texts.BODIES))
def test_a_body_goes_in_and_out_byte_for_byte_and_nothing_hidden_is_shown(
    name: str, said: Say, answered: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = texts.BODIES[name]
    monkeypatch.setattr(sys, "stdin", Stdin(body.encode()))
    said("draft", "create", "--path", "any.md", "--body-file", "-")
    assert said("memory", "show", "any.md", "--raw") == body
    assert answered("memory", "show", "any.md")["content"] == body
    for command in (["memory", "show", "any.md"], ["draft", "show", "any.md"], ["memory", "list"]):
        assert not {"\x1b", "\u202e", "\u200b", "\u2066", "\x07", "\r"} & set(said(*command))


@pytest.mark.requirement("cli.bytes")
@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("name", sorted(texts.PATHS))
def test_a_path_that_was_printed_is_accepted_back(
    name: str, said: Say, answered: Say, tmp_path: Path
) -> None:
    path, body = texts.PATHS[name], tmp_path / "body.md"
    body.write_text("# Text\n", encoding="utf-8")
    answered("draft", "create", f"--path={path}", "--body-file", str(body))
    (printed,) = (item["path"] for item in answered("draft", "list")["drafts"])
    assert printed == path
    assert json.loads(said("memory", "show", "--json", "--", printed))["path"] == path


@pytest.mark.requirement("cli.editor")
@pytest.mark.usefixtures("bound")
def test_a_conflict_is_named_before_the_editor_opens(
    world: LocalWorld, said: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = world.update("mem_own", "beta", "BETA")
    draft = world.draft(update.draft_id)
    world.set_draft(replace(draft, reconciliation=Reconciliation.CONFLICTS))
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.setattr(sys, "stdin", Stdin())
    told = said("draft", "edit", "own.md", status=1)
    assert "conflicts" in told
    assert f"interleaf draft show {update.draft_id}" in told
    assert "Nothing was changed in the editor" in told


@pytest.mark.requirement("cli.json")
@pytest.mark.usefixtures("bound")
def test_runs_are_listed_and_their_trace_is_readable(world: LocalWorld, said: Say, answered: Say) -> None:
    candidate = {"unit_key": "mem_own/own/0/0", "path": "own.md", "fused": 0.5, "reason": "dense\u202e"}
    trace = {"candidates": [candidate], "latencies_ms": {"a": 1.5}}
    with world.store.write() as uow:
        uow.runs.add(RunRow("run_1", PROJECT, 5, "how \x1b[2J long?", "search_1", 2, 12.5, False, trace))
    (item,) = answered("runs", "list")["runs"]
    assert (item["run_id"], item["query"]) == ("run_1", "how \x1b[2J long?")
    assert answered("runs", "show", "run_1")["trace"] == trace
    shown = said("runs", "show", "run_1")
    assert "own.md" in shown
    assert "dense<U+202E>" in shown
    assert "12 ms: a 2, other 11" in shown
    assert "how <U+001B>[2J long?" in shown
    assert "run_not_found" in said("runs", "show", "run_2", status=1)


def test_a_command_of_another_build_is_refused_with_the_remedy(
    said: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = runtime_marker().model_copy(update={"fingerprint": "0" * 16})
    monkeypatch.setattr("client.daemon.connection.runtime_marker", lambda: other)
    told = said("draft", "list", status=1)
    assert "agent_runtime_mismatch" in told
    assert told.count("interleaf daemon restart") == 1
