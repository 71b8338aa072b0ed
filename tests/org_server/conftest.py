from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from org_server.store.engine import build_engine, sqlite_url
from org_server.store.schema import migrate
from org_server.store.unit_of_work import UnitOfWorkFactory
from tests.org_server.harness import Server, TestClock, empty_tables

POSTGRES = os.environ.get("INTERLEAF_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
BOTH = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the newest schema, to be copied: migrating takes longer than a test."""
    path = tmp_path_factory.mktemp("schema") / "interleaf.db"
    engine = build_engine(sqlite_url(path))
    migrate(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return path


@pytest.fixture(scope="session")
def postgres_admin() -> str:
    """The URL of a PostgreSQL server that databases may be made on."""
    engine = create_engine(POSTGRES, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 3})
    try:
        with engine.connect():
            pass
    except OperationalError:
        reason = f"no PostgreSQL server at {make_url(POSTGRES).render_as_string()}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    finally:
        engine.dispose()
    return POSTGRES


@pytest.fixture
def fresh_postgres(postgres_admin: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, dropped afterwards."""
    with _throw_away(postgres_admin) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_admin: str) -> Iterator[str]:
    """The URL of this worker's PostgreSQL database with the newest schema, dropped at the end."""
    with _throw_away(postgres_admin) as url:
        engine = build_engine(url)
        migrate(engine)
        engine.dispose()
        yield url


@pytest.fixture(params=BOTH)
def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without any table, once on each database."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("fresh_postgres"))
    return sqlite_url(tmp_path / "interleaf.db")


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database with the newest schema and no Organization, once on each database."""
    if request.param == "postgresql":
        url = str(request.getfixturevalue("migrated_postgres"))
        engine = build_engine(url)
        empty_tables(engine)
        engine.dispose()
        return url
    shutil.copy(request.getfixturevalue("migrated_sqlite"), tmp_path / "interleaf.db")
    return sqlite_url(tmp_path / "interleaf.db")


@pytest.fixture
def server(database: str) -> Iterator[Server]:
    """A server with its Organization, once on each database."""
    clock = TestClock()
    units = UnitOfWorkFactory(build_engine(database), clock)
    yield Server(units, clock)
    units.engine.dispose()


@contextmanager
def _throw_away(admin: str) -> Iterator[str]:
    name = f"interleaf_test_{uuid.uuid4().hex[:12]}"
    _run(admin, f'CREATE DATABASE "{name}"')
    try:
        yield make_url(admin).set(database=name).render_as_string(hide_password=False)
    finally:
        _run(admin, f'DROP DATABASE "{name}" WITH (FORCE)')


def _run(admin: str, statement: str) -> None:
    engine = create_engine(admin, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
