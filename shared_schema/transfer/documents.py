"""What is read from a source, and what becomes of every entry of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from shared_schema.memory import Contract


class Outcome(StrEnum):
    """What an import does with one entry."""

    IMPORTED = "imported"
    """A new document."""
    CHANGED = "changed"
    """Other content for a document that is there: an update."""
    UNCHANGED = "unchanged"
    """The document is there with the same content."""
    REFUSED = "refused"
    """It cannot be a document; the code and the reason say why. It holds nothing else up."""
    SKIPPED = "skipped"
    """Left out by design, and named all the same: links and what is hidden."""


class Problem(StrEnum):
    """Why an entry is refused or skipped; a refusal by the store carries that error's code instead."""

    NOT_UTF8 = "not_utf8"
    BLANK = "blank"
    TOO_LARGE = "too_large"
    BAD_CHARACTER = "bad_character"
    INVALID_PATH = "invalid_path"
    PATH_TWIN = "path_twin"
    """Another entry's path differs by case or normalisation only."""
    PATH_ANCESTOR = "path_ancestor"
    """Another entry's path is above or below it."""
    MALFORMED_LINE = "malformed_line"
    MALFORMED_MANIFEST = "malformed_manifest"
    UNREADABLE = "unreadable"
    SYMBOLIC_LINK = "symbolic_link"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was read: its ``/``-separated path below the root, and its bytes."""

    path: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """What wants to be a document, before any rule was asked."""

    source: str
    path: str
    content: bytes | str
    description: str | None = None
    resource_id: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document that fulfils every rule on path and text; its body is byte for byte the source's."""

    source: str
    path: str
    body: str
    description: str | None = None
    """None: the source says nothing about it."""
    resource_id: str | None = None
    """The resource that the source was exported from."""
    note: str | None = None
    """What was done to it besides: another path, a shortened description."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry that becomes no document."""

    source: str
    code: str
    reason: str
    path: str | None = None
    skipped: bool = False


class ReportItem(Contract):
    """One line of an import's report."""

    source: str
    outcome: Outcome
    path: str | None = None
    code: str | None = None
    reason: str | None = None
    note: str | None = None
    resource_id: str | None = None
    draft_id: str | None = None


class Counts(Contract):
    """How many entries had which outcome."""

    imported: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: int = 0
    skipped: int = 0


def refusal_item(refused: Refused) -> ReportItem:
    """Return the report's line of an entry that becomes no document."""
    return ReportItem(
        source=shown(refused.source),
        outcome=Outcome.SKIPPED if refused.skipped else Outcome.REFUSED,
        path=None if refused.path is None else shown(refused.path),
        code=str(refused.code),
        reason=shown(refused.reason),
    )


def counted(items: Iterable[ReportItem]) -> Counts:
    """Count a report."""
    found = dict.fromkeys((outcome.value for outcome in Outcome), 0)
    for item in items:
        found[item.outcome.value] += 1
    return Counts(**found)


def shown(text: str) -> str:
    """Return a name as JSON and a terminal can carry it: halves of characters are written out."""
    return text.encode("utf-8", "backslashreplace").decode()
