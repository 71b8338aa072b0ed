from __future__ import annotations

import pytest

from client.index.generation import Generation
from tests.client.index.conftest import PROJECT, World, resource, sample


@pytest.mark.requirement("retrieval.index.incremental")
def test_what_a_build_hands_over_is_what_is_read_from_its_files(world: World) -> None:
    """Also of a build that took most over, and moved the places of some vectors."""
    memories = [
        sample(),
        sample(release="# Release\n\nTag it.", queue=""),
        sample(release="# Release\n\nTag it again.").followed_by(
            None, {"mem_new": resource("mem_new", "new.md", "# New\n\nText.", description="Said.")}, {}, {}
        ),
    ]
    for memory in memories:
        world.index(memory)
        with world.manager.pin(PROJECT) as built:
            assert built is not None
            opened = Generation.open(built.folder)
        assert built.resources == opened.resources
        assert list(built.resources) == list(opened.resources), "units are numbered in this order"
        assert built.units == opened.units
