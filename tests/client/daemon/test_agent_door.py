"""An agent's calls through the real proxy process to the whole daemon, code by code."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from client.wiring import Daemon
from shared_schema.errors import ErrorCode
from tests.client.daemon.real_daemon import (
    WAIT_SECONDS,
    ReadyModels,
    bind,
    install,
    running,
    settings,
)
from tests.client.local_world import OWN, PROJECT, REFERENCE
from tests.client.mcp_proxy.proxy_process import ProxyProcess, proxy

CREATE = {"store": {"create": {"path": "guides/new.md", "body": "# New\n"}}}


@dataclass
class World:
    home: Path
    project: Path
    daemon: Daemon
    agent: ProxyProcess


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A daemon with one synchronised Project, and an agent's proxy in its directory."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    with running(settings(home), ReadyModels()) as daemon:
        install(daemon)
        bind(daemon, project)
        with proxy(home, cwd=project) as agent:
            agent.initialize()
            yield World(home, project, daemon, agent)


def update(resource: Any = OWN, *edits: tuple[str, str], expected_hash: str | None = None) -> dict[str, Any]:
    replacements = [{"old_text": old, "new_text": new} for old, new in edits]
    change = {
        "id": resource.resource_id,
        "expected_hash": expected_hash or resource.content_hash,
        "replacements": replacements,
    }
    return {"store": {"update": change}}


def error_of(agent: ProxyProcess, op: dict[str, Any]) -> dict[str, Any]:
    result = agent.call(op)
    assert result["isError"], result
    error: dict[str, Any] = result["structuredContent"]["error"]
    return error


@pytest.mark.requirement("agent.load_store")
def test_an_agent_loads_edits_and_sees_its_own_edit(world: World) -> None:
    loaded = world.agent.call({"load": {"ids": [OWN.path]}})["structuredContent"]["resources"][0]
    assert (loaded["content"], loaded["changed"], loaded["provenance"]) == (OWN.body, True, "authority")
    assert "draft" not in loaded
    edited = world.agent.call(update(OWN, ("alpha", "omega")))["structuredContent"]
    assert (edited["queued"], edited["sync_status"]) == (True, "queued")
    again = world.agent.call({"load": {"ids": [OWN.resource_id]}})["structuredContent"]["resources"][0]
    assert again["content"] == OWN.body.replace("alpha", "omega")
    assert again["content_hash"] == edited["content_hash"]
    assert again["provenance"] == "draft"


@pytest.mark.requirement("agent.codes")
@pytest.mark.parametrize(
    ("op", "code"),
    [
        ({"load": {"ids": ["missing.md"]}}, "memory_resource_not_found"),
        ({"load": {"ids": ["a.md"], "limit": 1}}, "invalid_arguments"),
        (update(OWN, ("alpha", "x"), expected_hash="sha256:old"), "memory_content_changed"),
        (update(OWN, ("absent", "x")), "text_replacement_not_found"),
        (update(OWN, ("a", "x")), "text_replacement_ambiguous"),
        (update(OWN, ("alpha beta", "x"), ("beta gamma", "y")), "text_replacement_overlap"),
        (update(OWN, ("alpha", "alpha")), "text_replacement_no_change"),
        ({"store": {"create": {"path": "OWN.md", "body": "# Taken"}}}, "path_occupied"),
        ({"store": {"create": {"path": "../up.md", "body": "# Up"}}}, "invalid_path"),
        ({"store": {"delete": {"id": REFERENCE.resource_id}}}, "org_reference_not_deletable"),
        ({"store": {"discard": {"id": "mem_nothing"}}}, "draft_not_found"),
        ({"store": {"update": {"id": "own.md", "expected_hash": "x", "replacements": [
            {"old_text": "a", "new_text": "b"}]}}}, "memory_resource_not_found"),
        ({"activate": {"query": "q", "state": "not a token"}}, "invalid_activation_state"),
    ],
)  # fmt: skip
def test_a_refusal_has_its_code_and_leaves_no_trace(world: World, op: dict[str, Any], code: str) -> None:
    error = error_of(world.agent, op)
    assert error["code"] == code
    assert error["message"]
    with world.daemon.store.read() as uow:
        assert uow.drafts.list() == ()


@pytest.mark.requirement("agent.codes")
def test_a_directory_that_is_not_bound_is_told_how_to_bind_it(world: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with proxy(world.home, cwd=elsewhere) as agent:
        agent.initialize()
        error = error_of(agent, CREATE)
        assert error["code"] == "project_binding_not_found"
        assert "interleaf project bind" in error["message"]
        bind(world.daemon, elsewhere)
        assert not agent.call(CREATE)["isError"]


@pytest.mark.requirement("proxy.binding.fixed")
def test_a_running_proxy_is_never_retargeted(world: World) -> None:
    assert not world.agent.call({"load": {"ids": [OWN.path]}})["isError"]
    install(world.daemon, "prj_2", [])
    bind(world.daemon, world.project, "prj_2")
    assert world.agent.error_code({"load": {"ids": [OWN.path]}}) == "project_binding_changed"
    assert world.agent.error_code(CREATE) == "project_binding_changed"
    bind(world.daemon, world.project, PROJECT)
    assert not world.agent.call({"load": {"ids": [OWN.path]}})["isError"]


@pytest.mark.requirement("agent.codes")
@pytest.mark.parametrize(
    ("changes", "code"),
    [({"access": False}, "project_access_lost"), ({"snapshot_at": None}, "project_not_synced")],
)
def test_a_project_that_cannot_be_read_answers_nothing(
    world: World, changes: dict[str, Any], code: str
) -> None:
    with world.daemon.store.write() as uow:
        row = uow.projects.get(PROJECT)
        assert row is not None
        uow.projects.put(replace(row, **changes))
        uow.touch(PROJECT)
    for op in ({"load": {"ids": [OWN.path]}}, CREATE, {"activate": {"query": "alpha"}}):
        assert world.agent.error_code(op) == code


@pytest.mark.requirement("agent.codes")
def test_a_full_disk_changes_nothing_and_reads_go_on(world: World) -> None:
    assert not world.agent.call({"load": {"ids": [OWN.path]}})["isError"]
    with world.daemon.store.write() as uow:
        uow.connection.exec_driver_sql("PRAGMA max_page_count = 1")
    big = {"store": {"create": {"path": "big.md", "body": "# Big\n" + "x" * 500_000}}}
    assert world.agent.error_code(big) == "storage_full"
    assert not world.agent.call({"load": {"ids": [OWN.path]}})["isError"]


@pytest.mark.requirement("daemon.errors.internal")
def test_a_defect_is_an_id_in_the_answer_and_never_its_text(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_project_id: str) -> None:
        raise ZeroDivisionError(OWN.body)

    monkeypatch.setattr(world.daemon.memory, "get", broken)
    error = error_of(world.agent, {"load": {"ids": [OWN.path]}})
    assert error["code"] == "internal_error"
    assert error["details"]["id"] in error["message"]
    assert "alpha" not in str(error)


@pytest.mark.requirement("proxy.marker")
def test_a_daemon_of_another_build_is_refused_with_both_identities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import client.wiring

    other = client.wiring.runtime_marker().model_copy(update={"release": "9.9.9"})
    monkeypatch.setattr(client.wiring, "runtime_marker", lambda: other)
    with running(settings(tmp_path), ReadyModels()) as daemon:
        install(daemon)
        bind(daemon, tmp_path)
        with proxy(tmp_path, cwd=tmp_path) as agent:
            agent.initialize()
            error = error_of(agent, CREATE)
        with daemon.store.read() as uow:
            assert uow.drafts.list() == ()
    assert error["code"] == "agent_runtime_mismatch"
    assert error["details"]["daemon"] == other.model_dump()
    assert error["details"]["proxy"]["release"] != "9.9.9"


@pytest.mark.requirement("agent.codes")
def test_models_that_cannot_be_prepared_are_named_and_loading_works(tmp_path: Path) -> None:
    with running(settings(tmp_path)) as daemon:
        install(daemon)
        bind(daemon, tmp_path)
        with proxy(tmp_path, cwd=tmp_path) as agent:
            agent.initialize()
            error = error_of(agent, {"activate": {"query": "alpha"}})
            assert error["code"] in {"search_model_preparing", "search_model_unavailable"}
            assert {"stage", "current_bytes", "total_bytes"} <= error["details"].keys()
            assert not agent.call({"load": {"ids": [OWN.path]}})["isError"]


@pytest.mark.requirement("agent.codes")
def test_a_search_before_the_first_index_says_so(world: World) -> None:
    world.daemon.index.stop(WAIT_SECONDS)
    world.daemon.index.forget(PROJECT)
    error = error_of(world.agent, {"activate": {"query": "alpha"}})
    assert error["code"] == "search_index_preparing"
    assert error["details"].keys() == {"done", "total"}


class StuckModels(ReadyModels):
    """Models that answer when they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def embedder(self) -> Any:
        self.go_on.wait(WAIT_SECONDS)
        return super().embedder()


