"""What people are told instead of stems, bigrams and codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.analysis import query_terms
from client.domain.assembly import Reason
from client.domain.query_words import as_written, run_together
from client.domain.reason_words import REASONS, reason_words
from client.index.explaining import Missed
from tests import text_fixtures as texts


@pytest.mark.requirement("runs.readable")
@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("How are Releases published?", ["releases", "published"]),
        ("expectedHash", ["expectedhash", "expected", "hash"]),
        ("known_hashes", ["known", "hashes", "known_hashes"]),
        ("发布流程", ["发布", "布流", "流程"]),
        ("naïve Größe", ["naïve", "grösse"]),
        ("", []),
        ("x" * 3_000 + " tags", ["tags"]),
    ],
)
def test_terms_are_told_as_they_were_written(query: str, written: list[str]) -> None:
    assert as_written(query, query_terms(query)) == written


@given(st.one_of(st.text(), st.sampled_from(list(texts.BODIES.values()))))
def test_every_term_has_words(query: str) -> None:
    terms = query_terms(query)
    assert len(as_written(query, terms)) == len(terms)
    assert all(as_written(query, terms))


def test_pairs_of_one_run_are_joined_and_others_are_not() -> None:
    assert run_together(["发布", "布流", "流程"]) == ["发布流程"]
    assert run_together(["发布", "流程", "ab", "bc"]) == ["发布", "流程", "ab", "bc"]
    assert run_together([]) == []


@pytest.mark.requirement("runs.readable")
def test_every_reason_has_words() -> None:
    assert REASONS.keys() == {*Reason, *Missed}
    for reason in REASONS:
        words = reason_words(reason, looked_at=24, taken=2, tokens=340)
        assert "{" not in words
        assert "_" not in words
        assert len(words) <= 42, "it fits beside the figures"
    assert reason_words("token_budget", looked_at=24, taken=2, tokens=None) == "no room left for it"
    assert reason_words("of_a_later_release", looked_at=1, taken=1, tokens=1) == "of a later release"
