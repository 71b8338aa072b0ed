"""What the ranking needs of an embedding model: values and one Protocol.

Real implementations are the ONNX embedder of ``client.models`` and the deterministic hashing
embedder of the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """One passage: ``pooled`` float32 [dimensions], unit length; ``tokens`` int8 [t, projected]
    with one float16 scale a token in ``scales`` [t], so that ``tokens * scales`` are the projected,
    centred, normalised token vectors (prefix and special tokens left out)."""

    pooled: NDArray[np.float32]
    tokens: NDArray[np.int8]
    scales: NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """One query: ``pooled`` float32 [dimensions], unit length; ``tokens`` float32 [q, projected]."""

    pooled: NDArray[np.float32]
    tokens: NDArray[np.float32]


class Embedder(Protocol):
    """An embedding model with its token vectors from the same forward pass. Thread-safe."""

    @property
    def fingerprint(self) -> str:
        """Names model and projection; vectors of two fingerprints are never compared."""

    @property
    def dimensions(self) -> int:
        """Length of a pooled vector."""

    @property
    def token_dimensions(self) -> int:
        """Length of a projected token vector."""

    def embed_query(self, text: str) -> QueryVectors:
        """Embed one query; the model's own prefix is added here."""

    def embed_passages(self, texts: Sequence[str]) -> list[PassageVectors]:
        """Embed passages, in the order given; the model's own prefix is added here."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of the model's tokens in each text, special tokens left out."""
