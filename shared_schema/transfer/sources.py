"""Folders, files and standard input as sources of documents: the part of reading that touches a disk."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final

from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.paths import ancestors
from shared_schema.rules.text import title_of
from shared_schema.transfer.documents import Candidate, Problem, Refused, SourceFile
from shared_schema.transfer.headings import split_candidates
from shared_schema.transfer.knowledge_graph import graph_candidates
from shared_schema.transfer.manifest import MANIFEST_BYTES, MANIFEST_NAME, Manifest, read_manifest
from shared_schema.transfer.naming import slug
from shared_schema.transfer.reading import Entry, ReadOptions, file_candidates, read_entries

STANDARD_INPUT: Final = "-"
FILE_BYTES: Final = 64 * limits.MIB
"""A single file that is split or that holds a graph; each document of it has the usual bound."""
_MARKDOWN: Final = (".md", ".markdown")
_VAULT: Final = ".obsidian"
_SILENT: Final = frozenset({".git", _VAULT, ".trash", MANIFEST_NAME})
"""Hidden names that nobody expects to be memory."""
_OPEN: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A pipe in the place of a file answers at once instead of waiting for a writer."""
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class Format(StrEnum):
    """What a source is."""

    AUTO = "auto"
    MARKDOWN = "markdown"
    OBSIDIAN = "obsidian"
    JSONL = "jsonl"


class Split(StrEnum):
    """Whether one file becomes one document or one for each heading."""

    NONE = "none"
    HEADINGS = "headings"


@dataclass(frozen=True)
class Source:
    """A source that is open: its entries can be read once."""

    name: str
    entries: Iterator[Entry]
    total: int | None = None
    """How many entries there are, where that is known before they are read."""
    others: int = 0
    """Files that are no Markdown, such as attachments; they are left alone."""


def open_source(
    target: str,
    options: ReadOptions,
    stdin: BinaryIO,
    kind: Format = Format.AUTO,
    split: Split = Split.NONE,
) -> Source:
    """Open a folder, a file or ``-``. Files of a folder are read one by one, as they are asked for.

    Raises ``invalid_arguments`` for a source that is not there, cannot be read, or is not of ``kind``.
    """
    if target == STANDARD_INPUT:
        return _one_file("stdin", stdin.read(FILE_BYTES + 1), options, kind, split)
    path = Path(target)
    if path.is_dir():
        return _folder(path, options, kind, split)
    if not path.is_file():
        raise _unfit(f"{target} is neither a folder nor a file")
    content = _bytes(path, FILE_BYTES, flags=_OPEN)
    if isinstance(content, _Unread):
        raise _unfit(f"{target} cannot be read: {content.reason}")
    return _one_file(path.name, content, options, kind, split)


def _folder(root: Path, options: ReadOptions, kind: Format, split: Split) -> Source:
    if split is Split.HEADINGS:
        raise _unfit("--split headings is for one file; a folder's files are documents already")
    if kind is Format.JSONL:
        raise _unfit("a graph is one file of lines; give that file")
    if kind is Format.OBSIDIAN and not (root / _VAULT).is_dir():
        raise _unfit(f"{root} is no vault: it has no folder {_VAULT}. Import it with --format markdown")
    manifest, refused = _manifest(root)
    listing = _listed(root, manifest)
    files = _read_files(listing, refused)
    candidates = file_candidates(files, manifest, same_place=not options.into)
    total = len(listing.files) + len(listing.refused) + len(refused)
    return Source(root.resolve().name or "folder", read_entries(candidates, options), total, listing.others)


def _one_file(name: str, content: bytes, options: ReadOptions, kind: Format, split: Split) -> Source:
    if len(content) > FILE_BYTES:
        raise _unfit(f"{name} is larger than {FILE_BYTES // limits.MIB} MiB; cut it first")
    if kind is Format.OBSIDIAN:
        raise _unfit(f"{name} is one file; a vault is a folder")
    if kind is Format.AUTO:
        kind = _guessed(name, content)
    if kind is Format.JSONL:
        if split is Split.HEADINGS:
            raise _unfit("--split headings is for Markdown; each entity of a graph is a document already")
        candidates = list(graph_candidates(name, content))
        return Source(name, read_entries(candidates, options), len(candidates))
    return Source(name, read_entries(list(_markdown_candidates(name, content, split)), options))


def _markdown_candidates(name: str, content: bytes, split: Split) -> Iterator[Candidate]:
    if split is Split.NONE:
        yield Candidate(name, _path_of(name, content), content)
        return
    try:
        body = content.decode()
    except UnicodeDecodeError:
        # Refused by the common check, which names the byte.
        yield Candidate(name, name, content)
        return
    yield from split_candidates(name, body)


