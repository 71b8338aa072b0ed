"""Where everything of one installation lies on this machine; standard library only.

The resident daemon, the command line and the stdio proxy must agree on these paths without asking
each other, and the proxy must not pay for a settings library to find a socket. So nothing here
depends on anything that differs between a login shell and a program started by an agent host,
except ``INTERLEAF_HOME`` and ``INTERLEAF_MODELS_DIR``.

Layout of ``home`` (directories 0700, files 0600)::

    interleaf.db          the store                 run/daemon.sock   the daemon's socket
    index/                search indexes            run/daemon.lock   held while it runs
    models/               prepared models           run/guides.json   directory -> guide path
    logs/daemon.log       what the daemon did       run/port.json     Windows: port and token
    credentials.json      only without a keyring
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

SOCKET_PATH_BYTES: Final = 100
"""``sun_path`` holds 104 bytes on macOS and 108 on Linux, terminator included."""


@dataclass(frozen=True, slots=True)
class Places:
    """Absolute paths of one installation."""

    home: Path
    models: Path

    @property
    def database(self) -> Path:
        """The store: one SQLite file."""
        return self.home / "interleaf.db"

    @property
    def index(self) -> Path:
        """Search indexes, one directory per Project; may be deleted at any time."""
        return self.home / "index"

    @property
    def credentials(self) -> Path:
        """The token, where no keyring keeps it."""
        return self.home / "credentials.json"

    @property
    def log(self) -> Path:
        """The daemon's log, JSON lines."""
        return self.home / "logs" / "daemon.log"

    @property
    def run(self) -> Path:
        """What only matters while the daemon runs."""
        return self.home / "run"

    @property
    def lock(self) -> Path:
        """Held for as long as a daemon lives."""
        return self.run / "daemon.lock"

    @property
    def pid(self) -> Path:
        """The process id of the lock's holder, for messages only."""
        return self.run / "daemon.pid"

    @property
    def guides(self) -> Path:
        """Bound directories and their guide paths, mirrored for the proxy."""
        return self.run / "guides.json"

    @property
    def port(self) -> Path:
        """Loopback port and token, where there are no Unix sockets."""
        return self.run / "port.json"

    @property
    def socket(self) -> Path:
        """The daemon's socket, in a short directory of its own when ``home`` is too long for one."""
        usual = self.run / "daemon.sock"
        if len(os.fsencode(usual)) < SOCKET_PATH_BYTES:
            return usual
        # Not $XDG_RUNTIME_DIR or $TMPDIR: hosts start proxies with another environment than shells.
        key = sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path("/tmp") / f"interleaf-{_user()}-{key}" / "daemon.sock"  # noqa: S108 - made 0700 and its owner is checked


def find_places(
    environ: Mapping[str, str] | None = None, *, home: Path | None = None, models: Path | None = None
) -> Places:
    """Return the places of this user's installation.

    ``home`` and ``models`` win over ``INTERLEAF_HOME`` and ``INTERLEAF_MODELS_DIR``, which win over
    the platform's data directory and its ``models`` folder.
    """
    environ = os.environ if environ is None else environ
    root = home or _path(environ.get("INTERLEAF_HOME")) or _data_directory(environ)
    root = _absolute(root)
    folder = models or _path(environ.get("INTERLEAF_MODELS_DIR")) or root / "models"
    return Places(home=root, models=_absolute(folder))


def make_private(directory: Path) -> None:
    """Create ``directory`` with mode 0700, and its parents; tighten it when it is there already."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if sys.platform != "win32" and stat.S_IMODE(directory.stat().st_mode) != 0o700:
        directory.chmod(0o700)


def is_private(directory: Path) -> bool:
    """Tell whether only this user can have put anything into ``directory``."""
    if sys.platform == "win32":
        return directory.is_dir()
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _absolute(path: Path) -> Path:
    """Expand ``~`` and make absolute, links kept: a home may be a link on purpose."""
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links


def _user() -> str:
    return str(os.getuid()) if sys.platform != "win32" else "user"


def _data_directory(environ: Mapping[str, str]) -> Path:
    """Return what platformdirs calls the user's data directory of ``interleaf``."""
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "interleaf"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "interleaf"
    given = environ.get("XDG_DATA_HOME", "").strip()
    return (Path(given) if given else Path.home() / ".local" / "share") / "interleaf"
