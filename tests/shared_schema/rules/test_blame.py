from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.rules.blame import blame_lines
from shared_schema.rules.line_diff import split_lines

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "# d\n", "e"]), max_size=8)
VERSIONS = st.lists(LINES.map("".join), min_size=1, max_size=7)


@pytest.mark.requirement("blame.lines")
@given(VERSIONS, st.integers(1, 8), st.integers(1, 40))
def test_every_line_is_covered_once_and_its_version_holds_it(
    versions: list[str], max_versions: int, max_lines: int
) -> None:
    for bounds in ({}, {"max_versions": max_versions}, {"max_lines": max_lines}):
        found = blame_lines(versions, **bounds)
        lines = split_lines(versions[0])
        covered = [place for part in found.ranges for place in range(part.start, part.end)]
        assert covered == list(range(len(lines)))
        for part in found.ranges:
            held = split_lines(versions[part.version])
            assert all(line in held for line in lines[part.start : part.end])


@given(VERSIONS)
def test_a_line_that_the_version_before_never_held_is_the_newer_ones(versions: list[str]) -> None:
    """Whatever a version brought as new to all earlier ones is blamed on it or a later one."""
    found = blame_lines(versions)
    lines = split_lines(versions[0])
    for part in found.ranges:
        for line in lines[part.start : part.end]:
            oldest = max(number for number, text in enumerate(versions) if line in split_lines(text))
            assert part.version <= oldest


@pytest.mark.requirement("blame.lines")
def test_each_edit_is_blamed_on_its_own_lines() -> None:
    first = "one\ntwo\nthree\n"
    second = "one\nTWO\nthree\n"
    third = "zero\none\nTWO\nthree\nfour\n"
    found = blame_lines([third, second, first])
    assert [tuple(part) for part in found.ranges] == [
        (0, 1, 0),
        (1, 2, 2),
        (2, 3, 1),
        (3, 4, 2),
        (4, 5, 0),
    ]
    assert found.complete


@pytest.mark.requirement("blame.bounded")
def test_a_long_history_is_followed_only_so_far() -> None:
    taken = 0

    def versions() -> Iterator[str]:
        nonlocal taken
        for number in range(10_000, 0, -1):
            taken += 1
            yield "kept\n" + f"{number}\n"

    found = blame_lines(versions(), max_versions=50)
    assert taken == 51
    assert not found.complete
    assert [tuple(part) for part in found.ranges] == [(0, 1, 49), (1, 2, 0)]
    taken = 0
    assert not blame_lines(versions(), max_lines=20).complete
    assert taken <= 12


def test_nothing_more_is_read_once_every_line_has_its_version() -> None:
    def versions() -> Iterator[str]:
        yield "new\n"
        yield "old\n"
        raise AssertionError("the third version is not needed")

    assert [tuple(part) for part in blame_lines(versions()).ranges] == [(0, 1, 0)]
