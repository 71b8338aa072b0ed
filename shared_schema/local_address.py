"""How to reach the resident daemon: a Unix socket, or a loopback port with a token on Windows."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.places import Places, is_private

USE_PORT = sys.platform == "win32"


@dataclass(frozen=True, slots=True)
class LocalAddress:
    """Where the daemon listens. Exactly one of ``socket`` and ``port`` is given."""

    socket: str | None = None
    port: int | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def base_url(self) -> str:
        """The URL to put in front of ``/rpc/<method>``; the host is only a name on a socket."""
        return "http://daemon" if self.socket is not None else f"http://127.0.0.1:{self.port}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers that prove who calls; a socket's mode does that by itself."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}


def find_address(places: Places, *, use_port: bool = USE_PORT) -> LocalAddress:
    """Return the daemon's address.

    Raises ``daemon_unavailable`` when there cannot be a daemon to trust: no directory of this user
    alone, or no readable port file.
    """
    if use_port:
        return _read_port(places.port)
    if not is_private(places.socket.parent):
        raise unavailable(
            "The daemon is not running" if not places.socket.parent.exists() else _not_private(places)
        )
    return LocalAddress(socket=str(places.socket))


def unavailable(happened: str) -> InterleafError:
    """Return ``daemon_unavailable`` that says what happened and how to start the daemon."""
    return InterleafError(ErrorCode.DAEMON_UNAVAILABLE, f"{happened}. Start it with: interleaf daemon start")


def _not_private(places: Places) -> str:
    return f"The directory {places.socket.parent} is not this user's alone (mode 0700), so it is not used"


def _read_port(file: Path) -> LocalAddress:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return LocalAddress(port=int(found["port"]), token=str(found["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise unavailable("The daemon is not running") from None
