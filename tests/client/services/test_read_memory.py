from __future__ import annotations

import pytest

from client.services.read_memory import ReadMemory
from client.services.read_runs import ReadRuns
from client.store.activations import RunRow
from shared_schema.daemon_contract import RunCall, RunListCall
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.local_world import COMMIT, OWN, PROJECT, LocalWorld


def test_memory_is_listed_by_path_with_its_drafts_and_its_hash(world: LocalWorld) -> None:
    created = world.create("a.md", "# A\n")

    listed = ReadMemory(world.store, world.memory).list("Alpha")

    assert [item.path for item in listed.resources] == ["a.md", "own.md", "ref.md"]
    assert [item.draft_id for item in listed.resources] == [created.draft_id, None, None]
    assert (listed.project_id, listed.commit_id, listed.hash) == (PROJECT, COMMIT, world.shown().hash)


def test_one_resource_is_shown_by_id_or_path_and_near_paths_are_suggested(world: LocalWorld) -> None:
    reading = ReadMemory(world.store, world.memory)
    assert reading.show(PROJECT, "own.md") == reading.show("Alpha", "mem_own")
    assert reading.show(PROJECT, "own.md").content == OWN.body
    with pytest.raises(InterleafError) as refused:
        reading.show(PROJECT, "owm.md")
    assert refused.value.details["suggestions"] == {"owm.md": ["own.md"]}


def test_runs_are_listed_newest_first_and_shown_with_their_trace(world: LocalWorld) -> None:
    with world.store.write() as uow:
        for number in range(3):
            uow.runs.add(
                RunRow(
                    f"run_{number}", PROJECT, number, "how", "rev", 2, 1.5, False, {"candidates": [number]}
                )
            )
    runs = ReadRuns(world.store)

    assert [run.run_id for run in runs.list(RunListCall(project="Alpha", limit=2)).runs] == ["run_2", "run_1"]
    detail = runs.show(RunCall(run_id="run_1"))
    assert (detail.run.query, detail.trace) == ("how", {"candidates": [1]})
    with pytest.raises(InterleafError) as refused:
        runs.show(RunCall(run_id="run_none"))
    assert refused.value.code is ErrorCode.RUN_NOT_FOUND
