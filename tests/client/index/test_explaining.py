"""How a resource stands to a query, on a real index: each way to be in the answer or not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from client.domain import ranking
from client.domain.analysis import query_terms
from client.domain.assembly import Reason
from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.index import overlay
from client.index.explaining import Missed, Standing, explain
from client.index.lexical import FieldTerms
from client.index.searcher import Searcher, Snapshot
from client.index.vector_cache import VectorCache
from tests.client.index.conftest import PROJECT, World, memory_of, resource, sample
from tests.fakes.hashing_embedder import HashingEmbedder

FILLER = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"


def standing(world: World, query: str, resource_id: str, memory: EffectiveMemory | None = None) -> Standing:
    memory = memory or world.memories[PROJECT]
    with world.manager.pin(PROJECT) as generation:
        assert generation is not None
        return explain(world.searcher, Snapshot(generation, memory), query, world.embedder, resource_id)


def many(word: str, count: int, *, times: int = 3) -> list[EffectiveResource]:
    """Documents full of a word, each with a text of its own."""
    return [
        resource(f"mem_{n:03d}", f"many/{n}.md", f"# N{n}\n\n{f'{word} ' * times}number{n}")
        for n in range(count)
    ]


@pytest.mark.requirement("explain.verdicts")
def test_a_returned_resource_says_which_words_stand_where(world: World) -> None:
    world.index(sample())
    found = standing(world, "sign the package of guides xyzzy", "mem_release")
    assert found.outcome is Reason.SELECTED
    best = found.units[0]
    assert best.found_in == {"sign": ("body",), "packag": ("body",), "guid": ("path",)}
    assert found.trace.missing_terms == ("xyzzi",)
    assert found.frequencies == {"sign": 1, "packag": 1, "guid": found.searchable, "xyzzi": 0}
    assert (best.bm25_rank, best.dense_rank, best.fused_place, best.candidate) == (1, 1, 1, 0)
    assert found.matched == found.searchable, "every path holds one of the words"


@pytest.mark.requirement("explain.verdicts")
def test_headings_and_descriptions_are_told_apart(world: World) -> None:
    text = "# Release\n\nTag it.\n\n## Rollback\n\nYank the wheel. " + FILLER * 20
    world.index(memory_of(resource("mem_a", "a.md", text, description="How we publish")))
    found = standing(world, "rollback publish", "mem_a")
    where = {(each.unit.kind, each.unit.heading_path): each.found_in for each in found.units}
    assert where["description", ()] == {"publish": ("body",)}
    assert where["body", ("Release", "Rollback")]["rollback"][0] == "headings"


@pytest.mark.requirement("explain.ranks")
def test_ranks_and_scores_are_those_of_the_search_and_go_on_beyond_its_lists(world: World) -> None:
    world.index(memory_of(*many("zebra", 130), *sample().resources))
    query = "zebra number7 publish"
    trace = world.search(query)
    by_id = {each.resource_id: each for each in trace.candidates}
    ranks: set[int] = set()
    for n in range(130):
        found = standing(world, query, f"mem_{n:03d}")
        (unit,) = found.units
        candidate = by_id.get(unit.unit.resource_id)
        assert unit.bm25_rank is not None
        ranks.add(unit.bm25_rank)
        if candidate is None:
            assert unit.candidate is None
            assert unit.bm25_rank > ranking.LIST_SIZE
            assert unit.dense_rank is not None
            assert unit.dense_rank > ranking.LIST_SIZE
            continue
        assert unit.candidate == trace.candidates.index(candidate)
        if candidate.bm25_rank:
            assert (unit.bm25_rank, unit.bm25) == (candidate.bm25_rank, pytest.approx(candidate.bm25))
        if candidate.dense_rank:
            assert (unit.dense_rank, unit.dense) == (candidate.dense_rank, pytest.approx(candidate.dense))
        if candidate.margin is not None:
            assert unit.shares is not None
            assert unit.shares.margin == pytest.approx(candidate.margin)
    assert len(ranks) == 130
    assert max(ranks) > ranking.LIST_SIZE
    assert found.matched >= 130


@pytest.mark.requirement("explain.verdicts")
def test_below_the_floor_tells_each_signals_share_and_the_weakest_that_was_returned(world: World) -> None:
    world.index(sample())
    found = standing(world, "sign and publish the package", "mem_database")
    assert found.outcome is Reason.BELOW_RELEVANCE
    shares = found.units[0].shares
    assert shares is not None
    assert shares.margin < 0
    assert shares.margin == pytest.approx(shares.cosine + shares.rerank + shares.bm25 - shares.needed)
    assert found.weakest is not None
    weakest = found.trace.candidates[found.weakest]
    assert weakest.reason is Reason.SELECTED
    assert found.weakest == max(found.trace.selected)
    assert found.weakest_shares is not None
    assert found.weakest_shares.margin == pytest.approx(weakest.margin)


@pytest.mark.requirement("explain.verdicts")
def test_what_was_not_looked_at_again_is_told_what_it_would_have_had(world: World) -> None:
    near = resource("mem_far", "far.md", f"# Far\n\nzebra {FILLER}")
    world.index(memory_of(*many("zebra", 30), near))
    found = standing(world, "zebra", "mem_far")
    assert found.outcome is Reason.NOT_RERANKED
    (unit,) = found.units
    assert found.looked_at == ranking.RERANK
    assert unit.fused_place is not None
    assert unit.fused_place > ranking.RERANK
    assert unit.rerank is not None
    assert unit.shares is not None
    assert unit.shares.rerank > 0


@pytest.mark.requirement("explain.verdicts")
def test_what_is_in_neither_list_has_its_ranks_all_the_same(world: World) -> None:
    lost = resource("mem_lost", "lost.md", f"# Lost\n\n{FILLER}")
    world.index(memory_of(*many("zebra", 120), lost))
    found = standing(world, "zebra", "mem_lost")
    assert found.outcome is Missed.NOT_A_CANDIDATE
    (unit,) = found.units
    assert (unit.candidate, unit.fused_place, unit.bm25_rank) == (None, None, None)
    assert unit.dense_rank == 121
    assert found.searchable == 121


@pytest.mark.requirement("explain.verdicts")
def test_a_third_part_stands_behind_two_of_its_own_document(world: World) -> None:
    sections = "".join(f"## Part {n}\n\nzebra stripes {FILLER * 8} part{n}\n\n" for n in range(4))
    other = resource("mem_o", "o.md", "# Other\n\nzebra stripes")
    world.index(memory_of(resource("mem_z", "z.md", f"# Z\n\n{sections}"), other))
    found = standing(world, "zebra stripes", "mem_z")
    assert [each.outcome for each in found.units] == [
        Reason.SELECTED,
        Reason.SELECTED,
        Reason.PER_RESOURCE_LIMIT,
        Reason.PER_RESOURCE_LIMIT,
    ]


@pytest.mark.requirement("explain.verdicts")
def test_a_full_answer_an_empty_purse_and_the_same_text_have_their_reasons(world: World) -> None:
    world.index(memory_of(*many("zebra", 20)))
    all_found = [standing(world, "zebra", f"mem_{n:03d}") for n in range(20)]
    assert Reason.FRAGMENT_LIMIT in {each.outcome for each in all_found}
    assert {(each.weakest, len(each.trace.selected)) for each in all_found} == {(11, 12)}

    texts = [" ".join(f"zebra word{n}x{k}" for k in range(150)) for n in range(9)]
    world.index(memory_of(*(resource(f"mem_{n}", f"{n}.md", f"# N{n}\n\n{t}") for n, t in enumerate(texts))))
    outcomes = {standing(world, "zebra", f"mem_{n}").outcome for n in range(9)}
    assert Reason.TOKEN_BUDGET in outcomes

    world.index(memory_of(*(resource(f"mem_{n}", f"{n}.md", "# Zebra\n\nstripes") for n in range(2))))
    outcomes = {standing(world, "zebra stripes", f"mem_{n}").outcome for n in range(2)}
    assert outcomes == {Reason.SELECTED, Reason.OVERLAP}


@pytest.mark.requirement("explain.verdicts")
def test_a_named_resource_is_in_the_answer_below_the_floor(world: World) -> None:
    world.index(sample())
    found = standing(world, "guides/database.md sign the package", "mem_database")
    assert found.outcome is Reason.SELECTED
    index = found.units[0].candidate
    assert index is not None
    assert found.trace.candidates[index].identity


@pytest.mark.requirement("explain.verdicts")
def test_text_that_waits_for_the_index_is_told_and_former_text_never_shown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "OVERLAY_CHARACTERS", 60)
    world.index(sample())
    later = sample(release="# Release\n\n" + "elephant " * 30)
    found = standing(world, "sign the package", "mem_release", later)
    assert (found.outcome, found.units) == (Missed.NOT_INDEXED, ())
    assert found.trace.index_lag

    monkeypatch.undo()
    monkeypatch.setattr(overlay, "OVERLAY_UNITS", 1)
    world.restart()
    two = "# New\n\n" + "".join(f"## S{n}\n\nelephant number{n} {FILLER * 8}\n\n" for n in range(2))
    later = memory_of(*sample().resources, resource("mem_two", "two.md", two))
    found = standing(world, "number1", "mem_two", later)
    assert [each.outcome for each in found.units][-1] is Missed.NOT_INDEXED
    assert found.units[-1].dense is None


@pytest.mark.requirement("explain.verdicts")
def test_a_draft_is_explained_before_it_is_indexed(world: World) -> None:
    world.index(sample())
    draft = resource("mem_new", "notes/unicorns.md", "# Unicorns\n\nFeed the unicorn.", draft=True)
    found = standing(world, "feed the unicorn", "mem_new", memory_of(*sample().resources, draft))
    assert found.outcome is Reason.SELECTED
    assert found.units[0].bm25_rank == 1
    assert found.trace.is_draft("mem_new")
    assert not found.trace.is_draft("mem_release")


def test_a_cross_encoder_is_asked_for_nothing_that_it_did_not_look_at(world: World) -> None:
    class Counting:
        name = "cross_encoder:counting"
        asked = 0

        def score(self, query: str, passages: Sequence[str]) -> list[float]:
            assert query == "zebra"
            self.asked += len(passages)
            return [float(len(passages) - n) for n in range(len(passages))]

    reranker = Counting()
    world.index(memory_of(*many("zebra", 40)))
    world.searcher = Searcher(world.cache, lambda: reranker)
    trace = world.search("zebra")
    far = trace.candidates[-1].resource_id
    before = reranker.asked
    (unit,) = standing(world, "zebra", far).units
    assert reranker.asked == 2 * before, "one search more"
    assert unit.rerank is None
    assert unit.shares is not None
    assert unit.shares.rerank == 0.0


def test_the_scripts_surcharge_is_part_of_what_is_needed(world: World) -> None:
    embedder = HashingEmbedder(fingerprint="multilingual-e5-small:test")
    own = World(world.root / "own", embedder, VectorCache(world.root / "own.db", now=lambda: 1))
    own.index(sample())
    chinese = standing(own, "合同编号", "mem_chinese").units[0].shares
    english = standing(own, "合同编号", "mem_release").units[0].shares
    assert chinese is not None
    assert english is not None
    assert chinese.needed == pytest.approx(english.needed + 6.4)
    # Named, so that a Chinese passage is returned and stands as the weakest.
    found = standing(own, "合同编号 guides/chinese.md", "mem_release")
    assert found.weakest is not None
    assert found.weakest_shares is not None
    assert found.weakest_shares.needed == pytest.approx(chinese.needed)
    assert found.weakest_shares.margin == pytest.approx(found.trace.candidates[found.weakest].margin)
    own.cache.close()


def test_fields_are_analysed_as_they_are_indexed(world: World) -> None:
    world.index(sample())
    (unit,) = standing(world, "expectedHash queue guides/queue.md", "mem_queue").units
    terms = FieldTerms.of(unit.unit)
    for term in query_terms("expectedHash queue guides/queue.md"):
        assert (term in terms.body) == (term in unit.found_in)
