"""A query's terms as its author wrote them: a person is told of ``released``, never of ``releas``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from client.domain.analysis import holds_cjk, normalise, query_terms

_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_PIECE: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
"""Parts of camelCase words. Only ASCII words are stemmed, so that all others are their own terms."""


def as_written(query: str, terms: Iterable[str]) -> list[str]:
    """Return for each term the word of the query that it was made of, in lower case; else the term."""
    words: dict[str, str] = {}
    for word in _WORD.findall(normalise(query)):
        for piece in dict.fromkeys([word, *_PIECE.findall(word)]):
            # A word that is too long to be one has no term.
            for term in query_terms(piece)[:1]:
                words.setdefault(term, piece.casefold())
    return [words.get(term, term) for term in terms]


def run_together(words: Iterable[str]) -> list[str]:
    """Join the overlapping pairs that a Chinese, Japanese or Korean run gave: 发布, 布流 → 发布流."""
    joined: list[str] = []
    for word in words:
        if joined and len(word) == 2 and word[0] == joined[-1][-1] and holds_cjk(word[0]):
            joined[-1] += word[1]
        else:
            joined.append(word)
    return joined
