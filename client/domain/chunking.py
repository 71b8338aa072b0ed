"""Units: the pieces of a resource that are searched for and returned.

A body is cut along its Markdown structure. A section holds its own text only, not its children's;
path, title and headings are context for embedding and ranking and no part of the returned text.
Headings are those at the top level of the document: not in code fences, lists, quotations or front
matter. Long sections are cut further, short neighbours under one heading are joined.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, Protocol

from markdown_it import MarkdownIt

from client.domain.splitting import MAX_TOKENS, TARGET_TOKENS, atoms_of, line_starts, windows

CHUNKER_VERSION: Final = 1
"""Changes when the same document would give other units; an index of another version is rebuilt."""

CountTokens = Callable[[Sequence[str]], list[int]]

_SHORT_TOKENS: Final = 64
"""A section of at most so many tokens is joined with short neighbours."""
_TITLE_CHARACTERS: Final = 160
_CONTEXT_PATH: Final = 100
_CONTEXT_HEADINGS: Final = 200
"""Characters of path and headings in a passage. A token is at least a character, so that context
never fills more than ``MAX_TOKENS`` leave for at least 64 tokens of text."""

_FRONT_MATTER_LINES: Final = 500
_YAML_KEY: Final = re.compile(r"[\w\"'.-][^:\r\n]*:|[ \t]*#")
_SLUG: Final = re.compile(r"[\W_]+")
_BLANK_LINES: Final = re.compile(r"(?:[^\S\r\n]*(?:\r\n?|\n))*")


class Document(Protocol):
    """What is cut: an ``EffectiveResource`` has these."""

    @property
    def resource_id(self) -> str: ...  # noqa: D102 - named as in EffectiveResource
    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def description(self) -> str: ...  # noqa: D102
    @property
    def body(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of a resource.

    ``text`` is ``source[chars[0]:chars[1]]`` exactly, where the source is the body, or the description
    for ``kind`` "description"; ``span`` is the same in UTF-8 bytes. ``tokens`` counts ``text`` alone.
    """

    unit_key: str
    resource_id: str
    path: str
    title: str
    heading_path: tuple[str, ...]
    kind: Literal["description", "body"]
    text: str
    chars: tuple[int, int]
    span: tuple[int, int]
    content_hash: str
    tokens: int


@dataclass(slots=True)
class _Section:
    """A heading and its own text: ``body[start:end]``, its heading line at ``heading_start``."""

    headings: tuple[str, ...]
    heading_start: int
    start: int
    end: int
    block_ends: list[int]
    has_children: bool = False
    tokens: int = 0
    joined: int = 1
    """How many sections were joined into this one."""


@dataclass(slots=True)
class _Piece:
    kind: Literal["description", "body"]
    headings: tuple[str, ...]
    key: str
    start: int
    end: int


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    # Link definitions would vanish from the token stream; as paragraphs they keep their lines.
    parser.block.ruler.disable("reference")
    return parser


_MARKDOWN: Final = _parser()


