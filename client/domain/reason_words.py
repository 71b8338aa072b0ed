"""What became of a candidate, in words for people. The codes are those of runs and of ``explain``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REASONS: Final[Mapping[str, str]] = {
    "selected": "in the answer",
    "not_reranked": "not among the {looked_at} looked at again",
    "below_relevance": "below the relevance floor",
    "per_resource_limit": "{taken} parts of this document are in already",
    "token_budget": "no room left for its {tokens} tokens",
    "fragment_limit": "the answer is full",
    "overlap": "the same text is in the answer already",
    "retired": "its front matter takes it out of use",
    "not_a_candidate": "in neither list of candidates",
    "not_indexed": "not indexed yet",
}


def reason_words(reason: str, *, looked_at: int, taken: int, tokens: int | None) -> str:
    """Return a reason in words.

    ``looked_at`` is how many candidates were looked at again, ``taken`` how many units of the same
    resource are in the answer, ``tokens`` the unit's own, where they are known.
    """
    if reason == "token_budget" and tokens is None:
        return "no room left for it"
    words = REASONS.get(reason, reason.replace("_", " "))
    return words.format(looked_at=looked_at, taken=taken, tokens=tokens)
