"""The server database, on SQLite or PostgreSQL."""
