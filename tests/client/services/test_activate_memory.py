"""Activate on the real store and index, with a deterministic embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from client.domain.activation_state import EXPIRES_AFTER
from client.index.manager import IndexManager
from client.index.searcher import Searcher
from client.index.vector_cache import VectorCache
from client.services.activate_memory import ActivateMemory
from client.services.project_memory import ProjectMemory
from client.services.read_runs import ReadRuns
from client.services.run_log import RunLog
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store
from shared_schema.daemon_contract import RunCall, RunListCall
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import new_id
from shared_schema.memory import PublishedResource, Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.tool_contract import Activate, ActivateAnswer
from tests.fakes.hashing_embedder import HashingEmbedder

QUERY = "where is the kumquat cluster"


class World:
    """One Project with a few documents, and a clock that tests move."""

    def __init__(self, home: Path, *, threaded: bool = False) -> None:
        self.now = 1_000_000_000_000
        self.store = Store(home / "interleaf.db")
        self.memory = ProjectMemory(self.store)
        self.cache = VectorCache(home / "vectors.db", lambda: self.now)
        embedder = HashingEmbedder()
        self.index = IndexManager(home / "index", self.memory.get, lambda: embedder, self.cache)
        self.runs = RunLog(self.store)
        if threaded:
            self.runs.start()
        models: Any = SimpleNamespace(embedder=lambda: embedder)
        searcher = Searcher(self.cache)
        parts = (self.store, self.memory, self.index, searcher, models, lambda: self.now, new_id)
        self.activate = ActivateMemory(*parts, b"k" * 32, self.runs)
        self.publish(
            "prj_1", {"mem_a": "# Kumquat\n\nThe kumquat cluster is in Oslo.\n", "mem_b": "# Tea\n\nHot.\n"}
        )

    def publish(self, project: str, bodies: dict[str, str], *, access: bool = True) -> None:
        with self.store.write() as uow:
            uow.projects.put(
                ProjectRow(
                    project, project, access=access, installed_commit="c", installed_seq=1, snapshot_at=1
                )
            )
            uow.published.replace_all(project, [published(id_, body) for id_, body in bodies.items()])
            uow.touch(project)
        if access:
            self.index.wake(project)
            self.index.run_once()

    def ask(self, state: str | None = None, project: str = "prj_1") -> ActivateAnswer:
        return self.activate(project, Activate(query=QUERY, **({"state": state} if state else {})))

    def close(self) -> None:
        self.runs.stop()
        self.cache.close()
        self.store.close()


def published(resource_id: str, body: str) -> PublishedResource:
    return PublishedResource(
        resource_id=resource_id,
        scope=Scope.PROJECT,
        path=f"{resource_id}-notes.md".replace("mem_", "doc-"),
        description="",
        body=body,
        content_hash=content_hash(body),
    )


@pytest.fixture(params=[False, True], ids=["at once", "behind"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, threaded=request.param)
    yield made
    made.close()


def refused(world: World, state: str, project: str = "prj_1") -> InterleafError:
    with pytest.raises(InterleafError) as error:
        world.ask(state, project)
    assert error.value.code is ErrorCode.INVALID_ACTIVATION_STATE
    return error.value


@pytest.mark.requirement("activate.delta")
def test_the_second_answer_names_what_the_agent_has_and_repeats_nothing(world: World) -> None:
    first = world.ask()
    assert first.fragments[0].action == "add"
    assert first.fragments[0].content is not None
    second = world.ask(first.next_state)
    again = {fragment.unit_key: fragment for fragment in second.fragments}
    for fragment in first.fragments:
        assert again[fragment.unit_key].action == "reuse"
        assert again[fragment.unit_key].content is None
        assert again[fragment.unit_key].content_hash == fragment.content_hash


@pytest.mark.requirement("activate.delta")
def test_changed_text_is_replaced_and_deleted_text_is_removed(world: World) -> None:
    first = world.ask()
    world.publish("prj_1", {"mem_a": "# Kumquat\n\nThe kumquat cluster is in Bergen.\n"})
    second = world.ask(first.next_state)
    assert [fragment.action for fragment in second.fragments] == ["replace"]
    assert "Bergen" in (second.fragments[0].content or "")
    world.publish("prj_1", {"mem_b": "# Tea\n\nHot.\n"})
    third = world.ask(second.next_state)
    assert [unit.unit_key for unit in third.removed] == [second.fragments[0].unit_key]


@pytest.mark.requirement("activate.state.bound")
def test_states_are_of_one_project_and_of_this_installation(world: World, tmp_path: Path) -> None:
    state = world.ask().next_state
    world.publish("prj_2", {"mem_c": "# Kumquat\n\nAnother kumquat cluster.\n"})
    refused(world, state, "prj_2")
    refused(world, state[:-2] + ("aa" if not state.endswith("aa") else "bb"))
    refused(world, "optional-opaque-state")
    other = World(tmp_path / "other-home")
    refused(other, state)
    other.close()


@pytest.mark.requirement("activate.state.expiry")
def test_a_state_expires_after_seven_days_without_use_and_is_then_invalid(world: World) -> None:
    state = world.ask().next_state
    world.now += EXPIRES_AFTER
    kept = world.ask(state)
    world.runs.flush()
    world.now += EXPIRES_AFTER
    world.ask(kept.next_state)
    world.now += EXPIRES_AFTER + 1
    refused(world, state)


@pytest.mark.requirement("activate.state.restart")
def test_a_state_works_after_a_restart(tmp_path: Path) -> None:
    before = World(tmp_path, threaded=True)
    state = before.ask().next_state
    before.close()
    after = World(tmp_path, threaded=True)
    assert {fragment.action for fragment in after.ask(state).fragments} == {"reuse"}
    after.close()


@pytest.mark.requirement("runs.written")
def test_every_activation_leaves_a_record_that_explains_it_and_holds_no_text(world: World) -> None:
    answer = world.ask()
    assert answer.run_id is not None
    runs = ReadRuns(world.store, world.runs.flush)
    assert [run.run_id for run in runs.list(RunListCall()).runs] == [answer.run_id]
    detail = runs.show(RunCall(run_id=answer.run_id))
    assert detail.run.query == QUERY
    assert detail.trace["selected"] == [fragment.unit_key for fragment in answer.fragments]
    assert "Oslo" not in str(detail.trace)


@pytest.mark.requirement("runs.failure")
def test_a_record_that_cannot_be_written_is_told_and_the_state_still_works(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> Any:
        raise InterleafError(ErrorCode.STORAGE_FULL)

    with monkeypatch.context() as broken:
        broken.setattr(world.store, "write", full)
        answer = world.ask()
        world.runs.flush()
        assert world.runs.error is not None
        assert "storage_full" in world.runs.error
        assert {f.action for f in world.ask(answer.next_state).fragments} == {"reuse"}
        world.runs.flush()
    world.ask()
    world.runs.flush()
    assert world.runs.error is None


@pytest.mark.requirement("sync.pull.revocation")
def test_nothing_is_kept_of_a_project_whose_access_was_lost_meanwhile(world: World) -> None:
    state = world.ask().next_state
    world.runs.flush()
    with world.store.write() as uow:
        uow.runs.delete_project("prj_1")
    world.publish("prj_1", {}, access=False)
    world.activate.forget("prj_1")
    with pytest.raises(InterleafError) as lost:
        world.ask(state)
    assert lost.value.code is ErrorCode.PROJECT_ACCESS_LOST
    world.runs.flush()
    assert ReadRuns(world.store).list(RunListCall()).runs == []
