"""A cross-encoder: it reads query and passage together.

The default, late interaction over the embedder's own token vectors, is another thing and lives in
``client.domain.ranking``; neither is ever named the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from client.models.files import ONNX_FILE
from client.models.progress import unavailable

if TYPE_CHECKING:
    from client.models.sessions import PairEncoder

_CROSS_ENCODER: Final = "cross_encoder"
_PAIR_BATCH: Final = 8


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
