"""Whatever is stored in whatever order: the promises hold after every step."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shared_schema.drafts import DraftStatus
from shared_schema.errors import InterleafError
from shared_schema.memory import Scope
from shared_schema.rules.paths import PathSet
from shared_schema.sync_status import SyncStatus
from shared_schema.tool_contract import StoreAnswer
from tests.client.local_world import PROJECT, LocalWorld, published

PATHS = st.sampled_from(["a.md", "A.md", "b.md", "a.md/c.md", "x/y.md", "x", "own.md", "ref.md", "ref2.md"])
WORDS = st.sampled_from(["alpha", "beta", "gamma", "delta"])
START = [
    published("mem_own", "own.md"),
    published("mem_own2", "own2.md"),
    published("mem_ref", "ref.md", scope=Scope.ORG),
    published("mem_ref2", "ref2.md", scope=Scope.ORG),
]


class StoreSequences(RuleBasedStateMachine):
    """Agents store, synchronisation sends, reviewers merge; every target is among what there is."""

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = LocalWorld(Path(self.folder.name), START)
        self.answers: list[StoreAnswer] = []
        self.seq = 1

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
            self.folder.cleanup()

    def attempt(self, action: Any, *arguments: Any) -> None:
        before, shown = self.world.dump(), self.world.shown()
        try:
            answer = action(*arguments)
        except InterleafError:
            assert self.world.dump() == before
            assert self.world.shown() == shown
            return
        self.answers.append(answer)
        with self.world.store.read() as uow:
            operation = uow.drafts.operation(answer.local_operation_id)
            row = uow.outbox.get(answer.local_operation_id)
        assert operation is not None
        assert operation.draft_id == answer.draft_id
        assert (row is not None) is answer.queued
        assert answer.sync_status is (SyncStatus.QUEUED if answer.queued else SyncStatus.SYNCED)
        item = self.world.shown().by_id.get(answer.resource_id)
        if answer.content_hash is not None:
            assert item is not None
            assert (item.content_hash, item.path) == (answer.content_hash, answer.path)

    def target(self, data: st.DataObject) -> str:
        known = sorted({"mem_own", "mem_own2", "mem_ref", "mem_ref2", *(a.resource_id for a in self.answers)})
        return data.draw(st.sampled_from(known))

    @rule(path=PATHS, word=WORDS)
    def create(self, path: str, word: str) -> None:
        self.attempt(self.world.create, path, f"# {word}\n\nalpha beta\n")

    @rule(data=st.data(), old=WORDS, new=WORDS)
    def update(self, data: st.DataObject, old: str, new: str) -> None:
        target = self.target(data)
        if target in self.world.shown().by_id:
            self.attempt(self.world.update, target, old, new)

    @rule(data=st.data(), path=PATHS)
    def rename(self, data: st.DataObject, path: str) -> None:
        self.attempt(self.world.rename, self.target(data), path)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.attempt(self.world.delete, self.target(data))

    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        self.attempt(self.world.discard, self.target(data))

    @rule(count=st.integers(1, 3))
    def send(self, count: int) -> None:
        self.world.send(count)

    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        """A reviewer merges one Project Draft; the commit is pulled in a later step, or at once."""
        with self.world.store.read() as uow:
            drafts = [d for d in uow.drafts.list(PROJECT, active_only=True) if d.scope is Scope.PROJECT]
            if not drafts:
                return
            draft = data.draw(st.sampled_from(drafts))
            beneath = [d for d in uow.drafts.standing_on(PROJECT, draft.resource_id) if not d.active]
        if beneath:
            return
        self.seq += 1
        commit = f"c{self.seq}"
        state = draft.state()
        with self.world.store.write() as uow:
            uow.drafts.put(
                replace(draft, status=DraftStatus.MERGED, merged_commit=commit, merged_seq=self.seq)
            )
            uow.touch(PROJECT, {draft.resource_id})
        shown = [replace_draft(item) for item in self.world.shown().resources]
        touched = {draft.resource_id}
        with self.world.store.write() as uow:
            row = uow.projects.get(PROJECT)
            assert row is not None
            if state.exists:
                resource = published(
                    draft.resource_id,
                    state.path,
                    state.body,
                    description=state.description,
                    org_source=state.org_source,
                )
                uow.published.put_many(PROJECT, [resource])
                if state.org_source is not None:
                    touched.add(state.org_source.resource_id)
                    uow.published.remove(PROJECT, [state.org_source.resource_id])
            else:
                uow.published.remove(PROJECT, [draft.resource_id])
            uow.projects.put(replace(row, installed_commit=commit, installed_seq=self.seq))
            uow.touch(PROJECT, touched)
        # Memory never flickers: what is read before and after the pull is the same.
        assert [replace_draft(item) for item in self.world.shown().resources] == shown

    @invariant()
    def incremental_equals_full(self) -> None:
        if hasattr(self, "world"):
            assert self.world.shown() == self.world.projected_anew()
            assert self.world.shown().hash == self.world.projected_anew().hash

    @invariant()
    def paths_are_unique_and_clear_of_each_other(self) -> None:
        if hasattr(self, "world"):
            resources = self.world.shown().resources
            paths = PathSet((item.path, item.resource_id) for item in resources)
            for item in resources:
                assert paths.find_clash(item.path, item.resource_id) is None

    @invariant()
    def one_active_draft_for_a_resource_and_ordinals_without_holes(self) -> None:
        if hasattr(self, "world"):
            with self.world.store.read() as uow:
                drafts = uow.drafts.list(PROJECT)
            active = Counter(draft.resource_id for draft in drafts if draft.active)
            assert all(count == 1 for count in active.values())
            for draft in drafts:
                ordinals = [operation.ordinal for operation in draft.operations]
                assert ordinals == list(range(1, len(ordinals) + 1))


def replace_draft(item: Any) -> tuple[object, ...]:
    return (item.resource_id, item.path, item.description, item.body, item.org_source)


StoreSequences.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.requirement("store.refused.no_trace", "domain.projection.incremental", "store.one_draft")
class TestAnySequenceKeepsThePromises(StoreSequences.TestCase):
    pass
