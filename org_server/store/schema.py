"""The database's schema: brought up to this release, or refused.

Steps only go forward. They run in one transaction on both databases, and one process at a time:
SQLite's write lock or PostgreSQL's advisory lock makes the others wait and then find nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DatabaseError, OperationalError

from org_server.store.engine import reading, writing
from shared_schema.errors import ErrorCode, InterleafError

_MIGRATION_LOCK: Final = 0x494C_4541_4600
"""PostgreSQL's advisory lock; any fixed number that nobody else uses in this database."""


class SchemaState(NamedTuple):
    """Where a database stands; ``current`` is None for an empty one."""

    current: str | None
    newest: str
    known: bool
    """Whether this release knows the step that the database is at."""


def migrate(engine: Engine) -> SchemaState:
    """Bring the schema up to this release and return where it stood before.

    Raises ``schema_mismatch`` for a newer schema, and for a database that holds other tables.
    """
    with _connected(writing(engine)) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
        before = _state(connection)
        if not before.known:
            raise _newer()
        if before.current is None and (tables := inspect(connection).get_table_names()):
            raise InterleafError(
                ErrorCode.SCHEMA_MISMATCH,
                f"This database holds tables of something else ({', '.join(sorted(tables)[:5])}). "
                "Give the server an empty one.",
            )
        if before.current != before.newest:
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        return before


def read_state(engine: Engine) -> SchemaState:
    """Return where the database's schema stands."""
    with _connected(reading(engine)) as connection:
        return _state(connection)


def require_current(engine: Engine) -> None:
    """Raise ``schema_mismatch`` unless the schema is this release's."""
    state = read_state(engine)
    if not state.known:
        raise _newer()
    if state.current is None:
        raise InterleafError(
            ErrorCode.SCHEMA_MISMATCH,
            "This database is empty. Run: interleaf-server init --data DIR --org NAME --owner EMAIL",
        )
    if state.current != state.newest:
        raise InterleafError(
            ErrorCode.SCHEMA_MISMATCH,
            f"The database's schema is {state.current}, this release needs {state.newest}. "
            "Back it up, then run: interleaf-server migrate",
            details={"current": state.current, "needed": state.newest},
        )


def _state(connection: Connection) -> SchemaState:
    scripts = ScriptDirectory.from_config(_config())
    newest = scripts.get_current_head()
    if newest is None:
        raise RuntimeError("the release holds no migrations")
    current = MigrationContext.configure(connection).get_current_revision()
    known = current is None or current in {script.revision for script in scripts.walk_revisions()}
    return SchemaState(current, newest, known)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


@contextmanager
def _connected(engine: Engine) -> Iterator[Connection]:
    try:
        with engine.connect() as connection:
            yield connection
    except OperationalError as error:
        raise InterleafError(
            ErrorCode.DATABASE_UNAVAILABLE, "The database cannot be used. Check its address and rights."
        ) from error
    except DatabaseError as error:
        raise InterleafError(
            ErrorCode.DATABASE_CORRUPT,
            "This is no database of Interleaf, or it is damaged. Restore a backup.",
        ) from error


def _newer() -> InterleafError:
    return InterleafError(
        ErrorCode.SCHEMA_MISMATCH,
        "A newer release of Interleaf made this database. Update this one; nothing was changed.",
    )
