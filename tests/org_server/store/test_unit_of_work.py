from __future__ import annotations

import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError, IntegrityError
from sqlmodel import col, select, update

from org_server.store.tables import FeedEventRow, OrgRow, ProjectRow
from org_server.store.unit_of_work import UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import FeedEventType
from tests.org_server.harness import Server


def emit(uow: UnitOfWork, number: int) -> None:
    uow.emit(FeedEventType.REF_MOVED, project_id=f"prj_{number}")


@pytest.mark.requirement("server.feed.gap_free")
def test_feed_numbers_are_committed_in_order_and_without_holes_by_many_writers(server: Server) -> None:
    done = threading.Event()
    problems: list[str] = []

    def read() -> None:
        cursor = 0
        while not (done.is_set() and cursor == 60):
            with server.units.read() as uow:
                seqs = uow.session.exec(
                    select(FeedEventRow.seq)
                    .where(col(FeedEventRow.seq) > cursor)
                    .order_by(col(FeedEventRow.seq))
                ).all()
                head = uow.feed_head()
            if list(seqs) != list(range(cursor + 1, head + 1)):
                problems.append(f"after {cursor} up to {head}: {seqs}")
                return
            cursor = head

    def write(number: int) -> None:
        for _ in range(5):
            with server.units.write() as uow:
                emit(uow, number)
                emit(uow, number)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join(60)
    done.set()
    reader.join(60)
    assert not reader.is_alive()
    assert problems == []


def test_a_transaction_that_fails_leaves_no_trace(server: Server) -> None:
    before = (server.feed(), server.audit())

    def fail() -> None:
        with server.units.write() as uow:
            emit(uow, 1)
            uow.audit(None, "nothing", "nobody")
            uow.session.flush()
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert (server.feed(), server.audit()) == before
    with server.units.write() as uow:
        emit(uow, 2)
    assert server.feed() == [*before[0], ("ref.moved", "prj_2")]


def test_a_reader_sees_one_state_while_others_write(server: Server) -> None:
    with server.units.read() as reader:
        head = reader.feed_head()
        with server.units.write() as writer:
            emit(writer, 1)
            writer.session.execute(update(OrgRow).values(name="Renamed"))
        assert reader.org.name == "Acme"
        assert reader.feed_head() == head
        assert reader.session.exec(select(FeedEventRow)).all() == []
    with server.units.read() as later:
        assert (later.org.name, later.feed_head()) == ("Renamed", head + 1)


def test_a_reader_emits_nothing(server: Server) -> None:
    with server.units.read() as uow, pytest.raises(RuntimeError, match="writing"):
        emit(uow, 1)


def test_an_event_for_its_author_names_the_author(server: Server) -> None:
    with server.units.write() as uow, pytest.raises(RuntimeError, match="author"):
        uow.emit(FeedEventType.DRAFT_CREATED, project_id="prj_1")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE user_account SET role = 'king'",
        "UPDATE token SET user_id = 'usr_unknown'",
        "INSERT INTO feed_counter (id, seq) VALUES (2, 0)",
    ],
)
def test_the_database_itself_refuses_what_the_code_should_never_write(server: Server, statement: str) -> None:
    with pytest.raises(IntegrityError), server.units.write() as uow:
        uow.session.execute(text(statement))


def test_an_expected_error_inside_a_transaction_stays_that_error(server: Server) -> None:
    with pytest.raises(InterleafError) as refused, server.units.write():
        raise InterleafError(ErrorCode.LAST_OWNER)
    assert refused.value.code is ErrorCode.LAST_OWNER


def test_sqlite_commits_are_synced_and_foreign_keys_checked(server: Server) -> None:
    if server.units.engine.dialect.name != "sqlite":
        with server.units.read() as uow, pytest.raises(DatabaseError, match="read-only"):
            uow.session.execute(update(ProjectRow).values(name="x"))
        return
    with server.units.engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_full_disk_is_named_and_nothing_is_changed(server: Server) -> None:
    if server.units.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL's disk cannot be filled from a test")
    before = server.audit()

    def fill() -> None:
        with server.units.write() as uow:
            pages = uow.session.connection().exec_driver_sql("PRAGMA page_count").scalar_one()
            uow.session.connection().exec_driver_sql(f"PRAGMA max_page_count = {pages}")
            uow.audit(None, "x" * 2_000_000, "nobody")

    with pytest.raises(InterleafError) as refused:
        fill()
    assert refused.value.code is ErrorCode.STORAGE_FULL
    server.units.engine.dispose()
    assert server.audit() == before
