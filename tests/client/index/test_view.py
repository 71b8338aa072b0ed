"""A view made from a known memory's differences is the one made from everything."""

from __future__ import annotations

import pytest

from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.index.overlay import View
from tests.client.index.conftest import PROJECT, World, resource, sample


def changes() -> dict[str, EffectiveResource | None]:
    return {
        "mem_release": None,
        "mem_queue": resource("mem_queue", "guides/queue.md", "# Queue\n\nNothing is skipped."),
        # The same content as a new object, as after a re-read.
        "mem_chinese": resource("mem_chinese", "guides/chinese.md", sample().by_id["mem_chinese"].body),
        "mem_new": resource("mem_new", "notes/new.md", "# New\n\nUnicorns.", draft=True),
    }


def shown(view: View) -> tuple[list[bool], list[str], bool]:
    return view.live.tolist(), [each.unit.unit_key for each in view.overlay], view.lag


@pytest.mark.requirement("retrieval.overlay.edit")
def test_a_view_of_a_known_memorys_successor_is_that_of_everything(world: World) -> None:
    before: EffectiveMemory = sample()
    world.index(before)
    after = before.followed_by(None, changes(), {}, {})
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        assert generation.made_of is before, "the builder knows it"
        generation.made_of = None
        everything = shown(View(generation, after, world.embedder))
        assert generation.made_of is None
        assert shown(View(generation, before, world.embedder)) == ([True] * len(generation.units), [], False)
        assert generation.made_of is before
        assert shown(View(generation, after, world.embedder)) == everything
        # And of a memory that shares nothing with the known one.
        unrelated = EffectiveMemory.of(PROJECT, None, after.resources)
        assert shown(View(generation, unrelated, world.embedder)) == everything
    live, overlaid, _ = everything
    assert live.count(False) == 3, "two units of the release and the queue's"
    assert {key.partition("/")[0] for key in overlaid} == {"mem_queue", "mem_new"}
