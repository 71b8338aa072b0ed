"""Explain on the real store and index: the verdict in a sentence, and what a person could do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from client.index import overlay
from client.index.manager import IndexManager
from client.index.searcher import Searcher
from client.index.vector_cache import VectorCache
from client.services.explain_ranking import ExplainRanking
from client.services.read_runs import ReadRuns
from client.store.activations import RunRow
from shared_schema.daemon_contract import RunCall, RunListCall, RunPinCall
from shared_schema.drafts import DraftStatus
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.explanations import ExplainCall, Explained
from shared_schema.memory import PublishedResource, Scope
from tests.client.local_world import OWN, PROJECT, REFERENCE, LocalWorld, published
from tests.fakes.hashing_embedder import HashingEmbedder

RELEASE = published(
    "mem_rel", "guides/release notes.md", "# Release\n\nTag the commit and sign the package.\n"
)
TEA = published("mem_tea", "tea.md", "# Tea\n\nHot water, three minutes.\n")
CHINESE = published("mem_zh", "zh/发布.md", "# 发布流程\n\n先检查合同编号，再打标签。\n")


class World:
    """A machine with an indexed Project, and others beside it."""

    def __init__(self, home: Path) -> None:
        self.local = LocalWorld(home, (OWN, REFERENCE, RELEASE, TEA, CHINESE))
        self.cache = VectorCache(home / "vectors.db", self.local.clock)
        embedder = HashingEmbedder()
        self.index = IndexManager(home / "index", self.local.memory.get, lambda: embedder, self.cache)
        self.models: Any = SimpleNamespace(embedder=lambda: embedder)
        self.searcher = Searcher(self.cache)
        self.explain = ExplainRanking(
            self.local.store, self.local.memory, self.index, self.searcher, self.models
        )
        self.reindex()

    def reindex(self) -> None:
        self.index.wake(PROJECT)
        self.index.run_once()

    def other(self, name: str, *resources: PublishedResource) -> None:
        self.local.publish(resources, commit="c", seq=1, project_id=name)

    def ask(self, query: str, resource: str, project: str = PROJECT) -> Explained:
        return self.explain(ExplainCall(project=project, query=query, resource=resource))

    def close(self) -> None:
        self.cache.close()
        self.local.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "home")
    yield made
    made.close()


@pytest.mark.requirement("explain.verdicts")
def test_a_returned_document_is_told_with_its_place_in_the_answer(world: World) -> None:
    found = world.ask("sign the package", "mem_rel")
    assert (found.verdict, found.advice) == ("selected", [])
    assert found.sentence == "Returned: guides/release notes.md gives fragment 1 of 1."
    assert (found.path, found.resource_id, found.project_name) == (RELEASE.path, "mem_rel", "Alpha")
    (unit,) = found.units
    assert (unit.answer_place, unit.final_place, unit.outcome) == (1, 1, "selected")
    assert [(term.written, term.units) for term in found.terms] == [("sign", 1), ("package", 1)]
    named = world.ask("what does tea.md say about the package?", "tea.md")
    assert named.sentence == "Returned: tea.md gives fragment 1 of 2. The query names it."
    assert named.units[0].named


@pytest.mark.requirement("explain.verdicts", "explain.advice")
def test_what_is_below_the_floor_is_told_by_how_much_and_which_words_it_lacks(world: World) -> None:
    found = world.ask("sign the package", "tea.md")
    assert found.verdict == "below_relevance"
    floor = found.units[0].floor
    assert floor is not None
    assert f"is {-floor.margin:.1f} below the relevance floor." in found.sentence
    assert '"sign" and "package"' in found.advice[0].text
    assert found.advice[0].command == "interleaf draft edit tea.md --description '…'"
    assert "puts it first" in found.advice[-1].text
    assert found.weakest is not None
    assert (found.weakest.path, found.weakest.final_place) == (RELEASE.path, 1)
    assert found.weakest.floor.margin > 0 > floor.margin
    assert found.coverage == 1.0


@pytest.mark.requirement("explain.advice")
def test_advice_is_a_command_that_the_shell_takes_apart_rightly(world: World) -> None:
    found = world.ask("minutes of water", "guides/release notes.md")
    command = found.advice[0].command
    assert command is not None
    assert shlex.split(command)[:4] == ["interleaf", "draft", "edit", "guides/release notes.md"]


@pytest.mark.requirement("explain.advice")
def test_a_query_in_another_script_is_told_apart_from_missing_words(world: World) -> None:
    found = world.ask("茶要泡多久", "tea.md")
    assert found.verdict == "below_relevance"
    assert "different scripts" in found.advice[0].text
    found = world.ask("茶要泡多久", "mem_zh")
    assert '"茶要泡多久"' in found.advice[0].text


@pytest.mark.requirement("explain.verdicts")
def test_what_stands_behind_others_is_told_with_its_place(world: World) -> None:
    docs = [published(f"mem_{n:03d}", f"many/{n}.md", f"# N{n}\n\nzebra zebra n{n}\n") for n in range(130)]
    far = published("mem_far", "far.md", "# Far\n\none zebra among many other words and animals here\n")
    lost = published("mem_lost", "lost.md", "# Lost\n\nnothing of that kind\n")
    world.local.publish([*docs, far, lost], commit="c2", seq=2)
    world.reindex()
    found = world.ask("zebra", "lost.md")
    assert found.verdict == "not_a_candidate"
    assert found.sentence == (
        "Not returned: no part of lost.md is among the best 100 of 132 by words or by meaning."
    )
    assert found.units[0].dense_rank == 132
    verdicts = {n: world.ask("zebra", f"many/{n}.md") for n in range(40)}
    behind = next(each for each in verdicts.values() if each.verdict == "not_reranked")
    assert f"came to place {behind.units[0].fused_place} by words and meaning" in behind.sentence
    assert "only the best 24 were looked at again" in behind.sentence
    full = next(each for each in verdicts.values() if each.verdict == "fragment_limit")
    assert "the answer was full with 12 fragments" in full.sentence
    assert "narrower" in full.advice[0].text


@pytest.mark.requirement("explain.verdicts")
def test_the_same_text_and_too_long_a_text_are_told(world: World) -> None:
    twins = [published(f"mem_t{n}", f"twin{n}.md", "# Zebra\n\nstripes of a zebra\n") for n in range(2)]
    world.local.publish(twins, commit="c2", seq=2)
    world.reindex()
    verdicts = {path: world.ask("zebra stripes", path) for path in ("twin0.md", "twin1.md")}
    by_verdict = {each.verdict: each for each in verdicts.values()}
    assert by_verdict.keys() == {"selected", "overlap"}
    assert by_verdict["selected"].path in by_verdict["overlap"].sentence
    long = [
        published(f"mem_l{n}", f"long{n}.md", "# L\n\n" + " ".join(f"zebra w{n}x{k}" for k in range(150)))
        for n in range(9)
    ]
    world.local.publish(long, commit="c3", seq=3)
    world.reindex()
    found = next(
        each for n in range(9) if (each := world.ask("zebra", f"long{n}.md")).verdict == "token_budget"
    )
    assert f"its {found.units[0].tokens} tokens did not fit into the 2,400 of an answer" in found.sentence
    assert "headings" in found.advice[0].text


@pytest.mark.requirement("explain.not-visible")
def test_a_source_that_an_adaptation_hides_is_told_with_the_adaptation(world: World) -> None:
    adapted = world.local.update("mem_ref", "alpha", "omega")
    world.local.rename(adapted.resource_id, "ours/ref.md")
    for asked in ("mem_ref", "ref.md"):
        found = world.ask("alpha", asked)
        assert found.verdict == "hidden_by_adaptation"
        assert (found.resource_id, found.path, found.units) == ("mem_ref", "ref.md", [])
        assert f"ours/ref.md ({adapted.resource_id})" in found.sentence
        assert found.advice[0].command == f"interleaf explain alpha {adapted.resource_id}"
    assert world.ask("omega", "ours/ref.md").verdict == "selected"


@pytest.mark.requirement("explain.not-visible")
def test_what_a_draft_deletes_is_told_with_the_draft(world: World) -> None:
    deleted = world.local.delete("mem_tea")
    for asked in ("mem_tea", "tea.md"):
        found = world.ask("water", asked)
        assert (found.verdict, found.resource_id, found.path) == ("deleted_by_draft", "mem_tea", "tea.md")
        assert found.advice[0].command == f"interleaf draft discard {deleted.draft_id}"
    merged = replace(
        world.local.draft(deleted.draft_id), status=DraftStatus.MERGED, merged_commit="c9", merged_seq=9
    )
    world.local.set_draft(merged)
    found = world.ask("water", "tea.md")
    assert "which is merged" in found.sentence
    assert found.advice == []


@pytest.mark.requirement("explain.not-visible")
def test_what_another_project_shows_is_told_with_its_name(world: World) -> None:
    world.other("prj_2", published("mem_x", "only/there.md"), published("mem_o", "org.md", scope=Scope.ORG))
    found = world.ask("gamma", "only/there.md")
    assert (found.verdict, found.resource_id) == ("not_in_project", "mem_x")
    assert [each.command for each in found.advice] == ["interleaf explain gamma mem_x --project Alpha"]
    found = world.ask("what's new", "mem_o")
    assert found.advice[0].command is not None
    assert shlex.split(found.advice[0].command)[2] == "what's new"
    assert found.advice[1].command == "interleaf selection add mem_o"


@pytest.mark.requirement("explain.not-visible")
def test_a_typing_error_gets_the_paths_that_are_near(world: World) -> None:
    with pytest.raises(InterleafError) as unknown:
        world.ask("tag", "guides/relase notes.md")
    assert unknown.value.code is ErrorCode.MEMORY_RESOURCE_NOT_FOUND
    assert unknown.value.details["suggestions"] == {"guides/relase notes.md": [RELEASE.path]}


@pytest.mark.requirement("explain.verdicts")
def test_text_that_is_not_indexed_yet_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "OVERLAY_CHARACTERS", 10)
    world.local.create("notes/new.md", "# New\n\nzebra zebra\n")
    found = world.ask("zebra", "notes/new.md")
    assert found.verdict == "not_indexed"
    assert found.sentence == "Not returned: the present text of notes/new.md is not indexed yet."
    assert found.index_lag
    assert found.advice[0].command == "interleaf search status"
    world.reindex()
    assert world.ask("zebra", "notes/new.md").verdict == "selected"


@pytest.mark.requirement("explain.read-only")
def test_nothing_is_written(world: World) -> None:
    before = world.local.dump()
    world.ask("sign the package", "mem_rel")
    world.ask("sign the package", "tea.md")
    assert world.local.dump() == before
    assert before["retrieval_run"] == []


@pytest.mark.requirement("explain.not-visible")
def test_what_needs_no_model_is_told_without_one(world: World) -> None:
    def absent() -> Any:
        raise InterleafError(ErrorCode.SEARCH_MODEL_PREPARING)

    world.local.delete("mem_tea")
    world.models.embedder = absent
    assert world.ask("water", "tea.md").verdict == "deleted_by_draft"
    with pytest.raises(InterleafError) as refused:
        world.ask("water", "mem_rel")
    assert refused.value.code is ErrorCode.SEARCH_MODEL_PREPARING


@pytest.mark.requirement("runs.pinned")
def test_a_pinned_run_is_kept_and_let_go_again(world: World) -> None:
    runs = ReadRuns(world.local.store)
    with world.local.store.write() as uow:
        uow.runs.add(RunRow("run_1", PROJECT, 1, "q", "search_1", 0, 1.0, False, {}))
    assert runs.pin(RunPinCall(run_id="run_1", pinned=True)).pinned
    with world.local.store.write() as uow:
        for n in range(2, 504):
            uow.runs.add(RunRow(f"run_{n}", PROJECT, n, "q", "search_1", 0, 1.0, False, {}))
    shown = runs.show(RunCall(run_id="run_1")).run
    assert (shown.pinned, shown.project_name) == (True, "Alpha")
    assert runs.list(RunListCall(limit=1)).runs[0].project_name == "Alpha"
    assert not runs.pin(RunPinCall(run_id="run_1", pinned=False)).pinned
    for refused in (
        lambda: runs.pin(RunPinCall(run_id="run_2", pinned=True)),
        lambda: runs.show(RunCall(run_id="run_2")),
    ):
        with pytest.raises(InterleafError) as gone:
            refused()
        assert gone.value.code is ErrorCode.RUN_NOT_FOUND
