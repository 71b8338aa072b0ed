"""From candidates to documents: every rule on text and path, and every path once.

Pure and lazy: one entry is held at a time, besides the paths seen so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from shared_schema import limits
from shared_schema.errors import InterleafError
from shared_schema.rules.hashing import content_hash
from shared_schema.rules.paths import PathSet, normalise_path, path_key
from shared_schema.rules.text import check_body, check_description
from shared_schema.transfer.documents import Candidate, Document, Problem, Refused, SourceFile, shown
from shared_schema.transfer.front_matter import description_of
from shared_schema.transfer.manifest import ExportedResource, Manifest
from shared_schema.transfer.naming import numbered, sanitised

_NUMBERS: Final = 1_000
_NO_ENTRIES: Final[Mapping[str, ExportedResource]] = {}

Entry = Document | Refused


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How entries become documents."""

    into: str = ""
    """A path in NFC below which all documents go; empty: they keep theirs."""
    rename_paths: bool = False
    """Give paths that are not allowed, and twins, the nearest one that is."""


def prefix(into: str) -> str:
    """Return the path that documents go below, as it is stored; ``invalid_path`` for an unfit one."""
    bare = into.rstrip("/")
    return normalise_path(bare) if bare else ""


def file_candidates(
    files: Iterable[SourceFile | Refused], manifest: Manifest | None = None, *, same_place: bool = True
) -> Iterator[Candidate | Refused]:
    """Yield a candidate for each file. What the folder's manifest says of a file goes with it.

    A description of the manifest holds as long as the file is as it was exported; afterwards that of
    the front matter comes first. ``same_place`` false leaves the ids out: a copy is another resource.
    """
    listed = _NO_ENTRIES if manifest is None else {entry.path: entry for entry in manifest.resources}
    for file in files:
        if isinstance(file, Refused):
            yield file
            continue
        entry = listed.get(_stored(file.path))
        if entry is None:
            yield Candidate(file.path, file.path, file.content)
            continue
        described: str | None = entry.description
        text = file.content.decode("utf-8", "replace")
        if content_hash(text) != entry.content_hash:
            described = description_of(text) or entry.description
        yield Candidate(
            file.path, file.path, file.content, described, entry.resource_id if same_place else None
        )


def read_entries(candidates: Iterable[Candidate | Refused], options: ReadOptions) -> Iterator[Entry]:
    """Yield for each candidate the document that it becomes, or why it becomes none."""
    paths = _Paths(options)
    for candidate in candidates:
        yield candidate if isinstance(candidate, Refused) else _read(candidate, paths)


class _RefusedError(Exception):
    def __init__(self, code: Problem, reason: str) -> None:
        self.code = code
        super().__init__(reason)


def _read(candidate: Candidate, paths: _Paths) -> Entry:
    try:
        body = _body(candidate.content)
        path, moved = paths.take(candidate.path)
    except _RefusedError as refused:
        return Refused(candidate.source, refused.code, str(refused), candidate.path)
    described = candidate.description
    if described is None:
        described = description_of(body)
    described, shortened = _description(described)
    notes = [
        *([f"renamed from {shown(candidate.path)}"] if moved else []),
        *([f"description cut to {limits.DESCRIPTION_CHARACTERS} characters"] if shortened else []),
    ]
    return Document(candidate.source, path, body, described, candidate.resource_id, "; ".join(notes) or None)


def _body(content: bytes | str) -> str:
    """Return the text, which can be a body, unchanged."""
    if len(content) > limits.BODY_BYTES:
        raise _RefusedError(Problem.TOO_LARGE, f"It is larger than {limits.BODY_BYTES} bytes.")
    try:
        text = content.decode() if isinstance(content, bytes) else content
        size = len(text.encode())
    except UnicodeDecodeError as error:
        raise _RefusedError(Problem.NOT_UTF8, f"It is not UTF-8 (at byte {error.start}).") from None
    except UnicodeEncodeError:
        raise _RefusedError(Problem.BAD_CHARACTER, "It holds half a character (a lone surrogate).") from None
    if "\0" in text:
        raise _RefusedError(Problem.BAD_CHARACTER, "It holds a NUL character.")
    if size > limits.BODY_BYTES:
        raise _RefusedError(Problem.TOO_LARGE, f"It is larger than {limits.BODY_BYTES} bytes.")
    try:
        check_body(text)
    except InterleafError as error:
        raise _RefusedError(Problem.BLANK, error.message) from None
    return text


def _description(text: str | None) -> tuple[str | None, bool]:
    """Return a description that can be stored, and whether it was shortened."""
    if text is None:
        return None, False
    cut = text[: limits.DESCRIPTION_CHARACTERS]
    try:
        check_description(cut)
    except InterleafError:
        return None, False
    return cut, cut != text


def _stored(path: str) -> str:
    try:
        return normalise_path(path)
    except InterleafError:
        return path


@dataclass
class _Paths:
    """The paths taken so far by this import."""

    options: ReadOptions
    _taken: PathSet = field(default_factory=PathSet)

    def take(self, raw: str) -> tuple[str, bool]:
        """Return the path that is stored for ``raw``, and whether it is another one."""
        wanted = f"{self.options.into}/{raw}" if self.options.into else raw
        moved = False
        try:
            path = normalise_path(wanted)
        except InterleafError as error:
            if not self.options.rename_paths:
                raise _invalid(error) from None
            path, moved = self._renamed(wanted), True
        holder = self._taken.find_clash(path)
        if holder is not None and self.options.rename_paths:
            path, moved, holder = self._numbered(path, holder), True, None
        if holder is not None:
            raise _clash(path, holder)
        self._taken.add(path, path)
        return path, moved

    def _renamed(self, wanted: str) -> str:
        try:
            return normalise_path(sanitised(wanted))
        except InterleafError as error:
            raise _invalid(error) from None

    def _numbered(self, path: str, holder: str) -> str:
        """Return the path with a number where it meets ``holder``, which is at, above or below it."""
        segments = path.split("/")
        meeting = holder.count("/") + 1
        met, rest = "/".join(segments[:meeting]), segments[meeting:]
        for number in range(2, _NUMBERS):
            candidate = "/".join([numbered(met, number), *rest])
            if self._taken.find_clash(candidate) is None:
                return candidate
        raise _RefusedError(Problem.PATH_TWIN, f"{_NUMBERS} entries have this path already.")


def _invalid(error: InterleafError) -> _RefusedError:
    return _RefusedError(Problem.INVALID_PATH, f"{error.message} (rule {error.details['rule']})")


def _clash(path: str, holder: str) -> _RefusedError:
    if path_key(path) == path_key(holder):
        how = "is the same path" if path == holder else "differs by case or normalisation only"
        return _RefusedError(Problem.PATH_TWIN, f"The path of another entry {how}: {holder}")
    return _RefusedError(Problem.PATH_ANCESTOR, f"The path of another entry is above or below it: {holder}")
