"""Alembic's entry point: it runs on the connection that ``org_server.store.schema`` opened."""

from alembic import context

from org_server.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter most things in place; batch mode copies the table.
    render_as_batch=True,
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
