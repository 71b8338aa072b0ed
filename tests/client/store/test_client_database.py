"""Opening, migrating, copying and losing the client's database file."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from client.store.migrating import Migration, bundled_migrations, migrate, schema_version, statements_of
from client.store.opening import damage_marker, open_database
from client.store.projects import ProjectRow
from client.store.tables import metadata
from client.store.unit_of_work import Store
from shared_schema.errors import ErrorCode, InterleafError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "interleaf.db"


def clock() -> int:
    return 77


def closed(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def with_a_project(path: Path) -> None:
    store = Store(path)
    with store.write() as uow:
        uow.projects.put(ProjectRow("prj_1", "Alpha"))
    store.close()


def projects_in(path: Path) -> list[str]:
    store = Store(path)
    with store.read() as uow:
        names = [row.name for row in uow.projects.all()]
    store.close()
    return names


@pytest.mark.requirement("local.permissions")
def test_the_folder_and_every_file_belong_to_the_owner_alone(path: Path) -> None:
    store = Store(path)
    with store.write() as uow:
        uow.meta.set("a", "b")

    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["interleaf.db", "interleaf.db-shm", "interleaf.db-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    store.close()


@pytest.mark.requirement("sync.durable_before_answer")
def test_every_connection_syncs_each_commit_and_checks_references(path: Path) -> None:
    store = Store(path)
    with store.write() as uow, store.read() as reading:
        for connection in (uow.connection, reading.connection):
            found = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            ]
            assert found == ["wal", 2, 1, 5_000]
    store.close()


@pytest.mark.requirement("local.migrations")
def test_the_migrations_make_exactly_the_tables_that_the_code_names(path: Path, tmp_path: Path) -> None:
    Store(path).close()
    declared = tmp_path / "declared.db"
    engine = create_engine(f"sqlite:///{declared}")
    metadata.create_all(engine)
    engine.dispose()

    def shape(file: Path) -> dict[str, object]:
        connection = closed(file)
        found: dict[str, object] = {}
        for table in sorted(metadata.tables):
            columns = connection.execute(f"PRAGMA table_info('{table}')").fetchall()
            keys = connection.execute(f"PRAGMA foreign_key_list('{table}')").fetchall()
            indexes = [
                (*row[1:], connection.execute(f"PRAGMA index_info('{row[1]}')").fetchall())
                for row in connection.execute(f"PRAGMA index_list('{table}')")
            ]
            found[table] = (columns, sorted(keys), sorted(indexes))
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        found["sql"] = [
            (name, " ".join(sql.split()).replace("( ", "(").replace(" )", ")")) for name, sql in rows
        ]
        connection.close()
        return found

    assert shape(path) == shape(declared)


@pytest.mark.requirement("local.newer_schema")
def test_the_database_of_a_newer_release_is_refused_and_left_as_it_is(path: Path) -> None:
    with_a_project(path)
    connection = closed(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(InterleafError) as refused:
        Store(path)

    assert refused.value.code is ErrorCode.DAEMON_TOO_OLD
    assert path.read_bytes() == before
    assert [
        file.name for file in path.parent.iterdir() if "before" in file.name or "corrupt" in file.name
    ] == []


@pytest.mark.requirement("local.migrations")
def test_an_upgrade_makes_a_copy_first_and_runs_only_the_new_steps(path: Path) -> None:
    with_a_project(path)
    steps = [*bundled_migrations()]
    steps.append(Migration(len(steps) + 1, "ALTER TABLE project ADD COLUMN colour TEXT;\n"))
    connection = closed(path)

    migrate(connection, path, 77, steps)

    assert schema_version(connection) == len(steps)
    assert connection.execute("SELECT name, colour FROM project").fetchall() == [("Alpha", None)]
    connection.close()
    copy = path.with_name(f"interleaf.db.before-schema-{len(steps)}-77")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    kept = closed(copy)
    assert schema_version(kept) == len(steps) - 1
    assert kept.execute("SELECT name FROM project").fetchall() == [("Alpha",)]
    kept.close()


@pytest.mark.requirement("local.migrations")
def test_a_step_that_fails_leaves_the_schema_and_the_rows_as_they_were(path: Path) -> None:
    with_a_project(path)
    steps = [*bundled_migrations()]
    steps.append(Migration(len(steps) + 1, "ALTER TABLE project ADD COLUMN colour TEXT;\nDROP TABLE none;\n"))
    connection = closed(path)

    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, 77, steps)

    assert schema_version(connection) == len(steps) - 1
    columns = [row[1] for row in connection.execute("PRAGMA table_info(project)")]
    assert "colour" not in columns
    connection.close()
    assert projects_in(path) == ["Alpha"]


def test_statements_are_split_where_they_end_and_triggers_stay_whole() -> None:
    script = (
        "-- first\nCREATE TABLE a (x);\nCREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM a;\nEND;\n"
    )
    assert len(list(statements_of(script))) == 2
    with pytest.raises(RuntimeError):
        list(statements_of("CREATE TABLE a (x)"))


@pytest.mark.requirement("local.corrupt")
def test_a_file_that_is_no_database_is_set_aside_and_the_next_start_is_empty(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database at all" * 100)

    with pytest.raises(InterleafError) as refused:
        open_database(path, clock)

    aside = path.with_name("interleaf.db.corrupt-77")
    assert refused.value.code is ErrorCode.DATABASE_CORRUPT
    assert refused.value.details == {"set_aside": str(aside)}
    assert aside.read_bytes().startswith(b"this is no database")
    assert not path.exists()
    assert projects_in(path) == []


def damage(path: Path) -> bytes:
    """Overwrite the page of one table, which a plain opening never looks at."""
    connection = closed(path)
    page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'project'").fetchone()[0]
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(content)
    open_database(path, clock)
    return bytes(content)


@pytest.mark.requirement("local.corrupt")
@pytest.mark.parametrize("sign", ["left write-ahead log", "damage met while running"])
def test_damage_inside_the_file_is_found_at_the_start_after_a_crash(path: Path, sign: str) -> None:
    with_a_project(path)
    broken = damage(path)
    if sign == "left write-ahead log":
        path.with_name("interleaf.db-wal").write_bytes(b"\0" * 32)
    else:
        damage_marker(path).touch()

    with pytest.raises(InterleafError) as refused:
        open_database(path, clock)

    assert refused.value.code is ErrorCode.DATABASE_CORRUPT
    assert path.with_name("interleaf.db.corrupt-77").read_bytes() == broken
    assert projects_in(path) == []


@pytest.mark.requirement("local.corrupt")
def test_damage_met_while_running_is_reported_and_leads_to_a_check(path: Path) -> None:
    with_a_project(path)
    damage(path)
    store = Store(path)

    with pytest.raises(InterleafError) as refused, store.read() as uow:
        uow.projects.all()

    assert refused.value.code is ErrorCode.DATABASE_CORRUPT
    assert damage_marker(path).exists()
    store.close()
    with pytest.raises(InterleafError) as again:
        open_database(path, clock)
    assert again.value.code is ErrorCode.DATABASE_CORRUPT
    assert path.with_name("interleaf.db.corrupt-77").exists()


def test_a_sound_file_passes_the_check_after_a_crash(path: Path) -> None:
    with_a_project(path)
    damage_marker(path).touch()
    assert projects_in(path) == ["Alpha"]
    assert not damage_marker(path).exists()


@pytest.mark.requirement("local.backup")
def test_a_backup_of_the_open_database_is_complete_private_and_never_overwrites(path: Path) -> None:
    store = Store(path)
    with store.write() as uow:
        uow.projects.put(ProjectRow("prj_1", "Alpha"))
    target = path.parent.parent / "copy.db"

    store.backup(target)

    with pytest.raises(InterleafError) as refused:
        store.backup(target)
    store.close()
    assert refused.value.code is ErrorCode.ALREADY_EXISTS
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert projects_in(target) == ["Alpha"]
