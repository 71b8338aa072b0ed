"""Small file operations that are done durably or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

SYSTEM_FAULTS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Why a file cannot be read that say nothing about the file."""


class IndexCorruptError(Exception):
    """Files of a generation are missing, changed or of another version; it has to be built again."""


class IndexOutdatedError(IndexCorruptError):
    """They are whole, but of another version."""


def private_directory(path: Path) -> Path:
    """Create a directory that only its owner may enter, with its parents, and return it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def sync_file(path: Path) -> None:
    """Bring a file's content to disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Bring a directory's entries to disk, where the system can do that."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # Windows opens no directories; renames are durable there with the volume.
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, content: bytes) -> None:
    """Replace a file as a whole: readers see the old or the new content, also after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        # Where the disk is full, half a file would take the little room that is left.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, durably."""
    write_durably(path, json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1).encode())


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file that never changes a second name; copied where links are impossible.

    Raises:
        IndexCorruptError: the file is gone.
        OSError: the second one cannot be written.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if not source.is_file():
            raise IndexCorruptError(f"{source.name} is missing") from error
        shutil.copyfile(source, target)
        target.chmod(0o600)
        sync_file(target)


def digest_of(path: Path) -> str:
    """Return the file's hash, as manifests hold it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


FileMark = tuple[int, int, int]
"""Inode, size in bytes and time of the last change in ns; a second name for a file changes none."""


def mark_of(path: Path | str) -> FileMark | None:
    """Return what tells a file from a changed or another one without reading it; none when it is gone."""
    try:
        found = os.stat(path)  # noqa: PTH116 - before each search, and three times as fast
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def files_below(folder: Path) -> dict[str, Path]:
    """Return the files below a folder by their relative POSIX names, sorted."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return dict(sorted((path.relative_to(folder).as_posix(), path) for path in found))


def remove_tree(folder: Path) -> None:
    """Delete a folder; what a system refuses to delete while it is open is left for the next time."""
    shutil.rmtree(folder, ignore_errors=True)
