"""A prepared model, loaded on first use: pooled vectors and raw token vectors, and token counts.

The tokenizer alone (0.8 s, 290 MB) is enough to count; the ONNX session (0.7 s, 270 MB) is loaded by the
first embedding. Both can be let go and come back with the next use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from client.models.files import ONNX_FILE, ModelFiles
from client.models.progress import unavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from client.models.sessions import TokenEmbedding

COUNT_BATCH: Final = 512


@dataclass(frozen=True, slots=True)
class RawVectors:
    """``pooled`` float32 [d], unit length; ``tokens`` float32 [t, d], the text's own tokens' outputs."""

    pooled: NDArray[np.float32]
    tokens: NDArray[np.float32]


class RawEmbedding:
    """Thread-safe. ONNX Runtime runs one session from several threads at once, so that a query never
    waits behind a batch of passages; the lock covers loading, unloading and counting the running calls.

    ``loaded`` is called after something was loaded into memory; ``monotonic`` counts seconds.
    """

    def __init__(
        self,
        files: ModelFiles,
        *,
        loaded: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._tell_loaded = loaded
        self._monotonic = monotonic
        self._running = 0
        self._last_used = monotonic()
        self._lock = RLock()
        self._tokenizer: Tokenizer | None = None
        self._session: TokenEmbedding | None = None
        self._prefix_ids: dict[str, list[int]] = {}

    @property
    def loaded(self) -> bool:
        """Whether the ONNX session is in memory."""
        return self._session is not None

    def embed(self, texts: Sequence[str], prefix: str, batch_size: int) -> list[RawVectors]:
        """Embed texts with ``prefix`` before each, in the order given; long texts are truncated.

        Raises:
            InterleafError: SEARCH_MODEL_UNAVAILABLE when the prepared files cannot be loaded.
        """
        with self._running_call():
            session = self.session()
            ids = self._ids_of(prefix)
            rows = session.embed([prefix + text for text in texts], batch_size=batch_size, prefix_ids=ids)
            return [RawVectors(row[0], row[1:]) for row in (np.asarray(r, dtype=np.float32) for r in rows)]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return each text's number of tokens, without prefix, special tokens or truncation."""
        counts: list[int] = []
        with self._running_call():
            tokenizer = self.tokenizer()
            for start in range(0, len(texts), COUNT_BATCH):
                batch = list(texts[start : start + COUNT_BATCH])
                encoded = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
                counts.extend(map(_whole_length, encoded))
        return counts

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, loading it on first use."""
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = load_tokenizer(self._files)
                self._tell_loaded()
            return self._tokenizer

    def session(self) -> TokenEmbedding:
        """Return the session, loading it on first use."""
        with self._lock:
            if self._session is None:
                from client.models.sessions import open_token_embedding

                model = self._files.model
                try:
                    self._session = open_token_embedding(
                        f"interleaf/{model.folder_name}",
                        self._files.folder,
                        ONNX_FILE,
                        model.dimensions,
                        self.tokenizer(),
                    )
                # ONNX Runtime's own exceptions share no base but Exception.
                except Exception as error:
                    raise _unloadable(self._files) from error
                self._tell_loaded()
            return self._session

    def idle_seconds(self) -> float | None:
        """Return for how long no call used what is in memory, 0 while one runs; none: nothing is loaded."""
        with self._lock:
            if self._session is None and self._tokenizer is None:
                return None
            return 0.0 if self._running else self._monotonic() - self._last_used

    def unload(self) -> bool:
        """Let tokenizer and session go, unless a call runs; the next one loads them again."""
        with self._lock:
            if self._running:
                return False
            self._session = self._tokenizer = None
            return True

    @contextmanager
    def _running_call(self) -> Iterator[None]:
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._last_used = self._monotonic()

    def _ids_of(self, prefix: str) -> list[int]:
        if prefix not in self._prefix_ids:
            self._prefix_ids[prefix] = self.tokenizer().encode(prefix, add_special_tokens=False).ids
        return self._prefix_ids[prefix]


def load_tokenizer(files: ModelFiles) -> Tokenizer:
    """Read the tokenizer with the model's truncation and padding to the longest of a batch.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE when the file is unreadable.
    """
    from tokenizers import Tokenizer

    model = files.model
    try:
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
    # The Rust library raises a bare Exception.
    except Exception as error:
        raise _unloadable(files) from error
    tokenizer.enable_truncation(max_length=model.max_tokens)
    pad_id = tokenizer.token_to_id(model.pad_token)
    if pad_id is None:
        raise _unloadable(files)
    tokenizer.enable_padding(pad_id=pad_id, pad_token=model.pad_token)
    return tokenizer


def _whole_length(encoding: Any) -> int:
    """Truncation moves the rest into ``overflowing``; padding is masked out."""
    parts = [encoding, *encoding.overflowing]
    return sum(sum(part.attention_mask) for part in parts)


def _unloadable(files: ModelFiles) -> Exception:
    return unavailable(
        f"The search model in {files.folder} cannot be loaded. "
        "Check and repair it with: interleaf models prepare",
        folder=str(files.folder),
    )
