from __future__ import annotations

import random
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_schema.rules.line_diff import diff_lines, split_lines
from shared_schema.rules.merge import merge_text, merge_text_conflicts
from tests.text_fixtures import BODIES

LINES = st.sampled_from(["a\n", "b\n", "c\n", "\n", "x\r\n", "y\r", "# t\n", "```\n", "发布\n"])
TEXTS = st.builds(
    lambda lines, end: "".join(lines) + end, st.lists(LINES, max_size=12), st.sampled_from(["", "z"])
)


@st.composite
def related(draw: st.DrawFn, sides: int = 2) -> tuple[str, ...]:
    """One text and perturbed copies of it: every line kept, dropped, replaced, or followed by another."""
    base = draw(st.lists(LINES, min_size=1, max_size=14))
    versions = ["".join(base)]
    for _ in range(sides):
        edits = draw(st.dictionaries(st.integers(0, len(base)), st.sampled_from("dri"), max_size=4))
        lines: list[str] = []
        for place, line in enumerate([*base, ""]):
            edit = edits.get(place, "k")
            if edit in "ri":
                lines.append(draw(LINES))
            if edit in "ki":
                lines.append(line)
        versions.append("".join(lines))
    return tuple(versions)


@given(text=st.one_of(TEXTS, st.text(alphabet="a\r\n\x0b\x85\u2028", max_size=20)))
def test_splitting_keeps_every_byte(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line for line in lines)
    assert all(line.endswith(("\n", "\r")) for line in lines[:-1])


@given(texts=st.one_of(related(1), st.tuples(TEXTS, TEXTS)))
def test_hunks_turn_the_old_text_into_the_new_one(texts: tuple[str, str]) -> None:
    old, new = split_lines(texts[0]), split_lines(texts[1])
    hunks = diff_lines(old, new)
    result: list[str] = []
    position = 0
    for hunk in hunks:
        assert old[hunk.start : hunk.end] != new[hunk.new_start : hunk.new_end]
        result += old[position : hunk.start]
        assert len(result) == hunk.new_start
        result += new[hunk.new_start : hunk.new_end]
        position = hunk.end
    assert result + old[position:] == new
    assert all(one.end < other.start and one.new_end < other.new_start for one, other in pairwise(hunks))


def _longest_common(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for line in a:
        before = 0
        for place, other in enumerate(b, 1):
            before, row[place] = row[place], before + 1 if line == other else max(row[place], row[place - 1])
    return row[-1]


@given(
    a=st.lists(st.sampled_from(["a\n", "b\n"]), max_size=12).map(lambda lines: lines * 2),
    b=st.lists(st.sampled_from(["a\n", "b\n"]), max_size=12).map(lambda lines: lines * 2),
)
def test_without_unique_lines_the_difference_is_a_shortest_one(a: list[str], b: list[str]) -> None:
    hunks = diff_lines(a, b)
    common = len(a) - sum(hunk.end - hunk.start for hunk in hunks)
    assert common == _longest_common(a, b)


@pytest.mark.requirement("reconcile.merge.laws")
@given(texts=st.one_of(related(), st.tuples(TEXTS, TEXTS, TEXTS)))
@settings(max_examples=400)
def test_merging_obeys_its_laws(texts: tuple[str, str, str]) -> None:
    base, ours, theirs = texts
    assert merge_text(base, ours, base) == ours
    assert merge_text(base, base, theirs) == theirs
    assert merge_text(base, ours, ours) == ours
    merged = merge_text(base, ours, theirs)
    assert merged == merge_text(base, theirs, ours)
    assert (merged is None) == bool(merge_text_conflicts(base, ours, theirs))
    if merged is not None:
        inputs = {line for text in texts for line in split_lines(text)}
        # "y\r" before "\n" reads as one line afterwards; the bytes are those of the inputs.
        assert set(split_lines(merged)) <= inputs | {"y\r\n"}
        assert "<<<<<<<" not in merged


@given(texts=related())
def test_conflicts_name_the_lines_that_they_show(texts: tuple[str, str, str]) -> None:
    for conflict in merge_text_conflicts(*texts):
        for text, lines, part in (
            (texts[0], conflict.base_lines, conflict.base),
            (texts[1], conflict.ours_lines, conflict.ours),
            (texts[2], conflict.theirs_lines, conflict.theirs),
        ):
            assert "".join(split_lines(text)[lines.first - 1 : lines.first - 1 + lines.count]) == part
        assert conflict.ours != conflict.theirs


@st.composite
def edited_documents(draw: st.DrawFn) -> tuple[str, str, str]:
    """Documents of distinct lines, so that every correct difference is the same one.

    Both sides change by lines that nobody else has, or by the same lines at the same place.
    """
    count = draw(st.integers(1, 25))
    base = [f"line {number}\n" for number in range(count)]
    sides: list[str] = []
    shared = draw(st.sets(st.integers(0, count), max_size=2))
    for side in ("ours", "theirs"):
        own = draw(st.dictionaries(st.integers(0, count), st.sampled_from("dri"), max_size=3))
        lines: list[str] = []
        for place, line in enumerate([*base, ""]):
            edit = "i" if place in shared else own.get(place, "k")
            author = "both" if place in shared else side
            if edit in "ri":
                lines.append(f"new of {author} at {place}\n")
            if edit in "ki":
                lines.append(line)
        sides.append("".join(lines))
    return "".join(base), sides[0], sides[1]


def _git_merge(folder: Path, base: str, ours: str, theirs: str) -> str | None:
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(text.encode())
    done = subprocess.run(
        ["git", "merge-file", "-p", "ours", "base", "theirs"], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode >= 0
    assert done.returncode < 128, done.stderr
    return done.stdout.decode() if done.returncode == 0 else None


@pytest.mark.requirement("reconcile.merge.git")
@given(texts=edited_documents())
@settings(max_examples=150, deadline=None)
def test_git_merges_the_same_documents_to_the_same_text(
    tmp_path_factory: pytest.TempPathFactory, texts: tuple[str, str, str]
) -> None:
    assert merge_text(*texts) == _git_merge(tmp_path_factory.mktemp("merge"), *texts)


BASE = "one\ntwo\nthree\nfour\nfive\n"


@pytest.mark.requirement("reconcile.merge.touching")
@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\n", "ONE\ntwo\nthree\nfour\nFIVE\n"),
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nTHREE\nfour\nfive\n", "ONE\ntwo\nTHREE\nfour\nfive\n"),
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n", None),
        ("one\ntwo\nx\nthree\nfour\nfive\n", "one\ntwo\ny\nthree\nfour\nfive\n", None),
        ("one\ntwo\nx\nthree\nfour\nfive\n", "one\ntwo\nTHREE\nfour\nfive\n", None),
        (
            "one\nx\ntwo\nthree\nfour\nfive\n",
            "one\nx\ntwo\nthree\nFOUR\nfive\n",
            "one\nx\ntwo\nthree\nFOUR\nfive\n",
        ),
        ("two\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\n", "two\nthree\nfour\n"),
        ("", "one\ntwo\nthree\nfour\nFIVE\n", None),
        ("one\ntwo\nthree\nfour\nfive", "ONE\ntwo\nthree\nfour\nfive\n", "ONE\ntwo\nthree\nfour\nfive"),
        ("one\ntwo\nthree\nfour\nfive", "one\ntwo\nthree\nfour\nfive\nsix\n", None),
    ],
)
def test_changes_merge_unless_they_overlap_or_touch(ours: str, theirs: str, merged: str | None) -> None:
    assert merge_text(BASE, ours, theirs) == merged
    assert merge_text(BASE, theirs, ours) == merged


