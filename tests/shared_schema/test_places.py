from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from shared_schema.places import SOCKET_PATH_BYTES, Places, find_places, is_private, make_private

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and sockets are POSIX here")


def test_everything_lies_under_interleaf_home_when_it_is_set(tmp_path: Path) -> None:
    places = find_places({"INTERLEAF_HOME": str(tmp_path)})
    every = [places.database, places.index, places.credentials, places.log, places.run, places.lock]
    every += [places.pid, places.guides, places.port, places.models]
    assert all(path.is_relative_to(tmp_path) for path in every)


def test_without_interleaf_home_the_platforms_data_directory_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert find_places({}).home == Path(platformdirs.user_data_dir("interleaf"))


def test_an_argument_wins_over_the_environment(tmp_path: Path) -> None:
    environ = {"INTERLEAF_HOME": "/nowhere", "INTERLEAF_MODELS_DIR": "/nowhere/models"}
    places = find_places(environ, home=tmp_path, models=tmp_path / "shared")
    assert (places.home, places.models) == (tmp_path, tmp_path / "shared")


def test_models_may_lie_outside_of_home(tmp_path: Path) -> None:
    environ = {"INTERLEAF_HOME": str(tmp_path), "INTERLEAF_MODELS_DIR": "/srv/models"}
    assert find_places(environ).models == Path("/srv/models")


def test_a_relative_home_becomes_absolute_and_a_tilde_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_places({"INTERLEAF_HOME": "a/../b"}).home == tmp_path / "b"
    assert find_places({"INTERLEAF_HOME": "~/c"}).home == tmp_path / "c"


@pytest.mark.requirement("daemon.socket.short")
def test_a_long_home_gets_a_short_socket_of_its_own() -> None:
    first, second = (Places(home=Path("/" + letter * 120), models=Path("/m")) for letter in "ab")
    assert len(os.fsencode(first.socket)) < SOCKET_PATH_BYTES
    assert first.socket != second.socket
    assert first.socket == Places(home=first.home, models=Path("/other")).socket


def test_a_short_home_has_its_socket_inside(tmp_path: Path) -> None:
    assert Places(home=Path("/h"), models=Path("/m")).socket == Path("/h/run/daemon.sock")


@pytest.mark.requirement("daemon.socket.short")
def test_the_socket_does_not_depend_on_what_differs_between_hosts_and_shells() -> None:
    script = "from shared_schema.places import find_places; print(find_places().socket)"
    home = "/" + "x" * 120
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"INTERLEAF_HOME": home, **extra},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for extra in ({}, {"TMPDIR": "/elsewhere", "XDG_RUNTIME_DIR": "/run/elsewhere", "HOME": "/root"})
    }
    assert len(found) == 1


def test_a_private_directory_is_made_and_an_open_one_is_tightened(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    make_private(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.chmod(0o755)
    assert not is_private(directory)
    make_private(directory)
    assert is_private(directory)


def test_a_link_to_a_private_directory_is_not_private(tmp_path: Path) -> None:
    make_private(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert not is_private(tmp_path / "link")
    assert not is_private(tmp_path / "missing")