def text_hash(text: str) -> str:
    """Return ``sha256:…`` of the text; a lone surrogate is hashed, not refused."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def slug(heading: str) -> str:
    """Return a heading as it stands in a unit key: letters and digits of any script, ``-`` between."""
    return _SLUG.sub("-", heading.casefold()).strip("-") or "section"


def passage_of(unit: Unit) -> str:
    """Return what is embedded: path, then title and headings, then the text."""
    return f"{_context(unit.path, unit.title, unit.heading_path)}\n{unit.text}"


def _context(path: str, title: str, headings: tuple[str, ...]) -> str:
    if headings and headings[0] == title:
        headings = headings[1:]
    line = " > ".join([title, *headings])
    # The end says most: the file's name, the innermost heading.
    return f"{path[-_CONTEXT_PATH:]}\n{line[-_CONTEXT_HEADINGS:]}"


def cut(document: Document, count_tokens: CountTokens) -> list[Unit]:
    """Return the units of a document: the description's, then the body's in document order.

    ``count_tokens`` counts in the embedder's tokens, special ones left out; it is called a bounded
    number of times, with many texts at once. ``unit_key`` is resource id, normalised heading path,
    occurrence of that path, and part, so that a section keeps its keys when other sections change.
    """
    pieces = _description_pieces(document, count_tokens) + _body_pieces(document, count_tokens)
    sources = {"description": document.description, "body": document.body}
    texts = [sources[piece.kind][piece.start : piece.end] for piece in pieces]
    offsets = {kind: _byte_offsets(sources[kind], [p for p in pieces if p.kind == kind]) for kind in sources}
    return [
        Unit(
            unit_key=f"{document.resource_id}/{piece.key}",
            resource_id=document.resource_id,
            path=document.path,
            title=document.title,
            heading_path=piece.headings,
            kind=piece.kind,
            text=text,
            chars=(piece.start, piece.end),
            span=(offsets[piece.kind][piece.start], offsets[piece.kind][piece.end]),
            content_hash=text_hash(text),
            tokens=tokens,
        )
        for piece, text, tokens in zip(pieces, texts, count_tokens(texts) if texts else [], strict=True)
    ]


def _description_pieces(document: Document, count_tokens: CountTokens) -> list[_Piece]:
    description = document.description
    start, end = _trim(description, 0, len(description))
    if start >= end:
        return []
    context = _context(document.path, document.title, ())
    atoms = atoms_of(description, start, end, ())
    counts = count_tokens([context, *(description[atom.start : atom.end] for atom in atoms)])
    # "@" never stands in a normalised heading, so a section named Description is another key.
    return [
        _Piece("description", (), f"@description/0/{part}", *_trim(description, *window))
        for part, window in enumerate(windows(atoms, counts[1:], counts[0]))
    ]


def _body_pieces(document: Document, count_tokens: CountTokens) -> list[_Piece]:
    body = document.body
    sections = _sections(body)
    atoms = [atoms_of(body, section.start, section.end, section.block_ends) for section in sections]
    contexts = [_context(document.path, document.title, section.headings) for section in sections]
    counts = count_tokens([*contexts, *(body[atom.start : atom.end] for each in atoms for atom in each)])
    context_counts, rest = counts[: len(contexts)], iter(counts[len(contexts) :])
    atom_counts = [[next(rest) for _ in each] for each in atoms]
    for section, own in zip(sections, atom_counts, strict=True):
        section.tokens = sum(own)

    pieces: list[_Piece] = []
    occurrences: Counter[str] = Counter()
    index = 0
    while index < len(sections):
        section = sections[index]
        group = _short_neighbours(sections, index, context_counts[index])
        key = "/".join(slug(heading) for heading in section.headings) or "section"
        key = f"{key}/{occurrences[key]}"
        # Sections that were joined away still count, so that joining renumbers nobody else.
        for member in sections[index : index + group]:
            occurrences["/".join(slug(heading) for heading in member.headings) or "section"] += 1
        if group > 1:
            window = _trim(body, section.heading_start, sections[index + group - 1].end)
            pieces.append(_Piece("body", section.headings[:-1], f"{key}/0", *window))
        else:
            found = windows(atoms[index], atom_counts[index], context_counts[index])
            trimmed = [_trim(body, *window) for window in found]
            trimmed = [(start, end) for start, end in trimmed if start < end]
            if not trimmed and section.headings and not section.has_children:
                # Nothing but its heading: the heading line is the text, else it could not be found.
                trimmed = [_trim(body, section.heading_start, section.start)]
            pieces.extend(
                _Piece("body", section.headings, f"{key}/{part}", *window)
                for part, window in enumerate(trimmed)
            )
        index += group
    return pieces


def _short_neighbours(sections: Sequence[_Section], index: int, context: int) -> int:
    """Return how many sections from ``index`` on become one unit: siblings, all short, no children."""
    first = sections[index]
    total = context
    count = 0
    for position in range(index, len(sections)):
        section = sections[position]
        heading_tokens = len(section.headings[-1]) // 3 + 2 if section.headings else 0
        total += section.tokens + heading_tokens
        if (
            not section.headings
            or section.headings[:-1] != first.headings[:-1]
            or section.tokens > _SHORT_TOKENS
            or section.has_children
            or total > TARGET_TOKENS
        ):
            break
        count += 1
    return max(count, 1)


def _sections(body: str) -> list[_Section]:
    """Return the document's sections in order, the text before the first heading included."""
    lines = line_starts(body)
    first_line = _front_matter_lines(body, lines)
    offset = lines[first_line] if first_line else int(body.startswith("\ufeff"))
    lines.append(len(body))

    def at(line: int) -> int:
        return lines[min(line + first_line, len(lines) - 1)]

    sections = [_Section((), 0, 0, len(body), [offset] if first_line else [])]
    stack: list[tuple[int, _Section]] = []
    tokens = _MARKDOWN.parse(body[offset:])
    for number, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        if token.type != "heading_open":
            sections[-1].block_ends.append(at(token.map[1]))
            continue
        level = int(token.tag[1])
        while stack and stack[-1][0] >= level:
            stack.pop()
        above: tuple[str, ...] = ()
        if stack:
            above = stack[-1][1].headings
            stack[-1][1].has_children = True
        title = " ".join(tokens[number + 1].content.split())[:_TITLE_CHARACTERS].rstrip()
        start, end = at(token.map[0]), at(token.map[1])
        sections[-1].end = start
        sections.append(_Section((*above, title), start, end, len(body), []))
        stack.append((level, sections[-1]))
    return sections


def _front_matter_lines(body: str, lines: Sequence[int]) -> int:
    """Return how many lines at the start are YAML front matter; 0 when there is none or it never ends."""
    stripped = [
        body[start:end].strip("\ufeff \t\r\n") for start, end in pairwise(lines[:_FRONT_MATTER_LINES])
    ]
    if len(stripped) < 2 or stripped[0] != "---" or not _YAML_KEY.match(stripped[1]):
        return 0
    ends = (number for number, line in enumerate(stripped) if number and line in ("---", "..."))
    return next(ends, -1) + 1


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out blank lines before and white space after; indentation of the first line stays."""
    blank = _BLANK_LINES.match(text, start, end)
    start = blank.end() if blank else start
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _byte_offsets(text: str, pieces: Sequence[_Piece]) -> dict[int, int]:
    """Return the UTF-8 offset of each piece's start and end, in one pass over the text."""
    points = sorted({point for piece in pieces for point in (piece.start, piece.end)})
    if text.isascii():
        return {point: point for point in points}
    found: dict[int, int] = {}
    position = total = 0
    for point in points:
        total += len(text[position:point].encode("utf-8", "surrogatepass"))
        position = point
        found[point] = total
    return found


__all__ = ["CHUNKER_VERSION", "MAX_TOKENS", "Document", "Unit", "cut", "passage_of", "slug", "text_hash"]
