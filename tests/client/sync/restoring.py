"""Putting a test server's database back to an earlier moment, as an operator does."""

from __future__ import annotations

from sqlalchemy import text

from org_server.store.tables import metadata
from tests.org_server.harness import Server

Backup = dict[str, list[dict[str, object]]]


def tables(org: Server) -> Backup:
    """Return all rows of all tables."""
    with org.units.engine.connect() as connection:
        return {
            table.name: [dict(row._mapping) for row in connection.execute(table.select())]
            for table in metadata.sorted_tables
        }


def restore(org: Server, backup: Backup) -> None:
    """Put the tables back as they were, under a new lineage, as a restore does."""
    with org.units.engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
        for table in metadata.sorted_tables:
            if rows := backup[table.name]:
                connection.execute(table.insert(), rows)
        connection.execute(text("UPDATE org SET epoch = 'restored'"))
