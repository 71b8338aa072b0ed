"""The server's settings: flags of the command line, then the environment, then the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from org_server.store.engine import sqlite_url
from shared_schema.errors import ErrorCode, InterleafError

DATABASE_FILE: Final = "interleaf.db"


class Settings(BaseSettings):
    """All settings; each is also read from ``INTERLEAF_SERVER_<NAME>``."""

    model_config = SettingsConfigDict(env_prefix="INTERLEAF_SERVER_", extra="ignore", frozen=True)

    database_url: SecretStr = Field(
        default=SecretStr(""),
        validation_alias=AliasChoices(
            "database_url", "INTERLEAF_DATABASE_URL", "INTERLEAF_SERVER_DATABASE_URL"
        ),
    )
    """Holds a password where PostgreSQL has one."""
    threads: int = Field(default=16, ge=2, le=256)
    """Requests that one process answers at once."""
    max_waiters: int = Field(default=8, ge=0, le=255)
    """Long polls that one process holds at once; over it an answer comes at once."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"


def database_url(settings: Settings, data: Path | None) -> str:
    """Return the URL to use: that of ``--data DIR``, else the configured one.

    Raises ``invalid_arguments`` where neither is given.
    """
    if data is not None:
        return sqlite_url(data / DATABASE_FILE)
    if url := settings.database_url.get_secret_value():
        return url
    raise InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        "No database is named. Give --data DIR, --database-url URL or INTERLEAF_DATABASE_URL.",
    )
