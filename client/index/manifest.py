"""What a generation says about itself: of what it was made, and the digest of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from client.domain.analysis import ANALYSIS_VERSION
from client.domain.chunking import CHUNKER_VERSION
from client.index.files import SYSTEM_FAULTS, IndexCorruptError, write_json
from client.index.lexical import TANTIVY_VERSION
from client.index.vectors import SegmentInfo

FORMAT_VERSION: Final = 2
MANIFEST: Final = "manifest.json"
_DIGEST: Final = "digest"


@dataclass(frozen=True, slots=True)
class Versions:
    """What an index must have been made with to be compatible."""

    format: int
    chunker: int
    analysis: int
    tantivy: str
    embedder: str
    dimensions: int
    token_dimensions: int

    @classmethod
    def current(cls, fingerprint: str, dimensions: int, token_dimensions: int) -> Versions:
        """Return today's versions for an embedder."""
        return cls(
            FORMAT_VERSION,
            CHUNKER_VERSION,
            ANALYSIS_VERSION,
            TANTIVY_VERSION,
            fingerprint,
            dimensions,
            token_dimensions,
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generation says about itself."""

    versions: Versions
    project_id: str
    memory_hash: str
    resources: int
    units: int
    next_uid: int
    lexical_removed: int
    """Units deleted from the lexical index since it was last built whole."""
    segments: tuple[SegmentInfo, ...]
    files: Mapping[str, str]
    """SHA-256 by relative name, of every file but the manifest."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self) | {"files": dict(self.files)}

    @classmethod
    def from_json(cls, value: Any) -> Manifest:
        """Rebuild it; anything unexpected is an IndexCorruptError."""
        try:
            fields = dict(value)
            fields["versions"] = Versions(**fields["versions"])
            fields["segments"] = tuple(SegmentInfo(**each) for each in fields["segments"])
            fields["files"] = {str(k): str(v) for k, v in fields["files"].items()}
            return cls(**fields)
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise IndexCorruptError("the manifest is not one of ours") from error


def read_manifest(folder: Path) -> Manifest:
    """Read a generation's manifest.

    Raises:
        IndexCorruptError: there is none, it was changed, or it is none of ours.
    """
    try:
        value = dict(json.loads((folder / MANIFEST).read_bytes()))
        digest = value.pop(_DIGEST)
    except (OSError, ValueError, TypeError, KeyError) as error:
        if isinstance(error, OSError) and error.errno in SYSTEM_FAULTS:
            raise
        raise IndexCorruptError("the manifest cannot be read") from error
    # No other file vouches for this one, and a changed number in it would pass for a good one.
    if digest != _digest(value):
        raise IndexCorruptError("the manifest was changed")
    return Manifest.from_json(value)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a generation's manifest, durably, last of its files."""
    value = manifest.as_json()
    write_json(folder / MANIFEST, value | {_DIGEST: _digest(value)})


def _digest(value: Mapping[str, Any]) -> str:
    content = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode("ascii")).hexdigest()
