"""Content hashes and canonical JSON: the same bytes, and so the same names, on both sides."""

import hashlib
import json
from typing import Any


def content_hash(text: str) -> str:
    """Return ``sha256:`` and the hex SHA-256 of the UTF-8 text; a lone surrogate is a ``ValueError``."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def canonical_json(value: Any) -> bytes:
    """Return the one JSON form of ``value`` that hashes are made of: sorted keys, no spaces, UTF-8.

    Every object key has to be a string: Python would write ``1`` and ``"1"`` alike and so let two
    values share a hash. Floats are refused for a like reason (``1`` and ``1.0`` are equal but are
    written differently, and other languages write them otherwise), as is whatever JSON does not
    have: ``TypeError`` or, for a lone surrogate, ``ValueError``.
    """
    _check(value)
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def fingerprint(value: Any) -> str:
    """Return ``sha256:`` and the hex SHA-256 of the canonical JSON: equal exactly for equal requests."""
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


def _check(value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"canonical JSON needs string keys, not {type(key).__name__}")
            _check(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check(item)
    elif isinstance(value, float):
        raise TypeError("canonical JSON takes no floats; use integers or text")