def _path_of(name: str, content: bytes) -> str:
    """Return a single file's path: its name, and for standard input its title."""
    if name != "stdin":
        return name
    return f"{slug(title_of(content.decode('utf-8', 'replace'), ''), 'document')}.md"


def _guessed(name: str, content: bytes) -> Format:
    suffix = Path(name).suffix.lower()
    if suffix in _MARKDOWN:
        return Format.MARKDOWN
    first = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if suffix in {".jsonl", ".ndjson"} or (suffix in {".json", ""} and first == b"{"):
        return Format.JSONL
    if suffix in {"", ".txt"}:
        return Format.MARKDOWN
    raise _unfit(f"{name} does not say what it is; give --format markdown or --format jsonl")


# --- the walk -------------------------------------------------------------------------------


@dataclass
class _Listing:
    exported: frozenset[str] = frozenset()
    """Paths that the folder's manifest names, and the folders above them: they count whatever their
    names look like.
    """
    files: list[tuple[str, Path]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    others: int = 0


def _listed(root: Path, manifest: Manifest | None) -> _Listing:
    """List the Markdown files below a folder, by path. Links are named and never followed."""
    paths = [] if manifest is None else [entry.path for entry in manifest.resources]
    listing = _Listing(frozenset(paths).union(*map(ancestors, paths)))
    folders = [("", root)]
    while folders:
        below, folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if not below:
                raise _unfit(f"{root} cannot be read: {error.strerror}") from None
            listing.refused.append(_unreadable(below[:-1], error))
            continue
        for entry in entries:
            _list_entry(listing, folders, below + entry.name, entry)
    listing.files.sort()
    listing.refused.sort(key=lambda refused: refused.source)
    return listing


def _list_entry(
    listing: _Listing, folders: list[tuple[str, Path]], name: str, entry: os.DirEntry[str]
) -> None:
    exported = unicodedata.normalize("NFC", name) in listing.exported
    markdown = exported or entry.name.lower().endswith(_MARKDOWN)
    if entry.name in _SILENT and not exported:
        return
    if entry.is_symlink():
        if markdown or Path(entry.path).is_dir():
            reason = "It is a symbolic link, which is not followed. Import what it leads to by itself."
            listing.refused.append(Refused(name, Problem.SYMBOLIC_LINK, reason, skipped=True))
        else:
            listing.others += 1
    elif entry.name.startswith(".") and not exported and (markdown or entry.is_dir(follow_symlinks=False)):
        listing.refused.append(Refused(name, Problem.HIDDEN, "Its name begins with a dot.", skipped=True))
    elif entry.is_dir(follow_symlinks=False):
        folders.append((f"{name}/", Path(entry.path)))
    elif markdown:
        listing.files.append((name, Path(entry.path)))
    else:
        listing.others += 1


def _read_files(listing: _Listing, refused: list[Refused]) -> Iterator[SourceFile | Refused]:
    yield from refused
    yield from listing.refused
    for name, path in listing.files:
        content = _bytes(path, limits.BODY_BYTES)
        yield (
            Refused(name, content.code, content.reason)
            if isinstance(content, _Unread)
            else SourceFile(name, content)
        )


def _manifest(root: Path) -> tuple[Manifest | None, list[Refused]]:
    """Return the folder's manifest, or what is wrong with the file of that name."""
    path = root / MANIFEST_NAME
    if not path.is_file() or path.is_symlink():
        return None, []
    content = _bytes(path, MANIFEST_BYTES)
    found = None if isinstance(content, _Unread) else read_manifest(content)
    if found is not None:
        return found, []
    reason = "It is no list of exported documents; the files are imported without it."
    return None, [Refused(MANIFEST_NAME, Problem.MALFORMED_MANIFEST, reason)]


@dataclass(frozen=True, slots=True)
class _Unread:
    code: Problem
    reason: str


def _bytes(path: Path, limit: int, *, flags: int = _OPEN | _NO_LINK) -> bytes | _Unread:
    """Return a regular file's bytes, at most ``limit``."""
    try:
        with os.fdopen(os.open(path, flags), "rb") as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode):
                return _Unread(Problem.UNREADABLE, "It is no regular file.")
            content = stream.read(limit + 1)
    except OSError as error:
        return _Unread(Problem.UNREADABLE, f"It cannot be read: {error.strerror}.")
    if len(content) > limit:
        return _Unread(Problem.TOO_LARGE, f"It is larger than {limit} bytes.")
    return content


def _unreadable(name: str, error: OSError) -> Refused:
    return Refused(name, Problem.UNREADABLE, f"It cannot be read: {error.strerror}.")


def _unfit(problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"{problem}.",
        details={"fields": [{"field": "source", "problem": problem}]},
    )
