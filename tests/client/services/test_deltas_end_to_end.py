"""A client that applies the deltas it is given, through the real service, store and index.

Whatever happens to the memory and to the index between two calls: what an answer says the client has is
the live text, exactly; what the client was told and is gone is named as removed; nothing is sent twice,
and nothing is taken for sent that was not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from client.domain import chunking
from client.domain.activation_state import EXPIRES_AFTER, read
from client.domain.chunking import Unit, cut, text_hash
from client.index import manifest
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import PublishedResource, Scope
from shared_schema.tool_contract import ActivateAnswer
from tests.client.local_world import PROJECT, published
from tests.client.services.activating_world import KEY, ActivatingWorld
from tests.client.services.changing_documents import (
    CHANGES,
    DOCUMENTS,
    SECTIONS,
    TOPICS,
    Section,
    body_of,
    changed,
)

NAMES = ("mem_own", "mem_ref", "mem_new")
PATHS = ("a.md", "b.md", "x/y.md", "own.md", "ref.md", "z.md")
QUERIES = st.sampled_from((*TOPICS, *PATHS, *NAMES))
Ask = tuple[int, str]
"""From which of the last states, and for what."""
ASK: st.SearchStrategy[Ask] = st.tuples(st.integers(0, 3), QUERIES)


def use_chunker(version: int) -> None:
    """Cut as this release does (1), or as one that joins no short neighbours (2)."""
    values = {"_SHORT_TOKENS": {1: 64, 2: 0}[version], "CHUNKER_VERSION": version}
    for name, value in values.items():
        setattr(chunking, name, value)
    # The manifest's own name for it.
    setattr(manifest, "CHUNKER_VERSION", version)  # noqa: B010 - not exported, for the type checker


@dataclass
class Context:
    """One agent's context: the token that it goes on with, and the text that it was given, by unit."""

    token: str | None = None
    held: dict[str, str] = field(default_factory=dict)

    def after(self, answer: ActivateAnswer, live: Mapping[str, Unit]) -> Context:
        """Apply an answer as its contract says, and hold it against the live text."""
        held = dict(self.held)
        for gone in answer.removed:
            assert held.pop(gone.unit_key, None) is not None, "only what the client has is removed"
            assert gone.unit_key not in live, "what exists is not removed"
        for fragment in answer.fragments:
            key = fragment.unit_key
            if fragment.action == "reuse":
                assert fragment.content is None
                assert key in held, "the client was never given this"
            else:
                assert fragment.content is not None
                assert (fragment.action == "replace") == (key in held)
                assert held.get(key) != fragment.content, "the same text is sent twice"
                held[key] = fragment.content
            unit = live[key]
            assert held[key] == unit.text, "the text that the answer speaks of is the live one"
            assert fragment.content_hash == text_hash(held[key])
            assert (fragment.path, tuple(fragment.heading_path)) == (unit.path, unit.heading_path)
        assert held.keys() <= live.keys(), "a unit that is gone was not named as removed"
        return Context(answer.next_state, held)


