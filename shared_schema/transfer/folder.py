"""An exported folder: every text byte for byte in a file of its path, and a list of them all.

Nothing is ever written outside of the folder, whatever lies in it; a file is replaced as a whole or
not at all; the list comes last, so a folder without it is one that was not finished. The team may read
it if the umask says so, the world may not.
"""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import Final

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.hashing import content_hash
from shared_schema.rules.paths import PathSet, normalise_path
from shared_schema.transfer.documents import Outcome, Problem, ReportItem, shown
from shared_schema.transfer.manifest import (
    MANIFEST_NAME,
    ExportedResource,
    Manifest,
    read_manifest,
    write_manifest,
)

_FOLDER_MODE: Final = 0o770
_FILE_MODE: Final = 0o660


class FolderWriter:
    """Writes one folder; `write` each document, then `finish`."""

    def __init__(self, root: Path, *, force: bool = False) -> None:
        """Make the folder, or take an empty one; with ``force`` also one with files in it.

        Raises ``already_exists`` for one with files, and ``invalid_arguments`` where it cannot be made.
        """
        self._root = root
        self._taken = PathSet()
        self._written: dict[str, ExportedResource] = {}
        self.left_out: list[ReportItem] = []
        """What could not be written, as lines of a report."""
        try:
            root.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            occupied = next(root.iterdir(), None) is not None
        except OSError as error:
            raise _failed(root, error) from None
        if occupied and not force:
            raise InterleafError(
                ErrorCode.ALREADY_EXISTS,
                f"{root} has files in it. Choose another folder, or write into it with --force.",
                details={"folder": str(root)},
            )
        self._former = self._read_former() if occupied else {}

    @property
    def count(self) -> int:
        """How many documents were written."""
        return len(self._written)

    def write(self, resource: ExportedResource, body: str) -> None:
        """Write one document. One whose path is unsafe or taken is left out and noted.

        Raises ``invalid_arguments`` where the disk refuses, and ``storage_full``.
        """
        problem = self._problem(resource)
        if problem is not None:
            code, reason = problem
            item = ReportItem(
                source=resource.resource_id,
                outcome=Outcome.REFUSED,
                path=shown(resource.path),
                code=str(code),
                reason=reason,
            )
            self.left_out.append(item)
            return
        self._replace(resource.path, body.encode())
        self._taken.add(resource.path, resource.resource_id)
        self._written[resource.path] = resource

    def clear(self) -> None:
        """Take away what this writer wrote, because the state that it is of is no more."""
        for path, resource in self._written.items():
            self._remove(path, resource.content_hash)

    def finish(self, manifest: Manifest) -> None:
        """Write the list, and take away what an earlier export left that is not among the documents.

        A file that was changed since it was exported is kept.
        """
        complete = manifest.model_copy(
            update={"resources": [self._written[path] for path in sorted(self._written)]}
        )
        for path, digest in self._former.items():
            if path not in self._written:
                self._remove(path, digest)
        self._replace(MANIFEST_NAME, write_manifest(complete))

    def _problem(self, resource: ExportedResource) -> tuple[Problem, str] | None:
        try:
            stored = normalise_path(resource.path)
        except InterleafError as error:
            return Problem.INVALID_PATH, error.message
        if stored != resource.path or stored.startswith(MANIFEST_NAME):
            return Problem.INVALID_PATH, "A file of this path would not be found again."
        holder = self._taken.find_clash(stored, resource.resource_id)
        if holder is not None:
            return Problem.PATH_TWIN, f"The path is that of {holder}, or above or below it."
        if self._leads_elsewhere(stored):
            return Problem.SYMBOLIC_LINK, "A symbolic link stands in the way; it is not followed."
        return None

    def _leads_elsewhere(self, path: str) -> bool:
        place = self._root
        for segment in path.split("/"):
            place /= segment
            if place.is_symlink():
                return True
        return False

    def _replace(self, path: str, content: bytes) -> None:
        target = self._root.joinpath(*path.split("/"))
        temporary = target.with_name(f".{secrets.token_hex(8)}.interleaf")
        try:
            target.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            try:
                with os.fdopen(os.open(temporary, flags, _FILE_MODE), "wb") as stream:
                    stream.write(content)
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise _failed(target, error) from None

    def _read_former(self) -> dict[str, str]:
        """Return path → content hash of what an earlier export wrote here."""
        path = self._root / MANIFEST_NAME
        if path.is_symlink() or not path.is_file():
            return {}
        found = read_manifest(path.read_bytes())
        return {} if found is None else {entry.path: entry.content_hash for entry in found.resources}

    def _remove(self, path: str, digest: str) -> None:
        try:
            if normalise_path(path) != path or self._leads_elsewhere(path):
                return
            target = self._root.joinpath(*path.split("/"))
            if content_hash(target.read_bytes().decode()) != digest:
                return
            target.unlink()
            for folder in target.relative_to(self._root).parents:
                if folder != Path():
                    (self._root / folder).rmdir()
        except (OSError, ValueError, InterleafError):
            # Gone already, changed, or a folder with other files in it: then it stays as it is.
            return


def _failed(path: Path, error: OSError) -> InterleafError:
    if error.errno in {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}:
        return InterleafError(ErrorCode.STORAGE_FULL, f"The disk is full; {path} was not written.")
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"{path} cannot be written: {error.strerror}. Choose another folder.",
    )
