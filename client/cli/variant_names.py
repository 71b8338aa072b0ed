"""What the rankings that are compared are called on a screen."""

from __future__ import annotations

from typing import Final

NAMES: Final = {
    "b1_bm25": "B1 words (BM25)",
    "b2_dense": "B2 meaning (dense)",
    "rrf": "fused by RRF",
    "b3_fused": "B3 fused",
    "b4_reranked": "B4 reranked",
}
"""In the order in which they are shown."""
