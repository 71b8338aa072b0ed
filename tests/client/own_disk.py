"""A real small disk for a test: a tmpfs in a mount namespace of the child process's own.

Nothing of it is seen outside, and it goes with the process. Works as root, and for anybody where the
kernel lets users have namespaces.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

_OWN_NAMESPACE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--mount", "--map-root-user")


@lru_cache
def has_own_disk() -> bool:
    """Tell whether this machine lets a test mount something of its own."""
    if sys.platform != "linux":
        return False
    try:
        done = subprocess.run(
            [*_OWN_NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


def run_with_own_disk(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python script that may call `mount`; it has failed when its status is not 0."""
    return subprocess.run(
        [*_OWN_NAMESPACE, sys.executable, "-W", "error", script, *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def mount(folder: Path, size: str) -> None:
    """Mount an empty disk of this size; only in a process that `run_with_own_disk` started."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)


def remount(folder: Path, mode: str) -> None:
    """Make the disk read-only ("ro") or writable ("rw") again."""
    subprocess.run(["mount", "-o", f"remount,{mode}", folder], check=True)


def fill(folder: Path, left: int) -> Path:
    """Write a file that leaves ``left`` bytes free, and return it."""
    found = os.statvfs(folder)
    filler = folder / "filler"
    filler.write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - left)))
    return filler
