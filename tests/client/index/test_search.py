from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from client.domain.analysis import query_terms
from client.domain.assembly import Reason
from client.domain.embedding import QueryVectors
from client.domain.ranking import FIELD_BOOSTS, Coverage, bm25_field, inverse_document_frequency
from client.index import overlay
from client.index.lexical import FieldTerms
from client.index.overlay import View
from client.index.recall import union
from client.index.searcher import Searcher, Snapshot
from client.index.vector_cache import VectorCache
from shared_schema.errors import ErrorCode, InterleafError
from tests import text_fixtures as fixtures
from tests.client.index.conftest import PROJECT, World, memory_of, resource, sample
from tests.fakes.hashing_embedder import HashingEmbedder


def found(trace: object) -> list[str]:
    return [unit.resource_id for unit in trace.units]  # type: ignore[attr-defined]  # a Trace


@pytest.mark.requirement("retrieval.search.finds")
@pytest.mark.parametrize(
    ("query", "resource_id"),
    [
        ("how do I sign and publish the package", "mem_release"),
        ("backup before migrations", "mem_database"),
        ("合同编号", "mem_chinese"),
        ("expectedHash", "mem_queue"),
        ("expected_hash", "mem_queue"),
    ],
)
def test_a_question_finds_its_document_first(world: World, query: str, resource_id: str) -> None:
    world.index(sample())
    assert found(world.search(query))[0] == resource_id


@pytest.mark.requirement("retrieval.identity")
@pytest.mark.parametrize(
    "query",
    [
        "mem_database",
        "guides/database.md",
        "database",
        "Please read `guides/database.md` before the release.",
        " DATABASE ",
    ],
)
def test_a_named_resource_comes_first(world: World, query: str) -> None:
    world.index(sample())
    trace = world.search(query)
    assert found(trace)[0] == "mem_database"
    assert trace.candidates[0].identity


@pytest.mark.requirement("retrieval.floor")
@pytest.mark.parametrize("query", ["quantum entanglement of photons", "🎉", "...", "天气预报"])
def test_an_unrelated_query_returns_nothing(world: World, query: str) -> None:
    world.index(sample())
    trace = world.search(query)
    assert trace.units == ()
    assert {each.reason for each in trace.candidates} <= {Reason.BELOW_RELEVANCE, Reason.NOT_RERANKED}


@pytest.mark.requirement("retrieval.trace")
def test_the_trace_explains_every_candidate(world: World) -> None:
    world.index(sample())
    trace = world.search("publish the package before migrations")
    assert trace.index_revision.startswith("search_")
    assert trace.reranker == "late_interaction"
    assert 0 < trace.coverage <= 1
    assert trace.alpha == pytest.approx(0.5 + 0.3 * (1 - trace.coverage))
    assert {"lexical", "embed_query", "dense", "fusion", "rerank", "assembly"} <= trace.latencies.keys()
    assert len({each.unit_key for each in trace.candidates}) == len(trace.candidates)
    finals = [each.final for each in trace.candidates if each.final is not None]
    assert finals == sorted(finals, reverse=True)
    best = trace.candidates[0]
    assert best.bm25_rank == 1
    assert best.rrf > 0
    assert best.rerank is not None
    assert best.margin is not None
    assert all(each.relevant == (each.margin is not None and each.margin >= 0) for each in trace.candidates)
    assert trace.missing_terms == ()
    assert world.search("publish xyzzy").missing_terms == ("xyzzi",)
    assert [n for n, each in enumerate(trace.candidates) if each.reason is Reason.SELECTED] == sorted(
        trace.selected
    )


@pytest.mark.parametrize(
    "query", ["a AND (", "id:*", '"', "path:x OR", "\\", "*", "\x00", "\ud800", "x" * 8_192, "中" * 8_192]
)
def test_no_text_is_a_malformed_query(world: World, query: str) -> None:
    world.index(sample())
    world.search(query)


@pytest.mark.parametrize("name", sorted(fixtures.BODIES))
def test_text_of_every_kind_is_returned_exactly(world: World, name: str) -> None:
    body = fixtures.BODIES[name]
    world.index(memory_of(resource("mem_x", "odd/text.md", body)))
    trace = world.search("odd/text.md")
    assert trace.units
    for unit in trace.units:
        assert unit.text == body[unit.chars[0] : unit.chars[1]]


@pytest.mark.requirement("retrieval.overlay.draft")
def test_a_draft_is_found_in_the_next_call_before_it_is_indexed(world: World) -> None:
    world.index(sample())
    draft = resource("mem_new", "notes/unicorns.md", "# Unicorns\n\nFeed the unicorn at noon.", draft=True)
    later = memory_of(*sample().resources, draft)
    trace = world.search("when to feed the unicorn", later)
    assert found(trace)[0] == "mem_new"
    assert trace.candidates[0].overlay
    assert not trace.index_lag


