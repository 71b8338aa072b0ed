"""What a body and a description may hold, and which title a document shows.

Texts are kept as they came: nothing here normalises, trims or repairs.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, Never

from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError

_ATX: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z")
_CLOSING_HASHES: Final = re.compile(r"(?:\A|[ \t])#+[ \t]*\Z")
_SETEXT: Final = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)\Z")
_RULE: Final = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\Z")
_CONTAINER: Final = re.compile(
    r" {0,3}(?:>|(?!(?:[-*][ \t]*){3,}\Z)[-+*](?:[ \t]|\Z)|\d{1,9}[.)](?:[ \t]|\Z))"
)
"""Starts of block quotes and list items."""
_INDENTED: Final = ("    ", "\t", " \t", "  \t", "   \t")
_LINE: Final = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BOM: Final = "\ufeff"
_VISIBLE: Final = re.compile(r"[^\s\u200b-\u200f\u2060\ufeff]")


class Heading(NamedTuple):
    """A heading at the top level of a document that has text."""

    level: int
    text: str
    """White space joined, inline markup kept, cut at 300 characters."""
    start: int
    """Position in the document of the first character of its first line."""


def check_body(text: str) -> None:
    """Raise ``invalid_arguments`` unless ``text`` can be a body: not blank, at most 1 MiB of UTF-8,
    without NUL and without halves of characters (lone surrogates).

    ``details.fields`` is ``[{"field": "body", "problem": …}]``.
    """
    if is_blank(text):
        _refuse("body", "is blank; a document needs text")
    _check_characters("body", text)
    # Every character has at least one byte, so most texts are decided without encoding them.
    if len(text) > limits.BODY_BYTES or len(text.encode()) > limits.BODY_BYTES:
        _refuse("body", f"is larger than {limits.BODY_BYTES} bytes in UTF-8")


def is_blank(text: str) -> bool:
    """Tell whether nothing of the text can be seen."""
    return not _VISIBLE.search(text)


def check_description(text: str) -> None:
    """Raise ``invalid_arguments`` unless ``text`` can be a description: at most 2,000 characters,
    without NUL and lone surrogates. It may be empty.
    """
    if len(text) > limits.DESCRIPTION_CHARACTERS:
        _refuse("description", f"is longer than {limits.DESCRIPTION_CHARACTERS} characters")
    _check_characters("description", text)


def title_of(body: str, path: str) -> str:
    """Return the document's title: its first level-1 heading, else its first heading, else the
    last segment of ``path`` without ``.md``.

    Headings are ATX or Setext headings of CommonMark at the top level of the document. Those in
    fenced code, indented code, block quotes and front matter are none. A line scanner finds them,
    not a Markdown parser: HTML blocks and text indented below a list item are read as if they stood
    at the top level. The title has its runs of white space joined, keeps inline markup, and is cut
    at 300 characters.
    """
    first: str | None = None
    for heading in headings(body):
        if heading.level == 1:
            return heading.text
        if first is None:
            first = heading.text
    name = path.rpartition("/")[2]
    return first or name.removesuffix(".md") or name


def strip_front_matter(body: str) -> str:
    """Return the text after a leading ``---`` block, or the whole text when there is none.

    The block has to be the first thing in the text (a BOM aside) and to be closed by ``---`` or
    ``...``; one that never ends is ordinary text.
    """
    lines = _LINE.finditer(body, 1 if body.startswith(_BOM) else 0)
    if next(lines)[1].rstrip() != "---":
        return body
    for line in lines:
        if line[1].rstrip() in {"---", "..."}:
            return body[line.end() :]
    return body


def headings(body: str) -> Iterator[Heading]:
    """Yield every heading that has text, in order; `title_of` says what is one."""
    paragraph: list[str] = []
    began = 0
    in_container = False
    text = strip_front_matter(body)
    offset = len(body) - len(text)
    if text.startswith(_BOM):
        text, offset = text[1:], offset + 1
    for start, line in _lines_outside_fences(text):
        if not line.strip():
            paragraph, in_container = [], False
        elif atx := _ATX.match(line):
            paragraph, in_container = [], False
            if title := _plain(_CLOSING_HASHES.sub("", atx[2] or "")):
                yield Heading(len(atx[1]), title, offset + start)
        elif paragraph and (underline := _SETEXT.match(line)):
            level = 1 if underline[1][0] == "=" else 2
            yield Heading(level, _plain(" ".join(paragraph)), offset + began)
            paragraph = []
        elif _CONTAINER.match(line):
            # What follows up to a blank line belongs to the quote or the list item.
            paragraph, in_container = [], True
        elif _RULE.match(line):
            paragraph, in_container = [], False
        elif not in_container and (paragraph or not line.startswith(_INDENTED)):
            began = began if paragraph else start
            paragraph.append(line)


def _lines_outside_fences(text: str) -> Iterator[tuple[int, str]]:
    """Yield every line and where it starts; a fenced code block counts as one blank line."""
    fence = ""
    for line_match in _LINE.finditer(text):
        line = line_match[1]
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
        elif match and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
            yield line_match.start(), ""
        else:
            yield line_match.start(), line


def _plain(text: str) -> str:
    return " ".join(text.split())[: limits.TITLE_CHARACTERS]


def _check_characters(field: str, text: str) -> None:
    if "\0" in text:
        _refuse(field, "holds a NUL character")
    if found := _SURROGATE.search(text):
        _refuse(field, f"holds half a character (a lone surrogate) at position {found.start()}")


def _refuse(field: str, problem: str) -> Never:
    raise InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"The {field} {problem}.",
        details={"fields": [{"field": field, "problem": problem}]},
    )
