"""From any earlier schema to this release's, in one transaction, with a copy made first.

The files of ``migrations/`` are numbered SQL scripts, applied in order; ``PRAGMA user_version``
holds the number of the last one. They only go forward.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from shared_schema.errors import ErrorCode, InterleafError


class Migration(NamedTuple):
    """One step: its number and its script."""

    number: int
    script: str


def bundled_migrations() -> list[Migration]:
    """Return the steps that this release knows, in order, numbered from 1 without holes."""
    folder = resources.files("client.store") / "migrations"
    found = sorted(
        (Migration(int(file.name[:4]), file.read_text(encoding="utf-8")))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    )
    if [step.number for step in found] != list(range(1, len(found) + 1)):
        raise RuntimeError("the migrations are not numbered from 1 without holes")
    return found


def migrate(connection: sqlite3.Connection, path: Path, now: int, steps: list[Migration]) -> None:
    """Bring the database to the newest schema; ``now`` (epoch ms) names the copy.

    Raises ``daemon_too_old`` for a schema newer than this release; nothing is changed then.
    """
    version = schema_version(connection)
    if version > len(steps):
        raise InterleafError(
            ErrorCode.DAEMON_TOO_OLD,
            f"A newer release of Interleaf made this database (schema {version}, this release knows "
            f"{len(steps)}). Update Interleaf; nothing was changed.",
            details={"schema": version, "known": len(steps)},
        )
    if version == len(steps):
        return
    if version:
        copy = path.with_name(f"{path.name}.before-schema-{len(steps)}-{now}")
        copy_database(connection, copy)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version:]:
            for statement in statements_of(step.script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration applied; 0 for an empty database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def copy_database(connection: sqlite3.Connection, target: Path) -> None:
    """Write a consistent copy to ``target``, readable by its owner only.

    Raises ``already_exists`` when there is such a file; nothing is ever overwritten.
    """
    try:
        target.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        raise InterleafError(
            ErrorCode.ALREADY_EXISTS, f"{target} exists already. Name a file that does not exist yet."
        ) from None
    # SQLite fills an empty file and refuses any other one.
    connection.execute("VACUUM INTO ?", (str(target),))


def statements_of(script: str) -> Iterator[str]:
    """Yield the statements of a script, triggers in one piece.

    ``sqlite3.Connection.executescript`` would commit the open transaction first.
    """
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        raise RuntimeError("a migration ends within a statement")
