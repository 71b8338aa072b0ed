"""What people ask the whole daemon, over the real socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from client.config import Settings
from client.daemon.connection import DaemonConnection
from client.wiring import signing_key
from shared_schema.daemon_contract import (
    Account,
    BindCall,
    Binding,
    Bindings,
    Count,
    DaemonStatus,
    DraftList,
    DraftListCall,
    Empty,
    IndexStatus,
    MemoryList,
    ModelStatus,
    Outbox,
    OutboxListCall,
    ProjectCall,
    RunList,
    RunListCall,
    SyncCall,
    SyncResult,
    UnbindCall,
    runtime_marker,
)
from shared_schema.directories import read_guides
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.tool_contract import Create, Store
from tests.client.daemon.real_daemon import WAIT_SECONDS, ReadyModels, install, running, settings
from tests.client.local_world import PROJECT


@pytest.mark.requirement("daemon.status")
def test_the_status_tells_about_account_models_and_every_project(tmp_path: Path) -> None:
    made = settings(tmp_path)
    with running(made, ReadyModels()) as daemon, DaemonConnection(made.places, timeout=WAIT_SECONDS) as ask:
        install(daemon)
        daemon.services.store(PROJECT, _create())
        status = ask.call("daemon_status", Empty(), DaemonStatus)
        assert (status.account, status.signed_out, status.bindings) == (None, False, 0)
        assert status.marker == runtime_marker()
        assert status.models.ready
        (project,) = status.projects
        assert (project.project_id, project.resources, project.access) == (PROJECT, 3, True)
        assert sum(project.sync_counts.values()) == 1
        assert (project.drafts_behind, project.drafts_conflicting) == (0, 0)


def test_every_question_of_the_command_line_is_answered_over_the_socket(tmp_path: Path) -> None:
    made = settings(tmp_path)
    with running(made, ReadyModels()) as daemon, DaemonConnection(made.places, timeout=WAIT_SECONDS) as ask:
        install(daemon)
        assert ask.call("models_status", Empty(), ModelStatus).ready
        assert ask.call("prepare_models", Empty(), ModelStatus).ready
        assert len(ask.call("list_memory", ProjectCall(project=PROJECT), MemoryList).resources) == 2
        assert ask.call("list_drafts", DraftListCall(), DraftList).drafts == []
        assert ask.call("list_outbox", OutboxListCall(), Outbox).operations == []
        assert ask.call("list_runs", RunListCall(), RunList).runs == []
        assert (
            ask.call("search_index_status", ProjectCall(project=PROJECT), IndexStatus).project_id == PROJECT
        )
        assert ask.call("rebuild_search_index", ProjectCall(project=PROJECT), IndexStatus).lag
        assert ask.call("logout", Empty(), Count).count == 0
        assert ask.call("sync_now", SyncCall(), SyncResult).pending == 0
        with pytest.raises(InterleafError) as failure:
            ask.call("account", Empty(), Account)
        assert failure.value.code is ErrorCode.SIGNED_OUT
        with pytest.raises(InterleafError) as failure:
            ask.call("search_index_status", ProjectCall(project="nothing"), IndexStatus)
        assert failure.value.code is ErrorCode.NOT_FOUND


@pytest.mark.requirement("guidance.path")
def test_binding_a_directory_tells_the_proxy_its_guide(tmp_path: Path) -> None:
    made = settings(tmp_path / "home")
    directory = str((tmp_path / "project").resolve())
    Path(directory).mkdir()
    with running(made, ReadyModels()) as daemon, DaemonConnection(made.places, timeout=WAIT_SECONDS) as ask:
        install(daemon)
        call = BindCall(directory=directory, project=PROJECT)
        bound = ask.call("bind", call, Binding)
        assert read_guides(made.places.guides) == {directory: bound.guide_path}
        assert ask.call("list_bindings", Empty(), Bindings).bindings == [bound]
        assert ask.call("unbind", UnbindCall(directory=directory), Count).count == 1
        assert read_guides(made.places.guides) == {}


def test_the_index_follows_a_write_and_forgets_a_project_that_was_lost(tmp_path: Path) -> None:
    made = settings(tmp_path)
    with running(made, ReadyModels()) as daemon:
        install(daemon)
        daemon.index.run_once()
        assert daemon.services.status.index(PROJECT).resources == 2
        folder = made.places.index / "projects" / PROJECT
        assert folder.is_dir()
        daemon.revoked(PROJECT)
        assert not folder.exists()


def test_the_key_of_activation_states_is_made_once(tmp_path: Path) -> None:
    made = settings(tmp_path)
    with running(made, ReadyModels()) as daemon:
        key = signing_key(daemon.store)
    with running(made, ReadyModels()) as daemon:
        assert signing_key(daemon.store) == key
    assert len(key) == 32


def test_an_unknown_profile_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with (
        pytest.raises(InterleafError, match="multilingual"),
        running(Settings(home=tmp_path, profile="none")),
    ):
        pass
    assert not (tmp_path / "interleaf.db").exists()


def _create() -> Store:
    return Store(create=Create(path="new.md", body="# New\n"))
