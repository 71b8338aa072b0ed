"""What an answer promises when others write, the disk fills up, or the process is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import event

from client.store.unit_of_work import Store
from shared_schema import tool_contract
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.sync_status import SyncStatus
from shared_schema.tool_contract import Load, StoreAnswer
from tests.client.local_world import OWN, PROJECT, LocalWorld

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 30


@pytest.mark.requirement("store.concurrent")
def test_of_two_agents_that_edit_the_same_text_at_once_the_second_is_told_that_it_changed(
    world: LocalWorld,
) -> None:
    barrier = threading.Barrier(2)
    answers: list[StoreAnswer] = []
    errors: list[InterleafError] = []

    def edit(word: str) -> None:
        barrier.wait(DEADLINE_SECONDS)
        try:
            answers.append(world.update("mem_own", "beta", word, expected_hash=OWN.content_hash))
        except InterleafError as error:
            errors.append(error)

    threads = [threading.Thread(target=edit, args=(word,)) for word in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)

    assert len(answers) == len(errors) == 1
    assert errors[0].code is ErrorCode.MEMORY_CONTENT_CHANGED
    assert errors[0].details["current_hash"] == answers[0].content_hash
    assert len(world.outbox()) == 1


@pytest.mark.requirement("store.concurrent", "domain.projection.incremental")
def test_readers_and_writers_at_once_all_end_at_the_same_memory(world: LocalWorld) -> None:
    stop = threading.Event()
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for i in range(10):
                created = world.create(f"{name}/{i}.md")
                assert created.resource_id in world.shown().by_id
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    def read() -> None:
        try:
            seen = 0
            while not stop.is_set():
                size = len(world.shown().resources)
                assert size >= seen
                seen = size
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(name,)) for name in ("a", "b", "c")]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join(DEADLINE_SECONDS)
    stop.set()
    reader.join(DEADLINE_SECONDS)

    assert failures == []
    assert len(world.shown().resources) == 32
    assert world.shown() == world.projected_anew()


def _limit_pages(store: Store, pages: int) -> None:
    """Let the writer's connection, which is kept, refuse what needs more."""
    with store.write() as uow:
        uow.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


@pytest.mark.requirement("store.storage_full")
def test_a_full_disk_refuses_the_store_keeps_every_row_and_reads_go_on(world: LocalWorld) -> None:
    kept = world.create("kept.md")
    with world.store.read() as uow:
        pages = uow.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    _limit_pages(world.store, pages)
    before = world.dump()

    with pytest.raises(InterleafError) as refused:
        world.create("large.md", "# Large\n" + "x" * 200_000)

    assert refused.value.code is ErrorCode.STORAGE_FULL
    assert "xxx" not in str(refused.value.__cause__)
    assert world.dump() == before
    assert world.load(PROJECT, Load(ids=[kept.resource_id])).resources[0].content == "# New\n\ntext\n"
    _limit_pages(world.store, pages + 1_000)
    assert world.create("large.md", "# Large\n" + "x" * 200_000).queued is True
    assert world.shown() == world.projected_anew()


CHILD = """
import os, signal, sys
from pathlib import Path
from client.clock import system_clock
from client.services.project_memory import ProjectMemory
from client.services.store_draft_operation import StoreDraftOperation
from client.store.unit_of_work import Store
from shared_schema import tool_contract
from shared_schema.ids import new_id

store = Store(Path(sys.argv[1]))
save = StoreDraftOperation(store, ProjectMemory(store), system_clock, new_id, lambda _: None)
request = tool_contract.Store(create=tool_contract.Create(path="a.md", body="# A"))
answer = save("prj_1", request, "lop_child")
sys.stdout.write(answer.model_dump_json())
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.requirement("sync.durable_before_answer")
def test_a_process_killed_right_after_the_answer_has_lost_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    LocalWorld(home).close()

    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(home / "interleaf.db")],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    answer = StoreAnswer.model_validate_json(child.stdout)
    store = Store(home / "interleaf.db")
    with store.read() as uow:
        draft = uow.drafts.get(answer.draft_id)
        row = uow.outbox.get(answer.local_operation_id)
    store.close()
    assert draft is not None
    assert [operation.operation_id for operation in draft.operations] == ["lop_child"]
    assert draft.state().body == "# A"
    assert row is not None
    assert row.sync_status is SyncStatus.QUEUED


KILLED_MID_WAY = CHILD.replace(
    'answer = save("prj_1", request, "lop_child")',
    """from sqlalchemy import event
event.listen(store._write_engine, "commit", lambda _: os.kill(os.getpid(), signal.SIGKILL))
answer = save("prj_1", request, "lop_child")""",
)


@pytest.mark.requirement("sync.durable_before_answer")
def test_a_process_killed_before_the_commit_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    LocalWorld(home).close()

    child = subprocess.run(
        [sys.executable, "-c", KILLED_MID_WAY, str(home / "interleaf.db")],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (child.returncode, child.stdout) == (-signal.SIGKILL, b"")
    store = Store(home / "interleaf.db")
    with store.read() as uow:
        assert uow.drafts.list() == ()
        assert uow.drafts.operation("lop_child") is None
        assert uow.outbox.entries(all_rows=True) == ()
        project = uow.projects.get(PROJECT)
    store.close()
    assert project is not None
    assert project.projection_version == 1


def test_an_error_after_the_write_began_wakes_nobody(world: LocalWorld) -> None:
    event.listen(world.store._write_engine, "commit", _fail)
    request = tool_contract.Store(create=tool_contract.Create(path="a.md", body="# A"))
    before = world.shown()

    with pytest.raises(RuntimeError, match="no commit"):
        world.save(PROJECT, request)

    event.remove(world.store._write_engine, "commit", _fail)
    assert (world.woken, world.outbox(), world.shown()) == ([], [], before)
    assert world.save(PROJECT, request).queued is True
    assert world.shown() == world.projected_anew()


def _fail(_connection: object) -> None:
    raise RuntimeError("no commit")
