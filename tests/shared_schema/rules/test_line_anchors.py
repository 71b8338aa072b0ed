"""Where commented lines go when the text around them changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.rules.line_anchors import line_at, present_line

ANY_TEXT = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c\r\n", "d\r", "a", "文\n"]), max_size=12).map(
    "".join
)
NAMES = st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=15)


def text(names: list[int], ending: str = "\n") -> str:
    return "".join(f"line {name}{ending}" for name in names)


@pytest.mark.requirement("comment.follows")
@given(then=NAMES, now=NAMES, ending=st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_line_that_is_like_no_other_is_found_wherever_it_went(
    then: list[int], now: list[int], ending: str
) -> None:
    for number, name in enumerate(then, 1):
        expected = now.index(name) + 1 if name in now else None
        assert present_line(text(then), text(now, ending), number) == expected


@given(then=ANY_TEXT, now=ANY_TEXT)
def test_what_is_found_reads_as_what_was_commented_and_no_two_lines_end_on_one(then: str, now: str) -> None:
    count = len(then.splitlines())
    found = [(number, present_line(then, now, number)) for number in range(1, count + 1)]
    for number, place in found:
        if place is not None:
            assert line_at(now, place) == line_at(then, number)
    places = [place for _, place in found if place is not None]
    assert len(places) == len(set(places))


@given(ANY_TEXT, ANY_TEXT)
def test_what_is_put_before_or_after_moves_lines_by_its_height(then: str, more: str) -> None:
    count = len(then.splitlines())
    more += "" if more.endswith(("\n", "\r")) or not more else "\r\n"
    for number in range(1, count + 1):
        assert present_line(then, then, number) == number
        assert line_at(more + then, present_line(then, more + then, number) or 0) == line_at(then, number)


@pytest.mark.parametrize("number", [0, 3, -1])
def test_a_line_that_never_was_is_nowhere(number: int) -> None:
    assert present_line("a\nb\n", "a\nb\n", number) is None
    assert line_at("a\nb\n", number) == ""


def test_a_blank_line_that_was_removed_is_not_taken_for_another_one() -> None:
    assert present_line("a\n\nb\n", "x\ny\n\nz\n", 2) in (None, 3)
    assert present_line("one\n\ntwo\n", "two\none\n", 2) is None
