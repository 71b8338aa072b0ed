"""fastembed's models as this product runs them: local files, one thread, both kinds of vectors.

Importing this module imports fastembed and ONNX Runtime (seconds, 150 MB); only code that is about to
run a model does so.
"""

from __future__ import annotations

import os

# Models come from prepared folders only; nothing here may look at a hub. Set before the import below,
# because huggingface_hub reads it once.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from fastembed.common.onnx_model import OnnxOutputContext
from fastembed.rerank.cross_encoder import TextCrossEncoder
from fastembed.rerank.cross_encoder.custom_text_cross_encoder import CustomTextCrossEncoder
from fastembed.text.custom_text_embedding import CustomTextEmbedding
from numpy.typing import NDArray
from tokenizers import Tokenizer

_REGISTERED: Final[set[str]] = set()
_REGISTRY_LOCK: Final = Lock()
_CPU: Final = ["CPUExecutionProvider"]
# The registry demands a source; with specific_model_path it is never looked at.
_NO_SOURCE: Final = ModelSource(url="file:///nowhere")


def _quiet_session(options: Any) -> None:
    """Idle threads sleep: a daemon beside an editor must not burn a core while it waits."""
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")


class TokenEmbedding(CustomTextEmbedding):
    """Yields, for each text, its pooled vector and its token vectors from one forward pass.

    Each item is float32 [1 + t, d]: row 0 is the mean over all tokens, normalised; the others are the
    raw outputs of the text's own tokens: padding, special tokens and prefix are left out.
    """

    _shared_tokenizer: Tokenizer

    def _load_tokenizer(self, model_dir: Path) -> None:  # noqa: ARG002 - fastembed's signature
        # The same object counts tokens without a session; a second copy would cost 300 MB.
        self.tokenizer, self.special_token_to_id = self._shared_tokenizer, {}

    def _post_process_onnx_output(
        self, output: OnnxOutputContext, *, prefix_ids: Sequence[int] = (), **kwargs: Any
    ) -> Iterable[NDArray[np.float32]]:
        pooled = super()._post_process_onnx_output(output, **kwargs)
        lengths = np.asarray(output.attention_mask).sum(axis=1)
        ids = np.asarray(output.input_ids)
        for row, (vector, tokens) in enumerate(zip(pooled, output.model_output, strict=True)):
            start = 1 + _common_length(ids[row, 1:], prefix_ids)
            own = tokens[start : max(start, lengths[row] - 1)]
            yield np.concatenate([vector[None, :], own]).astype(np.float32, copy=False)

    @classmethod
    def add_extra_session_options(cls, session_options: Any, extra_options: dict[str, Any]) -> None:
        """Add fastembed's own options and the quiet ones."""
        super().add_extra_session_options(session_options, extra_options)
        _quiet_session(session_options)


def _common_length(ids: NDArray[np.int64], prefix_ids: Sequence[int]) -> int:
    """How many leading ids are the prefix's: its last space often joins the text's first word."""
    length = 0
    while length < min(len(ids), len(prefix_ids)) and ids[length] == prefix_ids[length]:
        length += 1
    return length


class PairEncoder(CustomTextCrossEncoder):
    """fastembed's cross-encoder with the same session settings."""

    @classmethod
    def add_extra_session_options(cls, session_options: Any, extra_options: dict[str, Any]) -> None:
        """Add fastembed's own options and the quiet ones."""
        super().add_extra_session_options(session_options, extra_options)
        _quiet_session(session_options)

    def output_shape(self) -> list[int | str | None]:
        """Return the declared shape of the first output; a string or ``None`` is a free size."""
        return list(self.model.get_outputs()[0].shape) if self.model is not None else []


def open_token_embedding(
    name: str, folder: Path, model_file: str, dimensions: int, tokenizer: Tokenizer
) -> TokenEmbedding:
    """Load an ONNX session for a prepared folder. ``name`` is registered once per process."""
    with _REGISTRY_LOCK:
        if name not in _REGISTERED:
            TextEmbedding.add_custom_model(
                name, PoolingType.MEAN, True, _NO_SOURCE, dimensions, model_file=model_file
            )
            _REGISTERED.add(name)
    model = TokenEmbedding(
        name,
        cache_dir=str(folder),
        threads=1,
        providers=_CPU,
        cuda=False,
        lazy_load=True,
        specific_model_path=str(folder),
        local_files_only=True,
    )
    model._shared_tokenizer = tokenizer
    model.load_onnx_model()
    return model


def open_pair_encoder(name: str, folder: Path, model_file: str) -> PairEncoder:
    """Load a cross-encoder from a prepared folder. ``name`` is registered once per process."""
    registered = f"pair:{name}:{model_file}"
    with _REGISTRY_LOCK:
        if registered not in _REGISTERED:
            TextCrossEncoder.add_custom_model(registered, _NO_SOURCE, model_file=model_file)
            _REGISTERED.add(registered)
    return PairEncoder(
        registered,
        cache_dir=str(folder),
        threads=1,
        providers=_CPU,
        cuda=False,
        specific_model_path=str(folder),
        local_files_only=True,
    )
