"""Measure sets with this machine's models, without a daemon, a server or a Project."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from client.clock import system_clock
from client.config import Settings
from client.index.vector_cache import VectorCache
from client.models.embedder import OnnxEmbedder
from client.models.preparation import prepare_model
from client.models.progress import Report
from client.models.resident import find_profile
from client.services.evaluation.run_set import Progress, SetResult, SharedOut, no_progress, run_set
from client.services.evaluation.sets import EvaluationSet

FOLDER: Final = "evaluation"
_CACHE_BYTES: Final = 4 << 30


def measure_sets(
    sets: Iterable[EvaluationSet],
    settings: Settings,
    *,
    preparing: Report | None = None,
    progress: Callable[[EvaluationSet], Progress] = lambda _: no_progress,
    threads: int | None = None,
) -> list[SetResult]:
    """Run sets one after the other; passages are embedded once and kept for the next time.

    ``threads`` embed passages at once, as many as there are processors without it; a query always
    runs in one, as in the daemon. Vectors are kept in ``evaluation/`` of the installation's index
    folder, apart from those of the Projects.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE or STORAGE_FULL, when the model cannot be prepared.
        OSError: the index cannot be written.
    """
    places = settings.places
    model = find_profile(settings.profile).embedding
    files = prepare_model(model, places.models, model_folder=settings.model_folder, report=preparing)
    folder = places.index / FOLDER
    cache = VectorCache(folder / "vectors.db", system_clock, _CACHE_BYTES)
    embedder = SharedOut(OnnxEmbedder(files), threads or _processors())
    try:
        return [_one(each, embedder, cache, folder, progress(each)) for each in sets]
    finally:
        embedder.close()
        cache.prune()
        cache.close()


def _processors() -> int:
    # Of a container or a taskset only its share, where the platform tells.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _one(
    evaluated: EvaluationSet, embedder: SharedOut, cache: VectorCache, folder: Path, progress: Progress
) -> SetResult:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="set-", dir=folder))
    try:
        return run_set(evaluated, embedder, cache, scratch / "index", progress)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