class Deltas(RuleBasedStateMachine):
    """Agents and people write, commits arrive, the index follows or not; agents ask from old states."""

    @initialize(first=DOCUMENTS, second=DOCUMENTS, behind=st.booleans())
    def start(self, first: tuple[Section, ...], second: tuple[Section, ...], behind: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = ActivatingWorld(Path(self.folder.name))
        self.behind = behind
        if behind:
            self.world.runs.start()
        self.shown = {"mem_own": first, "mem_ref": second}
        self.paths = {"mem_own": "own.md", "mem_ref": "ref.md"}
        self.descriptions = {"mem_own": "about everything"}
        self.contexts = [Context()]
        self.commits = 1
        self.publish()
        self.world.build()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            use_chunker(1)
            self.world.close()
            self.folder.cleanup()

    # --- what the server publishes ------------------------------------------------------

    def publish(self) -> None:
        self.commits += 1
        self.world.publish(
            [self.resource(each) for each in self.shown], commit=f"c{self.commits}", seq=self.commits
        )

    def resource(self, resource_id: str) -> PublishedResource:
        scope = Scope.ORG if resource_id == "mem_ref" else Scope.PROJECT
        return published(
            resource_id,
            self.paths[resource_id],
            body_of(self.shown[resource_id]),
            scope=scope,
            description=self.descriptions.get(resource_id, ""),
        )

    @rule(number=st.integers(0, 5), change=CHANGES, place=st.integers(0, 3), other=SECTIONS, ask=ASK)
    def commit_edit(self, number: int, change: str, place: int, other: Section, ask: Ask) -> None:
        if self.shown:
            name = sorted(self.shown)[number % len(self.shown)]
            if change == "describe":
                self.descriptions[name] = f"about {other.topic} and {place} more"
            else:
                self.shown[name] = changed(self.shown[name], change, place, other)
            self.publish()
        self.ask(ask)

    @rule(name=st.sampled_from(NAMES), document=DOCUMENTS, path=st.integers(0, 9), ask=ASK)
    def commit_appears_or_goes(self, name: str, document: tuple[Section, ...], path: int, ask: Ask) -> None:
        """A resource is published, deleted, or its reference is given up; or comes back."""
        if self.shown.pop(name, None) is None:
            self.shown[name], self.paths[name] = document, f"p{path}.md"
        self.publish()
        self.ask(ask)

    @rule(rarely=st.integers(0, 3), ask=ASK)
    def access_is_lost_and_regained(self, rarely: int, ask: Ask) -> None:
        if rarely:
            return
        self.world.revoke()
        with pytest.raises(InterleafError) as lost:
            self.world.ask(ask[1], self.contexts[-1].token)
        assert lost.value.code is ErrorCode.PROJECT_ACCESS_LOST
        self.publish()
        self.no_state_is_valid()

    # --- what is written here -----------------------------------------------------------

    def attempt(self, action: Callable[..., Any], *arguments: Any) -> None:
        try:
            action(*arguments)
        except InterleafError as error:
            assert error.code is not ErrorCode.INTERNAL_ERROR  # noqa: PT017 - any other refusal is fine

    def target(self, number: int) -> str:
        """Return one of the visible resources, or none."""
        visible = sorted(resource.resource_id for resource in self.world.projected_anew().resources)
        return visible[number % len(visible)] if visible else "mem_none"

    @rule(path=st.sampled_from(PATHS), document=DOCUMENTS, ask=ASK)
    def create(self, path: str, document: tuple[Section, ...], ask: Ask) -> None:
        self.attempt(self.world.create, path, body_of(document))
        self.ask(ask)

    @rule(number=st.integers(0, 9), document=DOCUMENTS, ask=ASK)
    def write(self, number: int, document: tuple[Section, ...], ask: Ask) -> None:
        """Edit what is visible; of an Organization's document that makes an adaptation, which hides it."""
        target = self.target(number)
        if target != "mem_none":
            self.attempt(self.world.update, target, self.world.item(target).body, body_of(document))
        self.ask(ask)

    @rule(number=st.integers(0, 9), path=st.sampled_from(PATHS), ask=ASK)
    def rename(self, number: int, path: str, ask: Ask) -> None:
        self.attempt(self.world.rename, self.target(number), path)
        self.ask(ask)

    @rule(number=st.integers(0, 9), discard=st.booleans(), ask=ASK)
    def remove(self, number: int, discard: bool, ask: Ask) -> None:
        self.attempt(self.world.discard if discard else self.world.delete, self.target(number))
        self.ask(ask)

    # --- what happens to the process and the index --------------------------------------

    @rule(ask=ASK)
    def index_follows(self, ask: Ask) -> None:
        self.world.build()
        self.ask(ask)

    @rule(another_chunker=st.booleans(), ask=ASK)
    def restart(self, another_chunker: bool, ask: Ask) -> None:
        """The process starts anew, perhaps of a release that cuts documents in another way."""
        self.world.runs.stop()
        if another_chunker:
            use_chunker(3 - int(chunking.CHUNKER_VERSION))
        self.world.open_index()
        if self.behind:
            self.world.runs.start()
        self.ask(ask)

    @rule(rarely=st.integers(0, 3))
    def a_week_passes(self, rarely: int) -> None:
        if not rarely:
            self.world.now += EXPIRES_AFTER + 1
            self.no_state_is_valid()

    # --- what agents ask ----------------------------------------------------------------

    @rule(number=st.integers(0, 5), queries=st.lists(QUERIES, min_size=2, max_size=4))
    def talk(self, number: int, queries: list[str]) -> None:
        """Ask several times in one conversation, begun from any state that was ever given out."""
        for query in queries:
            self.ask((number, query))
            number = 0

    @rule(number=st.integers(0, 5), place=st.integers(0, 200))
    def forge_a_state(self, number: int, place: int) -> None:
        token = self.contexts[-1 - number % len(self.contexts)].token
        if token is not None:
            place %= len(token)
            self.refused(token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :])

    def ask(self, ask: Ask) -> None:
        """Ask from one of the last states: conversations fork."""
        number, query = ask
        context = self.contexts[-1 - number % len(self.contexts)]
        try:
            answer = self.world.ask(query, context.token)
        except InterleafError as error:
            # After a restart of another release; the state is good for the next try.
            assert error.code is ErrorCode.SEARCH_INDEX_PREPARING  # noqa: PT017
            self.world.build()
            answer = self.world.ask(query, context.token)
        assert not answer.index_lag
        following = context.after(answer, self.live())
        assert self.stored(answer.next_state) == {k: text_hash(v) for k, v in following.held.items()}
        self.contexts = [*self.contexts, following][-5:]

    def refused(self, token: str) -> None:
        """The token stands for nothing, and is never taken for an empty state."""
        with pytest.raises(InterleafError) as refusal:
            self.world.ask("kumquat", token)
        assert refusal.value.code is ErrorCode.INVALID_ACTIVATION_STATE

    def no_state_is_valid(self) -> None:
        for context in self.contexts:
            if context.token is not None:
                self.refused(context.token)
        self.contexts = [Context()]

    def live(self) -> dict[str, Unit]:
        """Return every unit that exists, cut anew from what the Project shows, without any cache."""
        count = self.world.embedder.count_tokens
        resources = self.world.projected_anew().resources
        return {unit.unit_key: unit for each in resources for unit in cut(each, count)}

    def stored(self, token: str) -> dict[str, str]:
        """Return what the daemon keeps of a state: content hashes by unit."""
        self.world.runs.flush()
        with self.world.store.read() as uow:
            row = uow.activation_states.get(read(token, KEY, PROJECT).state_id)
        assert row is not None
        return {key: content_hash for key, (content_hash, _) in row.units.items()}


Deltas.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.requirement("activate.delta.end-to-end")
class TestDeltas(Deltas.TestCase):
    pass