@pytest.mark.requirement("retrieval.overlay.edit")
def test_an_edited_resource_shows_its_new_text_only(world: World) -> None:
    world.index(sample())
    edited = sample(database="# Database\n\nMigrations run after lunch; call the operator.")
    trace = world.search("migrations backup operator", edited)
    texts = [each.unit.text for each in trace.candidates]
    assert "Migrations run after lunch; call the operator." in texts
    assert not any("backup" in text for text in texts)


@pytest.mark.requirement("retrieval.overlay.revoked")
def test_nothing_of_a_removed_resource_is_a_candidate(world: World) -> None:
    world.index(sample())
    trace = world.search("sign and publish the package mem_release", sample(release=""))
    assert "mem_release" not in {each.resource_id for each in trace.candidates}
    assert not trace.is_live("mem_release/release/0/0", "mem_release")


def test_a_moved_resource_answers_to_its_new_path_only(world: World) -> None:
    world.index(sample())
    moved = memory_of(
        *(each for each in sample().resources if each.resource_id != "mem_queue"),
        resource("mem_queue", "design/messages.md", sample().by_id["mem_queue"].body, title="queue"),
    )
    assert found(world.search("design/messages.md", moved))[0] == "mem_queue"
    assert {unit.path for unit in world.search("expected_hash", moved).units} == {"design/messages.md"}
    assert not any(each.identity for each in world.search("guides/queue.md", moved).candidates)
    by_words = world.search("which design", moved).candidates
    assert [each.resource_id for each in by_words if each.bm25_rank == 1] == ["mem_queue"]


def test_what_a_change_left_alone_is_not_embedded_again(world: World) -> None:
    world.index(sample())
    before = world.embedder.calls["passages"]
    edited = sample(release=sample().by_id["mem_release"].body + "\n\n# Later\n\nAnnounce it.")
    world.search("announce", edited)
    assert world.embedder.calls["passages"] == before + 1
    world.search("announce again", edited)
    world.index(edited)
    assert world.embedder.calls["passages"] == before + 1, "the index takes it from the cache"


@pytest.mark.requirement("retrieval.overlay.bounded")
def test_one_call_embeds_a_bounded_number_of_new_units_drafts_and_best_words_first(world: World) -> None:
    world.index(sample())
    before = world.embedder.calls["passages"]
    many = [
        resource(f"mem_n{n:02d}", f"new/n{n}.md", f"# N{n}\n\nnumber word{n} here") for n in range(50)
    ] + [resource("mem_zz", "new/zz.md", "# Draft\n\nmy own draft", draft=True)]
    later = memory_of(*sample().resources, *many)
    trace = world.search("word49", later)
    assert world.embedder.calls["passages"] == before + overlay.OVERLAY_UNITS
    assert trace.index_lag
    assert found(trace)[0] == "mem_n49"
    assert "mem_zz" in {each.resource_id for each in trace.candidates}
    world.search("word48", later)
    assert not world.search("word48", later).index_lag, "later calls catch up"


def test_what_is_too_large_to_cut_in_a_call_waits_for_the_index(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "OVERLAY_CHARACTERS", 100)
    world.index(sample())
    later = memory_of(*sample().resources, resource("mem_big", "big.md", "# Big\n\n" + "elephant " * 50))
    trace = world.search("elephant", later)
    assert trace.index_lag
    assert "mem_big" not in {each.resource_id for each in trace.candidates}
    assert trace.is_live("mem_big/big/0/0", "mem_big"), "it exists, it is only not searched yet"
    world.index(later)
    assert found(world.search("elephant"))[0] == "mem_big"


def test_many_changed_units_do_not_crowd_out_the_lexical_list(world: World) -> None:
    old = [resource(f"mem_{n:03d}", f"old/{n}.md", f"# Topic\n\nzebra zebra zebra {n}") for n in range(150)]
    keeper = resource("mem_keep", "keep.md", "# Keep\n\na single zebra and other animals")
    world.index(memory_of(*old, keeper))
    trace = world.search("zebra", memory_of(keeper))
    assert [each.resource_id for each in trace.candidates if each.bm25_rank] == ["mem_keep"]


