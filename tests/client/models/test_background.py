from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tenacity.wait import wait_exponential

from client.models.background import ModelPreparation
from client.models.catalog import EmbeddingModel
from client.models.preparation import prepare_model
from client.models.progress import PreparationProgress, Stage
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.models.index_server import Behaviour, index_of

NOW = 1_750_000_000_000


class Pauses:
    """Stands for sleep: records each pause and holds the thread until the test lets it go."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.entered = threading.Semaphore(0)
        self.released = threading.Semaphore(0)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.entered.release()
        assert self.released.acquire(timeout=60)


def finished(preparation: ModelPreparation) -> PreparationProgress:
    thread = preparation._thread
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()
    return preparation.status()


@pytest.mark.requirement("models.progress")
def test_before_the_first_attempt_the_model_is_being_prepared(tiny: EmbeddingModel, tmp_path: Path) -> None:
    preparation = ModelPreparation(tiny, tmp_path / "models")
    with pytest.raises(InterleafError) as caught:
        preparation.require()
    assert caught.value.code is ErrorCode.SEARCH_MODEL_PREPARING
    assert caught.value.details == {
        "stage": "waiting",
        "current_bytes": 0,
        "total_bytes": tiny.download_bytes,
    }


@pytest.mark.requirement("models.prepared")
def test_a_prepared_model_is_there_at_once(tiny: EmbeddingModel, tmp_path: Path) -> None:
    files = prepare_model(tiny, tmp_path / "models")
    preparation = ModelPreparation(tiny, tmp_path / "models")
    preparation.start()
    assert preparation.require() == files
    assert preparation.status().stage is Stage.READY


@pytest.mark.requirement("models.background")
def test_a_model_is_prepared_in_the_background(tiny: EmbeddingModel, tmp_path: Path) -> None:
    preparation = ModelPreparation(tiny, tmp_path / "models")
    preparation.start()
    preparation.start()
    assert finished(preparation).stage is Stage.READY
    assert preparation.require().folder.name == tiny.folder_name


@pytest.mark.requirement("models.retry")
def test_failed_attempts_are_repeated_with_growing_pauses_until_one_succeeds(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path
) -> None:
    away = wheelhouse.rename(tmp_path / "away")
    pauses = Pauses()
    preparation = ModelPreparation(
        tiny, tmp_path / "models", wait=wait_exponential(multiplier=10), pause=pauses, now_ms=lambda: NOW
    )
    preparation.start()
    assert pauses.entered.acquire(timeout=60)
    with pytest.raises(InterleafError) as caught:
        preparation.require()
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert caught.value.details["last_error"]["code"] == "search_model_unavailable"
    assert caught.value.details["next_attempt_at"] == NOW + 10_000
    pauses.released.release()
    assert pauses.entered.acquire(timeout=60)
    assert preparation.status().attempts == 2
    away.rename(wheelhouse)
    pauses.released.release()
    status = finished(preparation)
    assert pauses.seconds == [10, 20]
    assert status.stage is Stage.READY
    assert status.error is None


@pytest.mark.requirement("models.retry")
def test_a_pause_ends_when_somebody_asks_for_the_next_attempt(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path
) -> None:
    preparation = ModelPreparation(tiny, tmp_path / "models", wait=wait_exponential(multiplier=3000))
    away = wheelhouse.rename(tmp_path / "away")
    failed = threading.Event()
    original = preparation._pause
    preparation._pause = lambda seconds: (failed.set(), original(seconds))
    preparation.start()
    assert failed.wait(60)
    away.rename(wheelhouse)
    preparation.prepare_again()
    assert finished(preparation).stage is Stage.READY


@pytest.mark.requirement("models.progress")
def test_a_download_under_way_shows_its_bytes_and_can_be_stopped(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour = Behaviour(cut_after=2000, hold=threading.Event())
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with index_of(wheelhouse, behaviour) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        preparation = ModelPreparation(tiny, tmp_path / "models")
        preparation.start()
        thread = preparation._thread
        assert thread is not None
        assert behaviour.sent_part.wait(30)
        with pytest.raises(InterleafError) as caught:
            preparation.require()
        preparation.stop()
    assert caught.value.code is ErrorCode.SEARCH_MODEL_PREPARING
    assert caught.value.details["stage"] == "download"
    assert caught.value.details["total_bytes"] == tiny.download_bytes
    assert not thread.is_alive()


@pytest.mark.requirement("models.retry")
def test_an_unexpected_failure_is_shown_and_does_not_end_the_attempts(
    tiny: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("not foreseen")

    pauses = Pauses()
    preparation = ModelPreparation(tiny, tmp_path / "models", pause=pauses)
    with monkeypatch.context() as patch:
        patch.setattr("client.models.background.prepare_model", broken)
        preparation.start()
        assert pauses.entered.acquire(timeout=60)
        error = preparation.status().error
    assert error is not None
    assert error.code is ErrorCode.INTERNAL_ERROR
    pauses.released.release()
    assert finished(preparation).stage is Stage.READY
