from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.domain.assembly import Floor, Ranked, Reason, Signals, assemble, floor_of
from client.domain.chunking import Unit, text_hash
from client.domain.ranking import LATE_INTERACTION


def ranked(
    resource: str,
    ordinal: int = 0,
    tokens: int = 100,
    *,
    reranked: bool = True,
    relevant: bool = True,
    chars: tuple[int, int] | None = None,
    text: str | None = None,
) -> Ranked:
    text = text or f"{resource} {ordinal}"
    chars = chars or (ordinal * 100, ordinal * 100 + 90)
    key = f"{resource}/a/0/{ordinal}"
    unit = Unit(key, resource, "p.md", "T", (), "body", text, chars, chars, text_hash(text), tokens)
    return Ranked(unit, ordinal, reranked, relevant)


@pytest.mark.requirement("retrieval.assembly.skip")
def test_what_does_not_fit_is_skipped_and_a_smaller_later_one_enters() -> None:
    result = assemble(
        [ranked("mem_1", tokens=900), ranked("mem_2", tokens=200), ranked("mem_3", tokens=90)],
        token_limit=1_000,
    )
    assert result.selected == (0, 2)
    assert result.reasons == (Reason.SELECTED, Reason.TOKEN_BUDGET, Reason.SELECTED)
    assert result.tokens == 990


@pytest.mark.requirement("retrieval.assembly.limits")
def test_a_resource_gives_two_units_and_three_when_nothing_else_is_relevant() -> None:
    own = [ranked("mem_1", n * 2) for n in range(5)]
    assert assemble(own).selected == (0, 1, 2)
    assert assemble([*own, ranked("mem_2", relevant=False)]).selected == (0, 1, 2)
    result = assemble([*own, ranked("mem_2")])
    assert result.selected == (0, 1, 5)
    assert result.reasons[2] is Reason.PER_RESOURCE_LIMIT


def test_there_are_at_most_so_many_fragments() -> None:
    result = assemble([ranked(f"mem_{n}", tokens=1) for n in range(20)])
    assert len(result.selected) == 12
    assert result.reasons[12:] == (Reason.FRAGMENT_LIMIT,) * 8


def test_what_was_not_reranked_or_is_not_relevant_is_left_out_with_its_reason() -> None:
    result = assemble([ranked("mem_1", relevant=False), ranked("mem_2", reranked=False)])
    assert result.selected == ()
    assert result.reasons == (Reason.BELOW_RELEVANCE, Reason.NOT_RERANKED)


def test_overlapping_spans_and_equal_texts_are_not_repeated() -> None:
    result = assemble(
        [
            ranked("mem_1", 0, chars=(0, 100)),
            ranked("mem_1", 1, chars=(90, 200)),
            ranked("mem_2", text="same"),
            ranked("mem_3", text="same"),
        ]
    )
    assert result.reasons == (Reason.SELECTED, Reason.OVERLAP, Reason.SELECTED, Reason.OVERLAP)


def test_neighbours_come_in_document_order_at_the_better_ones_place() -> None:
    result = assemble([ranked("mem_2"), ranked("mem_1", 3), ranked("mem_3"), ranked("mem_1", 2)])
    assert result.selected == (0, 3, 1, 2)


def test_units_that_are_no_neighbours_keep_their_rank() -> None:
    result = assemble([ranked("mem_1", 5), ranked("mem_3"), ranked("mem_1", 2)])
    assert result.selected == (0, 1, 2)


@pytest.mark.requirement("retrieval.floor")
def test_the_floor_weighs_absolute_signals() -> None:
    floor = Floor(cosine=1.0, rerank=2.0, bm25=4.0, both_cjk=-0.5, bias=-1.0)
    assert floor.shares(Signals(0.2, 0.4, 0.0, both_cjk=False)).margin == pytest.approx(0.0)
    assert floor.shares(Signals(0.2, 0.4, 0.0, both_cjk=True)).margin == pytest.approx(-0.5)
    assert floor.shares(Signals(0.2, 0.3, 0.0, both_cjk=False)).margin == pytest.approx(-0.2)
    enough = floor.shares(Signals(0.2, 0.3, 0.9, both_cjk=True))
    assert (enough.cosine, enough.rerank, enough.needed) == pytest.approx((0.2, 0.6, 1.5))
    assert enough.bm25 == pytest.approx(2.0), "more than half of all that words can give counts no more"


def test_each_model_and_reranker_has_its_own_floor() -> None:
    late = floor_of("multilingual-e5-small:abc", LATE_INTERACTION)
    pairs = floor_of("multilingual-e5-small:abc", "cross_encoder:x")
    assert late != pairs
    assert pairs.rerank == 0.0, "a cross-encoder's scores have no fixed range"
    assert floor_of("another", LATE_INTERACTION) not in (late, pairs)


_CANDIDATES = st.lists(
    st.builds(
        ranked,
        st.sampled_from(["mem_1", "mem_2", "mem_3"]),
        st.integers(0, 9),
        st.integers(1, 900),
        reranked=st.booleans(),
        relevant=st.booleans(),
    ),
    max_size=30,
    unique_by=lambda each: each.unit.unit_key,
)


@settings(max_examples=200, deadline=None)
@given(_CANDIDATES)
def test_limits_hold_for_every_ranking(candidates: list[Ranked]) -> None:
    result = assemble(candidates)
    units = [candidates[n].unit for n in result.selected]
    assert sum(unit.tokens for unit in units) == result.tokens <= 2_400
    assert len(units) == len(set(units)) <= 12
    assert max((sum(u.resource_id == v.resource_id for u in units) for v in units), default=0) <= 3
    assert sorted(result.selected) == [n for n, r in enumerate(result.reasons) if r is Reason.SELECTED]
