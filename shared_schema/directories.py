"""Working directories as bindings see them: canonical, and aware of Git's linked worktrees."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Directory:
    """A canonical directory, and the same place in the main checkout of a linked worktree."""

    path: str
    main_checkout: str | None = None


def canonical_directory(directory: Path) -> Directory:
    """Resolve links and find the main checkout, if ``directory`` lies in a linked worktree."""
    path = Path(os.path.realpath(directory))
    return Directory(path=str(path), main_checkout=_main_checkout(path))


def longest_bound(directory: str, bound: Iterable[str]) -> str | None:
    """Return the bound directory that is ``directory`` or its nearest ancestor."""
    known = set(bound)
    path = Path(directory)
    return next((str(step) for step in (path, *path.parents) if str(step) in known), None)


def bound_directory(directory: Directory, bound: Iterable[str]) -> str | None:
    """Return the binding that ``directory`` falls under: its own, else its main checkout's."""
    known = set(bound)
    found = longest_bound(directory.path, known)
    if found is None and directory.main_checkout is not None:
        found = longest_bound(directory.main_checkout, known)
    return found


def read_guides(file: Path) -> Mapping[str, str]:
    """Read the mirror of bound directories and guide paths; empty when there is none or it is broken."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _main_checkout(path: Path) -> str | None:
    for step in (path, *path.parents):
        marker = step / ".git"
        if marker.is_dir():
            return None
        if marker.is_file():
            main = _checkout_of(marker)
            return None if main is None else str(main / path.relative_to(step))
    return None


def _checkout_of(marker: Path) -> Path | None:
    """Follow a ``.git`` file to the main checkout.

    A submodule has such a file too, but its Git directory names no common one; a worktree of a bare
    repository has no main checkout.
    """
    try:
        text = marker.read_text(encoding="utf-8").strip()
        if not text.startswith("gitdir:"):
            return None
        git_directory = marker.parent / text.removeprefix("gitdir:").strip()
        common = (git_directory / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    shared = Path(os.path.realpath(git_directory / common))
    return shared.parent if shared.name == ".git" else None
