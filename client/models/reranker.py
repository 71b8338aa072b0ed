"""Two ways to look again at the best candidates. They are different things and named as such.

Late interaction compares the embedder's own stored token vectors (MaxSim, Khattab and Zaharia 2020,
"ColBERT"): no further model, about a millisecond. A cross-encoder reads query and passage together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from client.models.files import ONNX_FILE
from client.models.progress import unavailable

if TYPE_CHECKING:
    from client.models.sessions import PairEncoder

LATE_INTERACTION: Final = "late_interaction"
_CROSS_ENCODER: Final = "cross_encoder"
_PAIR_BATCH: Final = 8


def maxsim(
    query: NDArray[np.float32], tokens: Sequence[NDArray[np.int8]], scales: Sequence[NDArray[np.float16]]
) -> NDArray[np.float32]:
    """Return float32 [n]: for each passage the mean over query tokens of the best cosine to its tokens.

    ``query`` is float32 [q, p] of unit rows; passage i has ``tokens[i]`` int8 [t, p] and ``scales[i]``
    float16 [t]. A passage without tokens, or any under a query without tokens, scores 0.
    """
    scores = np.zeros(len(tokens), dtype=np.float32)
    lengths = np.array([len(matrix) for matrix in tokens], dtype=np.intp)
    present = np.flatnonzero(lengths).tolist()
    if not present or not len(query):
        return scores
    # One product over all passages' tokens laid end to end, then a maximum per passage.
    joined = np.concatenate([tokens[i] for i in present]).astype(np.float32)
    factors = np.concatenate([scales[i] for i in present]).astype(np.float32)
    cosines = (query @ joined.T) * factors
    starts = np.concatenate([[0], np.cumsum(lengths[present])[:-1]])
    scores[present] = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=0)
    return scores


class PairReranker(Protocol):
    """Scores passages by reading each together with the query. Higher is better; no fixed range."""

    @property
    def name(self) -> str:
        """What ran, for run records and status."""

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """Return one score a passage, in the order given."""


class CrossEncoderReranker:
    """A cross-encoder from a prepared folder, through fastembed. Thread-safe, loaded on first use.

    The graph's first output must be one score a pair, [batch, 1]: of a classifier with several classes
    an arbitrary one would be taken for the score, so that such a model is refused.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE from ``score``, when the folder cannot be loaded or
            holds another kind of model.
    """

    def __init__(self, model_name: str, folder: Path, model_file: str = ONNX_FILE) -> None:
        self._model_name = model_name
        self._folder = folder
        self._model_file = model_file
        self._lock = Lock()
        self._encoder: PairEncoder | None = None

    @property
    def name(self) -> str:
        """``cross_encoder:`` and the model's name."""
        return f"{_CROSS_ENCODER}:{self._model_name}"

    def score(self, query: str, passages: Sequence[str]) -> list[float]:
        """Return the raw scores of the pairs, in the order given."""
        if not passages:
            return []
        return list(self._loaded().rerank(query, list(passages), batch_size=_PAIR_BATCH))

    def unload(self) -> None:
        """Free the session's memory; the next call loads it again."""
        with self._lock:
            self._encoder = None

    def _loaded(self) -> PairEncoder:
        with self._lock:
            if self._encoder is None:
                from client.models.sessions import open_pair_encoder

                try:
                    encoder = open_pair_encoder(self._model_name, self._folder, self._model_file)
                # ONNX Runtime's and the tokenizer's exceptions share no base but Exception.
                except Exception as error:
                    raise unavailable(
                        f"The cross-encoder in {self._folder} cannot be loaded. "
                        "Delete that folder, then run: interleaf models prepare",
                        folder=str(self._folder),
                    ) from error
                self._check_output(encoder)
                self._encoder = encoder
            return self._encoder

    def _check_output(self, encoder: PairEncoder) -> None:
        shape = encoder.output_shape()
        if len(shape) != 2 or shape[1] != 1:
            raise unavailable(
                f"The model in {self._folder} is not a cross-encoder with one score a pair; "
                "choose another model.",
                folder=str(self._folder),
                output_shape=[str(size) for size in shape],
            )
