"""Paths that are made: from headings and names, and from file names that no path may have."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from shared_schema import limits
from shared_schema.errors import InterleafError
from shared_schema.rules.paths import allowed_character, normalise_path, path_key

_SLUG_CHARACTERS: Final = 80
_SLUG_BYTES: Final = 200
_DASHES: Final = re.compile("-{2,}")
_LONGEST_SUFFIX: Final = 16


def slug(text: str, fallback: str) -> str:
    """Return a path segment made of ``text``: lower case, letters and digits of every script kept,
    all else a dash; ``fallback`` where nothing is left.
    """
    lowered = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    kept = "".join(
        character
        if character == "_" or (unicodedata.category(character)[0] in "LNM" and allowed_character(character))
        else "-"
        for character in lowered
    )
    joined = _DASHES.sub("-", kept)[:_SLUG_CHARACTERS].strip("-")
    # A mark without the letter that it stood on would join the character before it.
    cut = unicodedata.normalize("NFC", _cut(joined, _SLUG_BYTES).strip("-"))
    return sanitised(cut or fallback)


def sanitised(path: str) -> str:
    """Return the nearest path that the rules allow, as far as there is one.

    Characters that may not be in a path become dashes, ends of segments are trimmed, device names
    and ids get an underscore, and what is too long is cut before its suffix. A path that has no such
    neighbour comes back unfit, to be refused by `normalise_path`.
    """
    segments = [_segment(segment) for segment in unicodedata.normalize("NFC", path).split("/")]
    joined = "/".join(segment for segment in segments if segment)
    return f"_{joined}" if _rule(joined) == "id_like" else joined


def numbered(path: str, number: int) -> str:
    """Return the path with a number before its suffix: ``a/b.md`` and 2 give ``a/b-2.md``."""
    folder, slash, name = path.rpartition("/")
    stem, suffix = _split(name)
    tail = f"-{number}{suffix}"
    return f"{folder}{slash}{_cut(stem, limits.SEGMENT_BYTES - len(tail.encode()))}{tail}"


def unique(wanted: str, taken: set[str]) -> str:
    """Return ``wanted``, numbered where its key is in ``taken``, and add its key there."""
    path, number = wanted, 1
    while path_key(path) in taken:
        number += 1
        path = numbered(wanted, number)
    taken.add(path_key(path))
    return path


def _segment(segment: str) -> str:
    replaced = "".join(character if allowed_character(character) else "-" for character in segment)
    trimmed = replaced.strip()
    while trimmed != (shorter := trimmed.rstrip(".").strip()):
        trimmed = shorter
    stem, suffix = _split(trimmed)
    if len(trimmed.encode()) > limits.SEGMENT_BYTES:
        trimmed = _cut(stem, limits.SEGMENT_BYTES - len(suffix.encode())).rstrip(" .") + suffix
    if _rule(trimmed) == "segment_device":
        first, dot, rest = trimmed.partition(".")
        trimmed = f"{first.rstrip()}_{dot}{rest}"
    return trimmed


def _split(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix.encode()) > _LONGEST_SUFFIX:
        return name, ""
    return stem, dot + suffix


def _cut(text: str, size: int) -> str:
    """Return as much of the text as ``size`` bytes hold, whole characters only."""
    return text.encode()[: max(size, 0)].decode("utf-8", "ignore")


def _rule(path: str) -> str | None:
    try:
        normalise_path(path)
    except InterleafError as error:
        return str(error.details["rule"])
    return None
