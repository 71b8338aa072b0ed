"""The steps of the schema, applied by ``org_server.store.schema``."""
