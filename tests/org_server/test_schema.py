from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, Connection, Engine, inspect, text

from org_server.store.engine import build_engine, sqlite_url
from org_server.store.schema import migrate, read_state, require_current
from org_server.store.tables import metadata
from shared_schema.errors import ErrorCode, InterleafError


def _normal(expression: object) -> str:
    """Return the words of a CHECK; PostgreSQL rewrites IN lists and adds casts and brackets."""
    plain = re.sub(r"::[a-z ]+(\[\])?|[()\[\]]", " ", str(expression).lower())
    words = " ".join(re.findall(r"[a-z_0-9'<>=]+", plain))
    return re.sub(r" (= any array|in) ", " ", words)


def _checks(connection: Connection) -> dict[str, str]:
    inspector = inspect(connection)
    return {
        str(check["name"]): _normal(check["sqltext"])
        for table in metadata.sorted_tables
        for check in inspector.get_check_constraints(table.name)
    }


def _declared_checks() -> dict[str, str]:
    return {
        str(constraint.name): _normal(constraint.sqltext)
        for table in metadata.sorted_tables
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }


def _partial_indexes(connection: Connection) -> dict[str, str]:
    if connection.dialect.name == "sqlite":
        rows = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'index'"))
    else:
        rows = connection.execute(
            text("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
        )
    return {
        name: _normal(definition.partition(" WHERE ")[2])
        for name, definition in rows
        if " WHERE " in (definition or "")
    }


def _declared_partial_indexes() -> dict[str, str]:
    return {
        str(index.name): _normal(index.dialect_options["postgresql"]["where"])
        for table in metadata.sorted_tables
        for index in table.indexes
        if index.dialect_options["postgresql"]["where"] is not None
    }


@pytest.mark.requirement("server.schema.no_drift")
def test_migrations_make_exactly_the_tables_that_the_code_declares(empty_database: str) -> None:
    engine = build_engine(empty_database)
    migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert _checks(connection) == _declared_checks()
        assert _partial_indexes(connection) == _declared_partial_indexes()
    engine.dispose()


def test_migrating_again_changes_nothing(empty_database: str) -> None:
    engine = build_engine(empty_database)
    assert migrate(engine).current is None
    assert migrate(engine).current == read_state(engine).newest
    require_current(engine)
    engine.dispose()


def test_two_processes_that_migrate_at_once_do_it_once(empty_database: str) -> None:
    engines = [build_engine(empty_database) for _ in range(3)]
    failures: list[Exception] = []

    def run(engine: Engine) -> None:
        try:
            migrate(engine)
        except Exception as error:  # noqa: BLE001  # whatever a thread meets is shown by the assertion
            failures.append(error)

    threads = [threading.Thread(target=run, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    require_current(engines[0])
    with engines[0].connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM feed_counter")).scalar_one() == 1
    for engine in engines:
        engine.dispose()


@pytest.mark.requirement("server.schema.newer_refused")
def test_a_newer_schema_is_refused_and_left_alone(database: str) -> None:
    engine = build_engine(database)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    try:
        for act in (migrate, require_current):
            with pytest.raises(InterleafError, match="newer release") as refused:
                act(engine)
            assert refused.value.code is ErrorCode.SCHEMA_MISMATCH
        assert read_state(engine).current == "9999"
    finally:
        with engine.begin() as connection:
            connection.execute(
                text("UPDATE alembic_version SET version_num = :newest"),
                {"newest": read_state(engine).newest},
            )
        engine.dispose()


def test_an_empty_database_is_no_current_one(empty_database: str) -> None:
    engine = build_engine(empty_database)
    with pytest.raises(InterleafError, match="interleaf-server init") as refused:
        require_current(engine)
    assert refused.value.code is ErrorCode.SCHEMA_MISMATCH
    engine.dispose()


def test_a_database_of_something_else_is_not_migrated(empty_database: str) -> None:
    engine = build_engine(empty_database)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE recipes (id INTEGER)"))
    with pytest.raises(InterleafError, match="recipes"):
        migrate(engine)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["recipes"]
    engine.dispose()


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "interleaf.db").write_bytes(b"not a database at all, but long enough to be read as one" * 20)
    engine = build_engine(sqlite_url(tmp_path / "interleaf.db"))
    with pytest.raises(InterleafError) as refused:
        read_state(engine)
    assert refused.value.code is ErrorCode.DATABASE_CORRUPT
    engine.dispose()


def test_an_unreachable_database_is_unavailable() -> None:
    engine = build_engine("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(InterleafError) as refused:
        read_state(engine)
    assert refused.value.code is ErrorCode.DATABASE_UNAVAILABLE
    engine.dispose()


@pytest.mark.parametrize("url", ["mysql://root:secret@localhost/x", "not a url", ""])
def test_another_kind_of_database_is_refused_without_repeating_the_url(url: str) -> None:
    with pytest.raises(InterleafError) as refused:
        build_engine(url)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS
    assert "secret" not in str(refused.value)
