from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.store.change_log import KEPT, Change, ChangeLog
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "interleaf.db")
    with made.write() as uow:
        uow.projects.put(ProjectRow("prj_1", "Alpha"))
    yield made
    made.close()


def version(store: Store) -> int:
    with store.read() as uow:
        row = uow.projects.get("prj_1")
    assert row is not None
    return row.projection_version


def fail_after_touching(uow: UnitOfWork) -> None:
    uow.meta.set("key", "value")
    uow.touch("prj_1", {"mem_a"})
    raise ValueError("changed my mind")


@pytest.mark.requirement("store.refused.no_trace")
def test_a_transaction_that_raises_leaves_no_trace(store: Store) -> None:
    with pytest.raises(ValueError, match="changed my mind"), store.write() as uow:
        fail_after_touching(uow)

    with store.read() as uow:
        assert uow.meta.get("key") is None
    assert version(store) == 0
    with store.write() as uow:
        assert uow.touch("prj_1", {"mem_b"}) == 1
    assert store.changes.between("prj_1", 0, 1) == {"mem_b"}


def test_a_reader_sees_one_state_while_others_write_and_cannot_write_itself(store: Store) -> None:
    with store.read() as reading:
        assert reading.meta.get("key") is None
        with store.write() as uow:
            uow.meta.set("key", "value")
        assert reading.meta.get("key") is None
        with pytest.raises(RuntimeError):
            reading.touch("prj_1")
    with store.read() as reading:
        assert reading.meta.get("key") == "value"
    with pytest.raises(InterleafError), store.read() as reading:
        reading.meta.set("key", "other")


def test_a_transaction_that_reads_first_may_still_write_after_another_wrote(store: Store) -> None:
    with store.write() as uow:
        uow.meta.get("key")
        uow.meta.set("key", "first")
    with store.write() as uow:
        assert uow.meta.get("key") == "first"
        uow.meta.set("key", "second")
    with store.read() as uow:
        assert uow.meta.get("key") == "second"


def test_putting_a_project_leaves_its_projection_version(store: Store) -> None:
    with store.write() as uow:
        uow.touch("prj_1")
        uow.projects.put(ProjectRow("prj_1", "Beta"))
    assert version(store) == 1


def test_errors_of_the_database_repeat_no_values(store: Store) -> None:
    with pytest.raises(Exception, match="NOT NULL") as failed, store.write() as uow:
        uow.connection.exec_driver_sql("INSERT INTO meta (key) VALUES (?)", ("secret text",))
    assert "secret text" not in str(failed.value)


def test_a_directory_where_nothing_may_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InterleafError) as refused:
        Store(tmp_path / "file" / "interleaf.db")
    assert refused.value.code is ErrorCode.STORAGE_FULL


def test_the_change_log_names_what_changed_and_admits_gaps() -> None:
    log = ChangeLog()
    log.note("p", Change(1, frozenset({"a"})))
    log.note("p", Change(2, frozenset({"b"})))
    assert log.between("p", 0, 2) == {"a", "b"}
    assert log.between("p", 1, 2) == {"b"}
    assert log.between("p", 2, 2) == frozenset()
    assert log.between("p", 1, 3) is None
    assert log.between("q", 0, 1) is None
    log.note("p", Change(3, None))
    assert log.between("p", 1, 3) is None


def test_of_a_version_that_was_rolled_back_the_later_note_holds() -> None:
    log = ChangeLog()
    log.note("p", Change(1, frozenset({"a"})))
    log.note("p", Change(2, frozenset({"rolled back"})))
    assert log.between("p", 0, 1) == {"a"}
    log.note("p", Change(2, frozenset({"b"})))
    assert log.between("p", 0, 2) == {"a", "b"}


def test_the_change_log_forgets_the_oldest() -> None:
    log = ChangeLog()
    for number in range(1, KEPT + 2):
        log.note("p", Change(number, frozenset({str(number)})))
    assert log.between("p", 0, KEPT + 1) is None
    assert log.between("p", 1, KEPT + 1) is not None