def test_two_changes_of_one_side_conflict_with_one_large_change_of_the_other() -> None:
    [conflict] = merge_text_conflicts(BASE, "ONE\ntwo\nTHREE\nfour\nfive\n", "eins\nzwei\ndrei\nfour\nfive\n")
    assert conflict.base_lines.model_dump() == {"first": 1, "count": 3}
    assert (conflict.base, conflict.ours) == ("one\ntwo\nthree\n", "ONE\ntwo\nTHREE\n")
    assert conflict.theirs == "eins\nzwei\ndrei\n"


@pytest.mark.requirement("reconcile.merge.bytes")
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_are_kept_and_count_as_part_of_the_line(ending: str) -> None:
    base, ours, theirs = (
        text.replace("\n", ending)
        for text in (BASE, BASE.replace("one", "ONE"), BASE.replace("five", "FIVE"))
    )
    merged = merge_text(base, ours, theirs)
    assert merged == BASE.replace("one", "ONE").replace("five", "FIVE").replace("\n", ending)


def test_a_change_of_all_line_endings_conflicts_with_a_change_of_words() -> None:
    assert merge_text(BASE, BASE.replace("\n", "\r\n"), BASE.replace("two", "TWO")) is None


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_every_kind_of_text_takes_a_line_at_each_end(body: str) -> None:
    base = f"alpha\nkept\n{body}\nkept\nomega\n"
    ours, theirs = base.replace("alpha", "ALPHA"), base.replace("omega", "OMEGA")
    assert merge_text(base, ours, theirs) == f"ALPHA\nkept\n{body}\nkept\nOMEGA\n"


def test_large_related_documents_merge() -> None:
    rng = random.Random(7)
    base = [f"line {rng.randrange(10**9)}\n" if number % 3 else "\n" for number in range(60_000)]
    ours, theirs, both = list(base), list(base), list(base)
    for place in range(10, 59_000, 500):
        ours[place] = both[place] = f"ours {place}\n"
        theirs[place + 250] = both[place + 250] = f"theirs {place}\n"
    assert merge_text("".join(base), "".join(ours), "".join(theirs)) == "".join(both)


@pytest.mark.requirement("reconcile.merge.bounded")
@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        ("a\nb\n" * 120_000, "b\na\nb\n" * 90_000, "c\na\n" * 100_000),
        ("x" + "\n" * 500_000 + "y", "z" + "\n" * 400_000 + "w", "v" + "\n" * 450_000 + "u"),
        ("a" * 500_000, "b" * 500_000, "c" * 500_000),
    ],
    ids=["repeated", "blank", "one_line"],
)
def test_unrelated_texts_of_the_largest_size_end_in_a_conflict(base: str, ours: str, theirs: str) -> None:
    assert merge_text(base, ours, theirs) is None


def test_reversed_large_texts_still_yield_a_correct_difference() -> None:
    old = [f"{number % 300}\n" for number in range(40_000)]
    new = old[::-1]
    hunks = diff_lines(old, new)
    rebuilt: list[str] = []
    position = 0
    for hunk in hunks:
        rebuilt += old[position : hunk.start] + new[hunk.new_start : hunk.new_end]
        position = hunk.end
    assert rebuilt + old[position:] == new
