from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from client.daemon.guide_mirror import GuideMirror
from shared_schema.daemon_contract import Binding, Bindings
from shared_schema.directories import read_guides
from shared_schema.places import find_places


def bound(**guides: str | None) -> Bindings:
    return Bindings(
        bindings=[
            Binding(directory=f"/{name}", project_id="prj_1", guide_path=guide)
            for name, guide in guides.items()
        ]
    )


@pytest.mark.requirement("guidance.path")
def test_the_file_follows_the_bindings_and_only_this_user_can_read_it(tmp_path: Path) -> None:
    places = find_places(home=tmp_path)
    now = bound(a="guides/A.md", b=None)
    mirror = GuideMirror(places, lambda: now)
    mirror.refresh()
    assert read_guides(places.guides) == {"/a": "guides/A.md"}
    assert places.guides.stat().st_mode & 0o777 == 0o600
    now = bound(c="C.md")
    mirror.refresh()
    assert read_guides(places.guides) == {"/c": "C.md"}


def test_a_file_that_is_current_is_not_written_again(tmp_path: Path) -> None:
    places = find_places(home=tmp_path)
    mirror = GuideMirror(places, lambda: bound(a="A.md"))
    mirror.refresh()
    before = places.guides.stat().st_ino
    mirror.refresh()
    assert places.guides.stat().st_ino == before


def test_a_file_that_cannot_be_written_is_logged_and_stops_nobody(tmp_path: Path) -> None:
    places = find_places(home=tmp_path)
    places.guides.mkdir(parents=True)
    (places.guides / "in the way").touch()
    with structlog.testing.capture_logs() as logged:
        GuideMirror(places, lambda: bound(a="A.md")).refresh()
    assert [entry["event"] for entry in logged] == ["guides_not_mirrored"]
    assert [file.name for file in places.guides.iterdir()] == ["in the way"]
