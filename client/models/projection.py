"""Token vectors made small: centred, projected, normalised and, for passages, stored as int8.

Contextual token vectors of one model share a large common direction; taking one fixed mean away
makes their cosines tell words apart. A fixed PCA then keeps the directions that vary. Both belong to
the model they were fitted on, so that a projection carries the fingerprint of its model.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared_schema.errors import ErrorCode, InterleafError

SHIPPED_PROJECTION: Final = Path(__file__).parent / "data" / "e5-small-projection.npz"
_INT8_MAX: Final = 127
_EPSILON: Final = np.float32(1e-12)


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row of float32 [n, d] to length 1; a row of zeros stays as it is."""
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.maximum(norms, _EPSILON), dtype=np.float32)


def quantise_tokens(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """Store float32 [t, d] as int8 [t, d] and one float16 scale a row, so that q * scale ≈ vectors."""
    peaks = np.abs(vectors).max(axis=1, initial=0.0)
    scales = (np.maximum(peaks, 1e-3) / _INT8_MAX).astype(np.float16)
    # Divide by the scale as stored: its rounding to float16 would otherwise be a second error.
    quotients = np.rint(vectors / scales.astype(np.float32)[:, None])
    return np.clip(quotients, -_INT8_MAX, _INT8_MAX).astype(np.int8), scales


@dataclass(frozen=True, slots=True)
class TokenProjection:
    """One mean float32 [d] and one PCA float32 [d, p], fitted on the model ``model_fingerprint``.

    ``digest`` is the SHA-256 over the arrays and the model's name, however the file was compressed.
    """

    mean: NDArray[np.float32]
    components: NDArray[np.float32]
    model_fingerprint: str
    digest: str

    @property
    def dimensions(self) -> int:
        """Length p of a projected token vector."""
        return int(self.components.shape[1])

    def apply(self, tokens: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return float32 [t, p] of unit length from the model's raw token outputs [t, d]."""
        return unit_rows(np.asarray((tokens - self.mean) @ self.components, dtype=np.float32))

    @classmethod
    def load(cls, path: Path, model_fingerprint: str) -> TokenProjection:
        """Read a projection file and refuse one that was fitted on another model.

        Raises:
            InterleafError: SEARCH_MODEL_UNAVAILABLE, when the file is unreadable or another model's.
        """
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                found = str(arrays["model_fingerprint"])
                mean = np.asarray(arrays["mean"], dtype=np.float32)
                components = np.asarray(arrays["components"], dtype=np.float32)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise InterleafError(
                ErrorCode.SEARCH_MODEL_UNAVAILABLE,
                f"The token projection {path.name} cannot be read; reinstall Interleaf.",
            ) from error
        if found != model_fingerprint:
            raise InterleafError(
                ErrorCode.SEARCH_MODEL_UNAVAILABLE,
                f"The token projection {path.name} belongs to another model; "
                "reinstall Interleaf, or fit it again with tools/fit_projection.py.",
                details={"projection_for": found, "model": model_fingerprint},
            )
        if components.ndim != 2 or mean.shape != components.shape[:1]:
            raise InterleafError(
                ErrorCode.SEARCH_MODEL_UNAVAILABLE,
                f"The token projection {path.name} has shapes that do not fit; reinstall Interleaf.",
            )
        digest = hashlib.sha256(found.encode() + mean.tobytes() + components.tobytes()).hexdigest()
        return cls(mean, components, found, digest)

    @staticmethod
    def save(
        path: Path, mean: NDArray[np.float32], components: NDArray[np.float32], model_fingerprint: str
    ) -> None:
        """Write a projection file: mean float32 [d], components float16 [d, p], and the model's name."""
        np.savez_compressed(
            path,
            mean=mean.astype(np.float32),
            components=components.astype(np.float16),
            model_fingerprint=np.array(model_fingerprint),
        )