@pytest.mark.requirement("retrieval.rerank.pairs")
def test_a_cross_encoder_reorders_and_is_named(world: World) -> None:
    class Backwards:
        name = "cross_encoder:backwards"

        def score(self, query: str, passages: Sequence[str]) -> list[float]:
            assert query == "package xyzzy plugh frobnicate"
            return [1.0 if "Migrations" in passage else -1.0 for passage in passages]

    world.index(sample())
    query = "package xyzzy plugh frobnicate"
    assert found(world.search(query))[0] == "mem_release"
    searcher = Searcher(world.cache, lambda: Backwards())
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        trace = searcher.search(Snapshot(generation, sample()), query, world.embedder)
    assert trace.reranker == "cross_encoder:backwards"
    database = next(each for each in trace.candidates if each.resource_id == "mem_database")
    assert database.rerank == 1.0
    assert trace.candidates.index(database) == 0


def test_an_index_of_another_model_is_never_searched(world: World) -> None:
    world.index(sample())
    other = HashingEmbedder(fingerprint="hashing-2")
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        snapshot = Snapshot(generation, sample())
        with pytest.raises(InterleafError) as caught:
            world.searcher.search(snapshot, "release", other)
    assert caught.value.code is ErrorCode.SEARCH_INDEX_PREPARING


def test_an_empty_project_finds_nothing(world: World) -> None:
    world.index(memory_of())
    trace = world.search("anything")
    assert trace.candidates == ()
    draft = resource("mem_first", "first.md", "# First\n\nthe very first note", draft=True)
    assert found(world.search("very first note", memory_of(draft))) == ["mem_first"]


@pytest.mark.requirement("retrieval.search.bilingual")
def test_nearness_by_script_alone_is_taken_off_chinese_passages_for_chinese_queries(tmp_path: Path) -> None:
    embedder = HashingEmbedder(fingerprint="multilingual-e5-small:test")
    world = World(tmp_path, embedder, VectorCache(tmp_path / "v.db", now=lambda: 1))
    world.index(sample())
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        view = View(generation, sample(), embedder)
        cosines = np.full(len(generation.units), 0.5, dtype=np.float32)
        chinese, covered = union(view, "合同编号", {}, cosines, {"合同": 3, "同编": 1, "id": 2, "没有": 0})
        english, other = union(view, "contract number", {}, cosines, {"contract": 0, "number": 1})
    scripts = {
        unit.unit_key: float(score) for unit, score in zip(generation.units, chinese.dense, strict=True)
    }
    assert scripts.pop("mem_chinese/发布流程/0/0") == pytest.approx(0.45)
    assert set(scripts.values()) == {0.5}
    assert set(english.dense.tolist()) == {0.5}
    # To passages without such letters only the other terms can lead.
    assert covered == Coverage(3 / 4, 1 / 4)
    assert other == Coverage(1 / 2)
    assert (~chinese.foreign).tolist() == chinese.both_cjk.tolist()
    assert not english.foreign.any()
    world.cache.close()


@pytest.mark.parametrize(
    "query", ["release package", "expected_hash messages", "合同编号", "guides database"]
)
def test_our_bm25_of_the_overlay_is_tantivys(world: World, query: str) -> None:
    world.index(sample())
    terms = query_terms(query)
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        hits = generation.lexical.search(terms, 10)
        assert hits
        for uid, score in hits:
            number = generation.number_of_uid[uid]
            unit = generation.units[number].as_unit(sample().by_id[generation.owners[number]])
            each = FieldTerms.of(unit)
            own = 0.0
            for place, (name, boost) in enumerate(FIELD_BOOSTS.items()):
                weights = {
                    term: inverse_document_frequency(
                        len(generation.units), generation.lexical.frequency(term, name)
                    )
                    for term in terms
                }
                counts = Counter(getattr(each, name))
                average = generation.average_lengths[place]
                own += boost * bm25_field(counts, each.lengths[place], average, weights)
            assert own == pytest.approx(score, rel=1e-4)


class Failing(HashingEmbedder):
    """Fails while the words are still being searched for, which then goes on."""

    def __init__(self, began: threading.Event, go_on: threading.Event) -> None:
        super().__init__()
        self._began, self._go_on = began, go_on

    def embed_query(self, text: str) -> QueryVectors:  # noqa: ARG002 - the Protocol's
        assert self._began.wait(10)
        threading.Timer(0.05, self._go_on.set).start()
        raise InterleafError(ErrorCode.SEARCH_MODEL_UNAVAILABLE)


def test_a_search_that_fails_leaves_nobody_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.index(sample())
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    frequency = View.frequency

    def slow(view: View, term: str) -> int:
        began.set()
        assert go_on.wait(10)
        ended.set()
        return frequency(view, term)

    monkeypatch.setattr(View, "frequency", slow)
    world.embedder = Failing(began, go_on)
    with pytest.raises(InterleafError, match="model"):
        world.search("release")
    assert ended.is_set()
