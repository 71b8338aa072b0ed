"""A deterministic embedder without a model: texts that share words are near each other.

Words (stemmed) and pairs of Chinese, Japanese or Korean characters are hashed to fixed random
directions. It knows no synonyms and no second language, but is fast, exact and the same everywhere.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from py_rust_stemmers import SnowballStemmer

from client.domain.embedding import PassageVectors, QueryVectors
from client.models.projection import quantise_tokens, unit_rows

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_RUNS: Final = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK: Final = re.compile(rf"[{_CJK}]")
_STEMMER: Final = SnowballStemmer("english")
_NOTHING: Final = "\x00nothing"


def words(text: str) -> list[str]:
    """Return stemmed words and overlapping character pairs, in the text's order."""
    found: list[str] = []
    for run in _RUNS.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _IS_CJK.match(run):
            found.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        else:
            found.append(_STEMMER.stem_word(run) if run.isascii() else run)
    return found


@lru_cache(maxsize=100_000)
def _direction(word: str, dimensions: int) -> NDArray[np.float32]:
    digest = hashlib.blake2b(word.encode(), digest_size=8, person=b"fake").digest()
    vector = np.random.default_rng(int.from_bytes(digest, "big")).standard_normal(dimensions)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class HashingEmbedder:
    """Implements ``client.domain.embedding.Embedder``; ``calls`` counts embedded texts."""

    def __init__(
        self, dimensions: int = 256, token_dimensions: int = 128, fingerprint: str = "hashing-1"
    ) -> None:
        self._dimensions = dimensions
        self._token_dimensions = token_dimensions
        self._fingerprint = fingerprint
        self.calls = {"queries": 0, "passages": 0}

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def token_dimensions(self) -> int:
        return self._token_dimensions

    def embed_query(self, text: str) -> QueryVectors:
        self.calls["queries"] += 1
        found = words(text)
        return QueryVectors(pooled=self._pooled(found), tokens=self._tokens(found))

    def embed_passages(self, texts: Sequence[str]) -> list[PassageVectors]:
        self.calls["passages"] += len(texts)
        passages = []
        for text in texts:
            found = words(text)
            tokens, scales = quantise_tokens(self._tokens(found))
            passages.append(PassageVectors(pooled=self._pooled(found), tokens=tokens, scales=scales))
        return passages

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(words(text)) for text in texts]

    def _pooled(self, found: list[str]) -> NDArray[np.float32]:
        total = np.sum([_direction(word, self._dimensions) for word in found or [_NOTHING]], axis=0)
        return unit_rows(np.asarray(total, dtype=np.float32)[None, :])[0]

    def _tokens(self, found: list[str]) -> NDArray[np.float32]:
        rows = [_direction(word, self._token_dimensions) for word in found]
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), self._token_dimensions)
