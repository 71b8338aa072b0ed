"""An agent finds its own writes in the next call, whatever the index is doing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from client.domain.embedding import PassageVectors
from shared_schema.tool_contract import ActivateAnswer
from tests.client.services.activating_world import ActivatingWorld
from tests.fakes.hashing_embedder import HashingEmbedder

WAIT = 60.0
QUESTION = "which animal guards the queue"


class Gate:
    """Holds one thread at one point until it is opened."""

    def __init__(self) -> None:
        self.reached, self._open = threading.Event(), threading.Event()
        self.holds = False

    def __call__(self) -> None:
        if self.holds and threading.current_thread().name == "builder":
            self.reached.set()
            assert self._open.wait(WAIT)

    @contextmanager
    def held(self, world: ActivatingWorld) -> Iterator[None]:
        """Begin a build in a thread, wait until it stands here, and let it end after the block."""
        self.holds = True
        thread = threading.Thread(target=world.build, name="builder")
        thread.start()
        try:
            assert self.reached.wait(WAIT)
            yield
            assert thread.is_alive()
        finally:
            self._open.set()
            thread.join(WAIT)


class Embedding(HashingEmbedder):
    """Stands still in the middle of embedding for the index."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate

    def embed_passages(self, texts: Sequence[str]) -> list[PassageVectors]:
        self._gate()
        return super().embed_passages(texts)


@pytest.fixture(params=["embedding", "planned", "lexical written", "before publication"])
def during(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ActivatingWorld, Gate]]:
    """A machine whose build of an earlier change can be held at a point."""
    gate = Gate()

    def checkpoint(name: str) -> None:
        if name == request.param:
            gate()

    world = ActivatingWorld(tmp_path, embedder=Embedding(gate), checkpoint=checkpoint)
    world.build()
    world.create("earlier.md", "# Earlier\n\nA change that is being indexed.\n")
    yield world, gate
    world.close()


def texts(answer: ActivateAnswer) -> list[str]:
    return [fragment.content or "" for fragment in answer.fragments]


def removed(answer: ActivateAnswer) -> set[str]:
    return {unit.resource_id for unit in answer.removed}


Writes = Callable[[ActivatingWorld], None]


@pytest.mark.requirement("activate.own-draft.while-building")
def test_what_is_created_edited_renamed_and_deleted_during_a_build_shows_in_the_next_call(
    during: tuple[ActivatingWorld, Gate],
) -> None:
    world, gate = during
    with gate.held(world):
        made = world.create("notes/guard.md", "# Guard\n\nA giraffe guards the queue.\n")
        first = world.ask(QUESTION)
        assert "A giraffe guards the queue." in texts(first)
        assert not first.index_lag

        world.update(made.resource_id, "giraffe", "zebra")
        second = world.ask(QUESTION, first.next_state)
        fragment = next(each for each in second.fragments if each.resource_id == made.resource_id)
        assert (fragment.action, fragment.content) == ("replace", "A zebra guards the queue.")

        world.rename(made.resource_id, "notes/watch.md")
        third = world.ask(QUESTION, second.next_state)
        fragment = next(each for each in third.fragments if each.resource_id == made.resource_id)
        assert (fragment.action, fragment.path) == ("reuse", "notes/watch.md")

        world.update("mem_own", "alpha", "kumquat")
        assert any("kumquat" in text for text in texts(world.ask("kumquat")))
        assert not any("alpha" in text for text in texts(world.ask("mem_own")))

        world.discard(made.resource_id)
        world.delete("mem_own")
        last = world.ask(QUESTION, third.next_state)
        assert made.resource_id in removed(last)
        assert not {made.resource_id, "mem_own"} & {each.resource_id for each in last.fragments}
    world.build()
    after = world.ask(QUESTION)
    assert not any("zebra" in text for text in texts(after))
    assert world.manager.status("prj_1").lag is False


@pytest.mark.requirement("activate.own-draft.while-building")
def test_a_generation_that_is_published_with_an_older_text_never_shows_it(
    during: tuple[ActivatingWorld, Gate],
) -> None:
    world, gate = during
    made = world.create("notes/guard.md", "# Guard\n\nA giraffe guards the queue.\n")
    with gate.held(world):  # Of a memory in which a giraffe guards the queue.
        world.update(made.resource_id, "giraffe", "zebra")
        before = world.ask(QUESTION)
    after = world.ask(QUESTION, before.next_state)
    for answer in (before, after):
        assert not any("giraffe" in text for text in texts(answer))
    fragment = next(each for each in after.fragments if each.resource_id == made.resource_id)
    assert fragment.action == "reuse"
