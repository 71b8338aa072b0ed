"""One long file as several documents: cut at its first two levels of headings."""

from __future__ import annotations

from collections.abc import Iterator

from shared_schema.rules.text import headings, is_blank
from shared_schema.transfer.documents import Candidate
from shared_schema.transfer.naming import slug, unique

_DEEPEST = 2
PREAMBLE = "preamble"


def pieces(body: str) -> list[tuple[str | None, str]]:
    """Return heading and text of every piece; joined together, the texts are ``body``.

    A piece begins with a heading of level 1 or 2 outside of code. What stands before the first one
    is a piece without a heading, unless it is blank: then it belongs to the first piece.
    """
    starts = [(found.start, found.text) for found in headings(body) if found.level <= _DEEPEST]
    if not starts:
        return [(None, body)]
    if is_blank(body[: starts[0][0]]):
        starts[0] = 0, starts[0][1]
    ends = [start for start, _ in starts[1:]] + [len(body)]
    cut: list[tuple[str | None, str]] = [
        (title, body[start:end]) for (start, title), end in zip(starts, ends, strict=True)
    ]
    before = body[: starts[0][0]]
    return [(None, before), *cut] if before else cut


def split_candidates(source: str, body: str) -> Iterator[Candidate]:
    """Yield a candidate for each piece of a file, its path made of the heading and unique among them."""
    taken: set[str] = set()
    for place, (title, text) in enumerate(pieces(body), 1):
        name = PREAMBLE if title is None else slug(title, "section")
        yield Candidate(f"{source}#{place}", unique(f"{name}.md", taken), text)
