"""Engines for SQLite and PostgreSQL that behave alike.

SQLite: write-ahead log, every commit synced to disk, foreign keys on, and ``BEGIN IMMEDIATE`` for
writers: a transaction that reads first and writes later would fail at once, without waiting, when
another one wrote in between. Python's driver begins lazily and hides that, so it is switched to
autocommit and the BEGIN is sent here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from shared_schema.errors import ErrorCode, InterleafError

BUSY_TIMEOUT_MS: Final = 15_000
POOL_SIZE: Final = 5
POOL_OVERFLOW: Final = 60
"""Above the threads of one process: a request never waits for a connection of its own process."""
WRITE_OPTION: Final = "interleaf_write"


def sqlite_url(path: Path) -> str:
    """Return the database URL of an SQLite file."""
    return f"sqlite:///{path}"


def build_engine(url: str) -> Engine:
    """Return an engine for ``sqlite:///…`` or ``postgresql://…``; nothing is opened yet.

    Raises ``invalid_arguments`` for any other URL.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise _unusable() from None
    if parsed.get_backend_name() == "sqlite":
        engine = create_engine(
            parsed,
            poolclass=QueuePool,
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            connect_args={"check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    if parsed.get_backend_name() == "postgresql":
        if parsed.get_driver_name() not in {"", "psycopg", "psycopg2"} or "+" not in parsed.drivername:
            parsed = parsed.set(drivername="postgresql+psycopg")
        return create_engine(parsed, pool_size=POOL_SIZE, max_overflow=POOL_OVERFLOW, pool_pre_ping=True)
    raise _unusable()


def writing(engine: Engine) -> Engine:
    """Return a view of the engine whose transactions may write."""
    return engine.execution_options(**{WRITE_OPTION: True})


def reading(engine: Engine) -> Engine:
    """Return a view of the engine whose transactions read one consistent state and never write."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return engine


def _unusable() -> InterleafError:
    # The URL may hold a password, so it is not repeated.
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        "The database URL cannot be used. Give sqlite:///FILE or postgresql://USER@HOST/NAME.",
    )


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
    finally:
        cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get(WRITE_OPTION, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
