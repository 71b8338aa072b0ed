"""Marks of an unfinished merge in a resolution."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.markers import check_resolution, fresh_markers
from shared_schema.rules.merge import merge_text

LINES = st.lists(
    st.sampled_from(["<<<<<<< a", "=======", ">>>>>>> b", "|||||||", "text", "", "<<<<<<<<"]), max_size=8
)


@pytest.mark.requirement("reconcile.no_markers")
@pytest.mark.parametrize(
    ("text", "sides", "lines"),
    [
        ("<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n", (), [1, 3, 5]),
        ("a\r\n>>>>>>> theirs\r\n", (), [2]),
        ("||||||| base\n", (), [1]),
        ("a\n<<<<<<<", (), [2]),
        ("A title\n=======\n", (), []),
        ("a\n\n=======\n", (), [3]),
        ("=======\n", (), [1]),
        ("<<<<<<<< eight\n", (), []),
        ("<<<<<< six\n  <<<<<<< indented\n", (), []),
        ("How a conflict looks:\n<<<<<<< mine\n", ("<<<<<<< mine\r\n",), []),
        ("<<<<<<< mine\n", ("<<<<<<< theirs\n", ""), [1]),
    ],
)
def test_marker_lines_count_when_no_side_had_them(
    text: str, sides: tuple[str, ...], lines: list[int]
) -> None:
    assert fresh_markers(text, *sides) == lines


def test_a_resolution_with_markers_is_refused_with_its_lines() -> None:
    with pytest.raises(InterleafError) as refused:
        check_resolution("a\n<<<<<<< x\n", "a\n", "b\n")
    assert (refused.value.code, refused.value.details) == (ErrorCode.CONFLICT_MARKERS, {"lines": [2]})


@given(LINES, LINES, LINES)
def test_what_a_clean_merge_makes_never_has_fresh_markers(
    base: list[str], ours: list[str], theirs: list[str]
) -> None:
    texts = ["".join(f"{line}\n" for line in side) for side in (base, ours, theirs)]
    merged = merge_text(*texts)
    if merged is not None:
        assert fresh_markers(merged, *texts[1:]) == []


@given(LINES, LINES)
def test_either_side_may_be_taken_as_it_is(ours: list[str], theirs: list[str]) -> None:
    assert fresh_markers("\n".join(ours), "\n".join(ours), "\n".join(theirs)) == []
