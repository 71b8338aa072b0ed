"""The local SQLite database."""
