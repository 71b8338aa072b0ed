"""The description in a document's YAML front matter.

A small reader of one key, not a YAML parser: it takes plain, quoted and block scalars and answers
None for whatever else stands there. The front matter itself stays in the body.
"""

from __future__ import annotations

import json
import re
from typing import Final

from shared_schema.rules.text import strip_front_matter

_KEY: Final = re.compile(r"description:(?:[ \t]+(.*)|[ \t]*)\Z")
_BLOCK: Final = re.compile(r"([|>])[-+0-9]{0,2}[ \t]*(?:#.*)?\Z")
_COMMENT: Final = re.compile(r"(?:\A|[ \t])#.*\Z")
_DOUBLE: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_SINGLE: Final = re.compile(r"'((?:[^']|'')*)'")
_OTHER: Final = ("[", "{", "&", "*", "!", "%", "@", "`")
"""Starts of values that are no plain text."""
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})


def description_of(body: str) -> str | None:
    """Return the front matter's ``description``, or None without one that is text."""
    block = body[: len(body) - len(strip_front_matter(body))]
    lines = re.split(r"\r\n|\r|\n", block)
    for place, line in enumerate(lines):
        if (match := _KEY.match(line)) is not None:
            return _value((match[1] or "").strip(), _continuation(lines[place + 1 :])) or None
    return None


def _continuation(lines: list[str]) -> list[str]:
    """Return the lines that belong to the value above them."""
    taken: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith((" ", "\t")):
            break
        taken.append(line)
    while taken and not taken[-1].strip():
        taken.pop()
    return taken


def _value(first: str, following: list[str]) -> str | None:
    if (block := _BLOCK.match(first)) is not None:
        lines = [line.strip() for line in following]
        return ("\n" if block[1] == "|" else " ").join(lines).strip()
    text = " ".join(part for part in (first, *(line.strip() for line in following)) if part)
    if (quoted := _DOUBLE.match(text)) is not None:
        try:
            return str(json.loads(quoted[0])).strip()
        except ValueError:
            return quoted[0][1:-1].strip()
    if (single := _SINGLE.match(text)) is not None:
        return single[1].replace("''", "'").strip()
    plain = _COMMENT.sub("", text).strip()
    return None if plain in _NULL or plain.startswith(_OTHER) else plain
