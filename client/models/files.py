"""A prepared model folder: what is in it, and whether it is whole."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from client.models.catalog import EmbeddingModel

MANIFEST: Final = "manifest.json"
MANIFEST_FORMAT: Final = 1
ONNX_FILE: Final = "model.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A complete prepared folder of one catalogue model."""

    model: EmbeddingModel
    folder: Path

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model, without a projection."""
        return self.model.fingerprint

    @property
    def onnx(self) -> Path:
        """The graph."""
        return self.folder / ONNX_FILE

    @property
    def tokenizer(self) -> Path:
        """The tokenizer's definition."""
        return self.folder / TOKENIZER_FILE

    def manifest(self) -> dict[str, Any]:
        """Read what the folder says about itself: source, hashes, licences, versions."""
        return dict(json.loads((self.folder / MANIFEST).read_bytes()))


def default_models_dir(interleaf_home: Path | None = None) -> Path:
    """Return ``$INTERLEAF_MODELS_DIR``, else ``<home>/models``, else the platform's cache folder."""
    named = os.environ.get("INTERLEAF_MODELS_DIR")
    if named:
        return Path(named)
    home = interleaf_home or (Path(h) if (h := os.environ.get("INTERLEAF_HOME")) else None)
    if home is not None:
        return home / "models"
    from platformdirs import user_cache_path

    return user_cache_path("interleaf") / "models"


def find_prepared(model: EmbeddingModel, models_dir: Path, *, verify: bool = False) -> ModelFiles | None:
    """Return the prepared folder of ``model``, or ``None`` when there is none that is whole.

    Cheap by default: the manifest and the files' sizes. ``verify`` hashes every file as well.
    """
    files = ModelFiles(model, models_dir / model.folder_name)
    return files if fault_of(files, verify=verify) is None else None


def fault_of(files: ModelFiles, *, verify: bool) -> str | None:
    """Say what is wrong with a folder, or return ``None`` when it is whole."""
    try:
        manifest = files.manifest()
        listed = dict(manifest["files"])
        if manifest["format"] != MANIFEST_FORMAT or manifest["fingerprint"] != files.fingerprint:
            return "the manifest belongs to another model"
        if ONNX_FILE not in listed or TOKENIZER_FILE not in listed:
            return "the manifest names no model"
        for name, entry in listed.items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                return f"{name} lies outside of the folder"
            path = files.folder / name
            if not path.is_file() or path.stat().st_size != entry["size"]:
                return f"{name} is missing or has another size"
            if verify and sha256_of(path) != entry["sha256"]:
                return f"{name} has another SHA-256"
    except FileNotFoundError:
        return "there is no manifest"
    except (OSError, ValueError, KeyError, TypeError):
        return "the manifest cannot be read"
    return None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
