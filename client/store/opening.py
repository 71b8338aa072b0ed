"""Opening the database file: permissions, damage, schema.

A damaged file is moved aside with its write-ahead log and reported; the next start makes a new
one. Nothing that could still be read by somebody is ever overwritten.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from client.store.engine import apply_pragmas, is_damaged
from client.store.migrating import bundled_migrations, migrate
from shared_schema.errors import ErrorCode, InterleafError

_COMPANIONS: Final = ("-wal", "-shm")


def open_database(path: Path, clock: Callable[[], int]) -> None:
    """Create or check and migrate the database; ``clock`` (epoch ms) names copies.

    Raises ``database_corrupt`` after it moved a damaged file aside, ``daemon_too_old`` for a newer
    schema, and ``storage_full`` when there is no room to create or migrate it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives the log and its index the permissions of the main file.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise _no_room() from error
    try:
        _check_and_migrate(path, clock)
    except sqlite3.DatabaseError as error:
        if not is_damaged(error):
            raise _no_room() from error
        aside = _set_aside(path, clock())
        raise InterleafError(
            ErrorCode.DATABASE_CORRUPT,
            f"The local database is damaged and was set aside as {aside}. Start the daemon again to "
            "begin with an empty one; Drafts that were not synced are only in the file set aside.",
            details={"set_aside": str(aside)},
        ) from error


def damage_marker(path: Path) -> Path:
    """Return the file whose presence asks for a full check at the next start."""
    return path.with_name(f"{path.name}.check")


def _check_and_migrate(path: Path, clock: Callable[[], int]) -> None:
    # A clean stop folds the write-ahead log into the file, so a log that is left means a crash.
    log = path.with_name(path.name + "-wal")
    suspicious = damage_marker(path).exists() or (log.exists() and log.stat().st_size > 0)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        apply_pragmas(connection)
        if suspicious:
            result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if result != "ok":
                raise _Damaged(result)
        migrate(connection, path, clock(), bundled_migrations())
    finally:
        connection.close()
    damage_marker(path).unlink(missing_ok=True)


class _Damaged(sqlite3.DatabaseError):
    """What the check of the file found, with the code that SQLite would give."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def _set_aside(path: Path, now: int) -> Path:
    aside = path.with_name(f"{path.name}.corrupt-{now}")
    for suffix in ("", *_COMPANIONS):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(aside.with_name(aside.name + suffix))
    damage_marker(path).unlink(missing_ok=True)
    return aside


def _no_room() -> InterleafError:
    return InterleafError(
        ErrorCode.STORAGE_FULL,
        "The local database cannot be opened for writing: the disk is full, read-only, or not yours. "
        "Free disk space or correct the permissions, then start again.",
    )
