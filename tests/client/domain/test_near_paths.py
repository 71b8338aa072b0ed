from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.near_paths import SUGGESTIONS, near_paths

PATHS = ["guides/release.md", "guides/review.md", "ops/rollback.md", "README.md", "发布/流程.md"]


@pytest.mark.requirement("load.missing")
@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("guides/relase.md", "guides/release.md"),
        ("release.md", "guides/release.md"),
        ("docs/rollback.md", "ops/rollback.md"),
        ("readme.MD", "README.md"),
        ("发布/流程", "发布/流程.md"),
    ],
)
def test_the_path_that_was_meant_comes_first(asked: str, first: str) -> None:
    assert near_paths([asked], PATHS)[asked][0] == first


def test_what_is_like_nothing_has_no_suggestion() -> None:
    assert near_paths(["zzzz"], PATHS) == {"zzzz": []}


@given(st.lists(st.text(max_size=20), max_size=3), st.lists(st.text(max_size=20), max_size=8))
def test_suggestions_are_few_and_among_the_paths(asked: list[str], paths: list[str]) -> None:
    for text, found in near_paths(asked, paths).items():
        assert text in asked
        assert len(found) <= SUGGESTIONS
        assert set(found) <= set(paths)
