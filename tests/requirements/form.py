"""How one promised behaviour is written down."""

from __future__ import annotations

from typing import NamedTuple


class R(NamedTuple):
    """One promised behaviour."""

    id: str
    sentence: str
    source: str
    """``contract`` (the tool contract), or the subject: domain, server, retrieval, sync, quality."""
    deferred: str = ""
