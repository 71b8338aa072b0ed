"""The models as the daemon holds them."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from client.config import Settings
from client.models.catalog import EmbeddingModel, Profile
from client.models.preparation import prepare_model
from client.models.resident import ResidentModels
from client.wiring import build_daemon
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.daemon.real_daemon import settings
from tests.client.models.test_embedder import save_projection

WAIT = 60.0
Make = Callable[..., ResidentModels]


@pytest.fixture
def make(tiny: EmbeddingModel, tmp_path: Path) -> Iterator[Make]:
    """Makes the models of a profile whose embedding model is the tiny one."""
    made: list[ResidentModels] = []
    projection = save_projection(tmp_path / "p.npz", tiny.fingerprint)
    profile = Profile(name="tiny", embedding=tiny, reranker="late_interaction")

    def build(**more: object) -> ResidentModels:
        made.append(
            ResidentModels(profile, tmp_path / "models", now_ms=lambda: 1, projection=projection, **more)  # type: ignore[arg-type]
        )
        return made[-1]

    yield build
    for each in made:
        each.stop()


def prepared(models: ResidentModels) -> None:
    """Wait for the thread that prepares."""
    thread = models._preparation._thread
    assert thread is not None
    thread.join(WAIT)
    assert not thread.is_alive()


def loaded(models: ResidentModels) -> None:
    """Wait for the thread that loads at the start."""
    for thread in threading.enumerate():
        if thread.name == "model-loading":
            thread.join(WAIT)
    assert models.status().loaded


@pytest.mark.requirement("models.background")
def test_models_are_prepared_told_and_loaded_by_the_first_question(make: Make) -> None:
    ready = threading.Event()
    models = make(on_ready=ready.set)
    models.start()
    prepared(models)
    assert ready.is_set(), "whoever waits for the models is woken"
    status = models.status()
    assert (status.ready, status.loaded, status.profile) == (True, False, "tiny")
    models.embedder().embed_query("abc")
    assert models.status().loaded


@pytest.mark.requirement("models.eviction")
def test_the_status_tells_whether_the_model_is_in_memory(
    make: Make, tiny: EmbeddingModel, tmp_path: Path
) -> None:
    prepare_model(tiny, tmp_path / "models")
    models = make(idle_minutes=30)
    models.start()
    loaded(models)
    embedder = models.embedder()
    embedder._raw._last_used -= 30 * 60  # type: ignore[attr-defined]  # as if it had been so long
    assert models._eviction.look() is None
    status = models.status()
    assert (status.ready, status.loaded) == (True, False)
    assert models.embedder() is embedder
    embedder.embed_query("abc")
    assert models.status().loaded


@pytest.mark.requirement("models.repair")
@pytest.mark.parametrize("damage", ["deleted", "changed"])
def test_asked_to_prepare_what_is_ready_it_looks_again_and_repairs(
    make: Make, tiny: EmbeddingModel, tmp_path: Path, damage: str
) -> None:
    files = prepare_model(tiny, tmp_path / "models")
    models = make()
    models.start()
    loaded(models)
    before = models.embedder()
    good = files.onnx.read_bytes()
    if damage == "deleted":
        shutil.rmtree(files.folder)
    else:  # Of the same size, so that only a hash tells.
        files.onnx.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    models.retry_now()
    prepared(models)
    assert models.status().ready
    assert files.onnx.read_bytes() == good
    assert models.embedder() is not before, "what was loaded may be of the damaged files"
    models.embedder().embed_query("abc")


@pytest.mark.requirement("models.repair")
def test_asked_to_prepare_what_is_whole_it_keeps_what_is_loaded(
    make: Make, tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path
) -> None:
    prepare_model(tiny, tmp_path / "models")
    shutil.rmtree(wheelhouse)
    models = make()
    models.start()
    loaded(models)
    before = models.embedder()
    models.retry_now()
    assert models.embedder() is before, "it answers while the files are looked at"
    prepared(models)
    assert models.status().ready
    assert models.embedder() is before
    assert models.status().loaded


@pytest.mark.requirement("models.repair")
def test_files_that_went_while_nothing_was_loaded_are_prepared_again_by_themselves(
    make: Make, tiny: EmbeddingModel, tmp_path: Path
) -> None:
    files = prepare_model(tiny, tmp_path / "models")
    models = make()
    models.start()
    loaded(models)
    embedder = models.embedder()
    shutil.rmtree(files.folder)
    assert models.embedder() is embedder, "from memory it answers on"
    embedder.unload()  # type: ignore[attr-defined]  # an OnnxEmbedder
    with pytest.raises(InterleafError) as caught:
        models.embedder()
    assert caught.value.code is ErrorCode.SEARCH_MODEL_PREPARING
    prepared(models)
    models.embedder().embed_query("abc")


@pytest.mark.requirement("models.air-gapped")
def test_a_users_folder_is_enough_and_a_folder_without_the_model_is_named(
    make: Make, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    failing = make(model_folder=tmp_path / "empty")
    failed = threading.Event()
    original = failing._preparation._pause
    failing._preparation._pause = lambda seconds: (failed.set(), original(seconds))
    failing.start()
    assert failed.wait(WAIT)
    status = failing.status()
    assert (status.stage, status.ready) == ("failed", False)
    assert str(tmp_path / "empty") in str(status.error)
    failing.stop()
    models = make(model_folder=wheelhouse)
    models.start()
    prepared(models)
    models.embedder().embed_query("abc")


@pytest.mark.requirement("models.eviction")
def test_the_setting_reaches_the_daemons_models(tmp_path: Path) -> None:
    daemon = build_daemon(settings(tmp_path, model_idle_minutes=7))
    models = daemon.models
    daemon.stop()
    assert isinstance(models, ResidentModels)
    assert models._eviction._seconds == 7 * 60
    assert Settings(home=tmp_path).model_idle_minutes == 30
