"""The two engines on the client's one SQLite file, and what its failures mean.

Write-ahead log, every commit synced to disk, foreign keys on. Writers begin with ``BEGIN
IMMEDIATE``: a transaction that reads first and writes later would fail at once, without waiting,
when another one wrote in between. Python's driver begins lazily and hides that, so it is switched
to autocommit and the BEGIN is sent here. Readers have an engine of their own that cannot write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import QueuePool

from shared_schema.errors import ErrorCode, InterleafError

BUSY_TIMEOUT_MS: Final = 5_000
READERS: Final = 64
"""Above the threads of one daemon: no reader waits for another one's connection."""


def write_engine(path: Path) -> Engine:
    """Return the engine of the one writer."""
    return _engine(path, "BEGIN IMMEDIATE", size=1, overflow=0, query_only=False)


def read_engine(path: Path) -> Engine:
    """Return the engine of the readers; each transaction sees one consistent state."""
    return _engine(path, "BEGIN", size=4, overflow=READERS - 4, query_only=True)


def _engine(path: Path, begin: str, *, size: int, overflow: int, query_only: bool) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=overflow,
        # Errors would name the parameters, and those hold bodies.
        hide_parameters=True,
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1_000},
    )

    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        apply_pragmas(connection)
        if query_only:
            connection.execute("PRAGMA query_only = ON")

    def start(connection: Connection) -> None:
        # By the driver itself: SQLAlchemy's way takes longer than SQLite does.
        connection.connection.cursor().execute(begin).close()

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", start)
    return engine


def apply_pragmas(connection: sqlite3.Connection) -> None:
    """Set what every connection needs; the write-ahead log is a property of the file."""
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


_NO_ROOM: Final = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
)
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def is_damaged(error: sqlite3.Error) -> bool:
    """Tell whether the error means that the file itself is broken."""
    return _primary_code(error) in _DAMAGED


@contextmanager
def database_errors(on_damage: Callable[[], None]) -> Iterator[None]:
    """Turn the driver's errors into ours; a violated constraint passes, it is a defect of ours."""
    try:
        yield
    except PoolTimeoutError as error:
        raise _busy() from error
    except DBAPIError as error:
        if not isinstance(error.orig, sqlite3.Error):
            raise
        _translate(error.orig, error, on_damage)
    except sqlite3.Error as error:
        _translate(error, error, on_damage)


def _translate(original: sqlite3.Error, error: Exception, on_damage: Callable[[], None]) -> None:
    code = _primary_code(original)
    if code in _NO_ROOM:
        raise InterleafError(
            ErrorCode.STORAGE_FULL,
            "The local database cannot be written: the disk is full or read-only. "
            "Nothing was changed; reading goes on. Free disk space, then try again.",
        ) from error
    if code in _DAMAGED:
        on_damage()
        raise InterleafError(
            ErrorCode.DATABASE_CORRUPT,
            "The local database is damaged. Restart the daemon with: interleaf daemon restart. "
            "It sets the file aside before it makes a new one.",
        ) from error
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        raise _busy() from error
    raise error


def _primary_code(error: sqlite3.Error) -> int | None:
    # Extended codes keep the primary one in the low byte.
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _busy() -> InterleafError:
    return InterleafError(
        ErrorCode.DATABASE_UNAVAILABLE, "The local database was busy for too long. Try again in a moment."
    )
