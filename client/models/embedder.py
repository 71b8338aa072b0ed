"""The embedder that ranks: one forward pass gives the pooled vector and the projected token vectors."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from client.domain.embedding import PassageVectors, QueryVectors
from client.models.files import ModelFiles
from client.models.projection import SHIPPED_PROJECTION, TokenProjection, quantise_tokens
from client.models.raw_embedding import RawEmbedding, RawVectors

VECTORS_VERSION: Final = "vectors-1"
"""Part of the fingerprint: raised whenever the same model outputs become other stored vectors."""

# Measured on AVX2, one thread: texts of 200 tokens cost the same at 1, 2 and 4 (75 ms) and more at 8
# (86 ms); texts of 15 tokens cost 12 ms at 1 and 7 ms at 4. Memory grows with the batch.
_BATCH: Final = 4


class OnnxEmbedder:
    """Implements ``client.domain.embedding.Embedder`` over a prepared model folder.

    Nothing is loaded until the first use, which ``told`` hears of; see ``client.models.eviction`` for how
    it goes again. Texts longer than the model's 512 tokens are truncated.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE, here when the projection belongs to another model, and
            from the methods when the prepared files cannot be loaded.
    """

    def __init__(
        self,
        files: ModelFiles,
        projection: Path = SHIPPED_PROJECTION,
        *,
        told: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = files.model
        self._projection = TokenProjection.load(projection, files.fingerprint)
        self._raw = RawEmbedding(files, loaded=told, monotonic=monotonic)
        parts = "\n".join([files.fingerprint, self._projection.digest, VECTORS_VERSION])
        self._fingerprint = f"{self._model.name}:{hashlib.sha256(parts.encode()).hexdigest()[:32]}"

    @property
    def fingerprint(self) -> str:
        """Model name and a hash over pinned inputs, converter, projection and vector format."""
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        """Length of a pooled vector."""
        return self._model.dimensions

    @property
    def token_dimensions(self) -> int:
        """Length of a projected token vector."""
        return self._projection.dimensions

    @property
    def loaded(self) -> bool:
        """Whether the ONNX session is in memory."""
        return self._raw.loaded

    def load(self) -> None:
        """Load tokenizer and session now (1 to 2 seconds), instead of on the first call."""
        self._raw.session()

    def idle_seconds(self) -> float | None:
        """Return for how long no call used what is in memory, 0 while one runs; none: nothing is loaded."""
        return self._raw.idle_seconds()

    def unload(self) -> bool:
        """Let tokenizer and session go, unless a call runs; the next one loads them again."""
        return self._raw.unload()

    def embed_query(self, text: str) -> QueryVectors:
        """Embed one query; its tokens stay float32 [q, projected]."""
        raw = self._raw.embed([text], self._model.query_prefix, 1)[0]
        return QueryVectors(pooled=raw.pooled, tokens=self._projection.apply(raw.tokens))

    def embed_passages(self, texts: Sequence[str]) -> list[PassageVectors]:
        """Embed passages, in the order given."""
        # Neighbours of one length waste no work on padding; characters are a good enough measure of it.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        raw = self._raw.embed([texts[i] for i in order], self._model.passage_prefix, _BATCH)
        stored = dict(zip(order, map(self._stored, raw), strict=True))
        return [stored[i] for i in range(len(texts))]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens in each text, without prefix and special tokens."""
        return self._raw.count_tokens(texts)

    def _stored(self, raw: RawVectors) -> PassageVectors:
        tokens, scales = quantise_tokens(self._projection.apply(raw.tokens))
        # A copy: the row is a view that would keep the full token matrix alive.
        return PassageVectors(pooled=raw.pooled.copy(), tokens=tokens, scales=scales)
