from __future__ import annotations

import pytest

from client.domain.assembly import Reason
from tests.client.index.conftest import World, sample

QUERY = "publish the package before migrations"


@pytest.mark.requirement("retrieval.trace")
def test_the_returned_units_are_those_of_the_selected_candidates(world: World) -> None:
    world.index(sample())
    trace = world.search(QUERY)
    assert trace.units
    assert tuple(trace.candidates[index].unit for index in trace.selected) == trace.units
    assert {trace.candidates[index].reason for index in trace.selected} == {Reason.SELECTED}


@pytest.mark.requirement("retrieval.trace")
def test_candidates_described_later_are_those_of_the_search(world: World) -> None:
    world.index(sample())
    draft = sample(queue="# Queue\n\nNothing is skipped before a package is published.")
    at_once, later = world.search(QUERY, draft), world.search(QUERY, draft)
    described = at_once.candidates
    assert any(each.overlay for each in described)

    # Two generations on, the one that was searched is gone.
    world.index(sample(release="# Other\n\nNothing.", database=""))
    world.index(sample(release="# Another\n\nStill nothing.", database=""))

    assert later.candidates == described