@pytest.mark.requirement("activate.deadline")
def test_an_activation_that_takes_too_long_is_answered(tmp_path: Path) -> None:
    models = StuckModels()
    with running(settings(tmp_path, activation_deadline_seconds=0.05), models) as daemon:
        install(daemon)
        bind(daemon, tmp_path)
        with proxy(tmp_path, cwd=tmp_path) as agent:
            agent.initialize()
            try:
                assert agent.error_code({"activate": {"query": "alpha"}}) == ErrorCode.ACTIVATION_DEADLINE
                assert not agent.call({"load": {"ids": [OWN.path]}})["isError"]
            finally:
                models.go_on.set()


@pytest.mark.requirement("proxy.recovers")
def test_a_proxy_outlives_the_daemon_and_uses_the_next_one(tmp_path: Path) -> None:
    with proxy(tmp_path, cwd=tmp_path) as agent:
        agent.initialize()
        assert agent.error_code(CREATE) == "daemon_unavailable"
        with running(settings(tmp_path), ReadyModels()) as daemon:
            install(daemon)
            bind(daemon, tmp_path)
            assert not agent.call(CREATE)["isError"]
        assert agent.error_code({"load": {"ids": ["guides/new.md"]}}) == "daemon_unavailable"
        with running(settings(tmp_path), ReadyModels()):
            assert not agent.call({"load": {"ids": ["guides/new.md"]}})["isError"]


@pytest.mark.requirement("agent.concurrent")
def test_many_agents_write_at_once_and_nothing_is_lost(world: World) -> None:
    each, failures = 10, []

    def write(number: int) -> None:
        with proxy(world.home, cwd=world.project) as agent:
            agent.initialize()
            for index in range(each):
                op = {"store": {"create": {"path": f"a{number}/{index}.md", "body": f"# {index}\n"}}}
                result = agent.call(op)
                if result["isError"]:
                    failures.append(result)

    agents = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in agents:
        thread.start()
    for thread in agents:
        thread.join(4 * WAIT_SECONDS)
    assert failures == []
    assert len(world.daemon.memory.get(PROJECT).resources) == 2 + 4 * each
