"""Statements of the write path, compiled when they are first imported.

SQLAlchemy prepares a statement for each execution, which takes longer than SQLite needs to run it.
A store has ten of them, so those are written as expressions, compiled once, and handed to the
driver as they are. Results are plain: SQLite has no booleans, so those come back as 0 and 1.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Table, insert
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

_DIALECT = sqlite.dialect(paramstyle="named")


def _row_type(names: list[str]) -> Any:
    make: Any = namedtuple  # A checker wants the names to stand in the source.
    return make("PreparedRow", names)


class Prepared:
    """One statement with named parameters; shared by all threads."""

    def __init__(self, statement: ClauseElement, columns: Iterable[str] | None = None) -> None:
        """Compile it. ``columns`` are those that an insert or an update sets by parameters."""
        names = None if columns is None else list(columns)
        compiled = statement.compile(dialect=_DIALECT, column_keys=names)
        self._sql = str(compiled)
        # Parameters that are given by each caller have no value yet.
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}
        self._as_row: Callable[[Iterable[Any]], Any] | None = None

    def run(self, connection: Connection, parameters: Mapping[str, object]) -> list[Any]:
        """Execute it in the connection's transaction and return the rows, columns as attributes."""
        cursor = connection.connection.cursor()
        try:
            cursor.execute(self._sql, {**self._constants, **parameters})
            rows = cursor.fetchall()
            if rows and self._as_row is None:
                self._as_row = _row_type([column[0] for column in cursor.description])._make
            return list(map(self._as_row, rows)) if self._as_row else []
        finally:
            cursor.close()


def prepared_insert(table: Table, *, without: Iterable[str] = ()) -> Prepared:
    """Return an insert of every column but ``without``; each is a parameter."""
    left_out = set(without)
    return Prepared(insert(table), [column.name for column in table.c if column.name not in left_out])
