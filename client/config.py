"""The client's settings: arguments, then the environment, then the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared_schema import limits
from shared_schema.places import Places, find_places

ENV_PREFIX: Final = "INTERLEAF_"


class Settings(BaseSettings):
    """All settings; each is also read from ``INTERLEAF_<NAME>``. One per process, never changed."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", frozen=True)

    home: Path | None = None
    """Where everything lies; the platform's data directory without it. Set: no keyring is used."""
    models_dir: Path | None = None
    """Prepared models; may be shared by several homes."""
    model_folder: Path | None = None
    """A folder with the pinned model files, for machines without a package index."""
    profile: str = "multilingual"
    """Which models are used, by the catalogue's name."""
    model_idle_minutes: float = Field(default=30, ge=0, le=10_080)
    """After so many minutes without use the model's memory is given back, over 400 MB; 0: never."""
    credentials: Literal["auto", "file"] = "auto"
    """``file`` keeps the token in a 0600 file even where there is a keyring."""
    sync_interval_seconds: float = Field(default=15, gt=0, le=3_600)
    """Pause between sync rounds while nothing happens; jitter is added."""
    long_poll_seconds: int = Field(default=limits.LONG_POLL_SECONDS, ge=0, le=limits.LONG_POLL_SECONDS)
    """How long one question for news may stand at the server; 0: the interval alone."""
    activation_deadline_seconds: float = Field(default=30, gt=0, le=40)
    """After this long an activation is answered with ``activation_deadline``."""
    threads: int = Field(default=16, ge=2, le=64)
    """Local calls that are answered at once."""

    @property
    def places(self) -> Places:
        """The paths that follow from ``home`` and ``models_dir``."""
        return find_places(home=self.home, models=self.models_dir)
