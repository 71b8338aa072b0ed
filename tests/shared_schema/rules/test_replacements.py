from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.replacements import Replacement, apply_replacements, line_ending_of
from tests.text_fixtures import BODIES, CRLF, LF, LONE_CR, MIXED_LINE_ENDS, NEEDLE, NFC, NFD, body_with_needle

NOT_FOUND = ErrorCode.TEXT_REPLACEMENT_NOT_FOUND
AMBIGUOUS = ErrorCode.TEXT_REPLACEMENT_AMBIGUOUS
OVERLAP = ErrorCode.TEXT_REPLACEMENT_OVERLAP
NO_CHANGE = ErrorCode.TEXT_REPLACEMENT_NO_CHANGE


def replace(text: str, *pairs: tuple[str, str]) -> str:
    return apply_replacements(text, [Replacement(old_text=old, new_text=new) for old, new in pairs])


def refusal(text: str, *pairs: tuple[str, str]) -> tuple[ErrorCode, dict[str, Any]]:
    with pytest.raises(InterleafError) as caught:
        replace(text, *pairs)
    return caught.value.code, caught.value.details


@pytest.mark.requirement("replacements.atomic")
@pytest.mark.parametrize(
    ("text", "pairs", "result"),
    [
        ("one two", [("two", "three")], "one three"),
        ("one two", [("one", "1"), ("two", "2")], "1 2"),
        ("one two", [("two", "2"), ("one", "1")], "1 2"),
        ("ab", [("a", "b"), ("b", "a")], "ba"),
        ("abcd", [("ab", "X"), ("cd", "Y")], "XY"),
        ("one two", [(" two", "")], "one"),
        ("one", [("one", "")], ""),
        ("aab", [("aa", "a")], "ab"),
        ("a\r\nb\n", [("\r\n", "\n")], "a\nb\n"),
        ("\ufeffa", [("\ufeff", "")], "a"),
        ("{a} %s \\1 \\g<0>", [("%s", "\\1 {b} %d")], "{a} \\1 {b} %d \\1 \\g<0>"),
    ],
)
def test_replacements_apply_to_one_original(text: str, pairs: list[tuple[str, str]], result: str) -> None:
    assert replace(text, *pairs) == result


@pytest.mark.requirement("replacements.ambiguous")
@pytest.mark.parametrize(
    ("text", "old", "lines"),
    [
        ("aaa", "aa", [1, 1]),
        ("abab aba", "aba", [1, 1]),
        ("x\ny\nx\n", "x", [1, 3]),
        ("x\r\ny\rx\nx", "x", [1, 3, 4]),
        ("a\r\nb\r\n", "\n", [1, 2]),
        ("a\n\nb", "\n", [1, 2]),
        ("a\r\r\n\nb\r\n", "\r", [1, 2, 4]),
        ("发\n发\n", "发", [1, 2]),
        ("\n" * 50, "\n", list(range(1, 21))),
    ],
)
def test_text_that_occurs_twice_is_refused_with_its_lines(text: str, old: str, lines: list[int]) -> None:
    assert refusal(text, (old, "new")) == (AMBIGUOUS, {"index": 0, "lines": lines})


@pytest.mark.requirement("replacements.refused")
def test_the_failing_replacement_is_named() -> None:
    assert refusal("one two", ("one", "1"), ("three", "3")) == (NOT_FOUND, {"index": 1})
    assert refusal("one two", ("one", "1"), ("two", "two")) == (NO_CHANGE, {"index": 1})
    assert refusal("abc", ("c", "C"), ("bc", "x"), ("ab", "y")) == (OVERLAP, {"index": 2, "indexes": [1, 2]})
    assert refusal("abc", ("b", "x"), ("abc", "y")) == (OVERLAP, {"index": 1, "indexes": [0, 1]})
    assert refusal("abc", ("b", "x"), ("b", "y")) == (OVERLAP, {"index": 1, "indexes": [0, 1]})


@pytest.mark.requirement("replacements.no_change")
def test_replacements_that_undo_each_other_change_nothing() -> None:
    assert refusal("aXb", ("aX", "a"), ("b", "Xb")) == (NO_CHANGE, {})
    assert refusal("text") == (NO_CHANGE, {})


@pytest.mark.requirement("replacements.exact")
def test_matching_is_by_code_points() -> None:
    assert refusal(NFC, (NFD, "x")) == (NOT_FOUND, {"index": 0})
    assert refusal("Word", ("word", "x")) == (NOT_FOUND, {"index": 0})
    assert refusal("a  b", ("a b", "x")) == (NOT_FOUND, {"index": 0})


@pytest.mark.requirement("replacements.line_endings")
@pytest.mark.parametrize(
    ("text", "old", "ending"),
    [
        (CRLF, "first line\nsecond line\n", "crlf"),
        (LF, "first line\r\nsecond line\r\n", "lf"),
        (LONE_CR, "first line\nsecond line\n", "cr"),
        (MIXED_LINE_ENDS, "first line\nsecond line\n", "mixed"),
        ("a\r\na\r\nb", "a\nb", "crlf"),
    ],
)
def test_a_difference_in_line_endings_is_said(text: str, old: str, ending: str) -> None:
    expected = {"index": 0, "reason": "line_endings", "document_line_ending": ending}
    assert refusal(text, (old, "new")) == (NOT_FOUND, expected)


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("a", "none"),
        (LF, "lf"),
        (CRLF, "crlf"),
        (LONE_CR, "cr"),
        (MIXED_LINE_ENDS, "mixed"),
        ("\n\r", "mixed"),
    ],
)
def test_the_line_ending_of_a_text_is_named(text: str, ending: str) -> None:
    assert line_ending_of(text) == ending


def test_an_empty_old_text_and_unknown_fields_are_no_replacement() -> None:
    with pytest.raises(ValidationError):
        Replacement(old_text="", new_text="x")
    with pytest.raises(ValidationError):
        Replacement.model_validate({"old_text": "a", "new_text": "b", "all": True})


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_every_kind_of_text_is_edited_without_touching_the_rest(body: str) -> None:
    text = f"{body}{NEEDLE}{body}"
    assert replace(text, (NEEDLE, "")) == body * 2
    assert replace(f"start {NEEDLE}", (NEEDLE, body)) == f"start {body}"


@pytest.mark.requirement("replacements.messages")
def test_messages_hold_nothing_of_the_texts() -> None:
    for text, old in (("secret", "hidden"), ("secret secret", "secret"), ("a\r\nsecret", "a\nsecret")):
        with pytest.raises(InterleafError) as caught:
            replace(text, (old, "x"))
        assert "secret" not in str(caught.value)
        assert "hidden" not in str(caught.value)


PIECES = st.lists(st.sampled_from(["ab", "ba", "\r\n", "\n", "发", "x"]), max_size=10).map("".join)


def reference(text: str, pairs: list[tuple[str, str]]) -> str | None:
    """The rule, written down the slow way: None when it refuses."""
    spans = []
    for old, new in pairs:
        starts = [at for at in range(len(text)) if text.startswith(old, at)]
        if len(starts) != 1 or old == new:
            return None
        spans.append((starts[0], starts[0] + len(old), new))
    taken = [at for start, end, _ in spans for at in range(start, end)]
    if len(taken) != len(set(taken)):
        return None
    result = text
    for start, end, new in sorted(spans, reverse=True):
        result = result[:start] + new + result[end:]
    return None if result == text else result


@pytest.mark.requirement("replacements.law")
@given(
    text=PIECES,
    pairs=st.lists(st.tuples(PIECES.filter(bool).map(lambda old: old[:4]), PIECES), min_size=1, max_size=3),
)
def test_the_result_is_that_of_the_rule_written_down_slowly(text: str, pairs: list[tuple[str, str]]) -> None:
    expected = reference(text, pairs)
    try:
        assert replace(text, *pairs) == expected
    except InterleafError:
        assert expected is None


@given(text=PIECES.filter(bool), data=st.data())
def test_spans_cut_from_a_text_apply_in_any_order(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=4)) | {0, len(text)})
    parts = [text[start:end] for start, end in pairwise(cuts)]
    pairs = [(part, f"<{number}>") for number, part in enumerate(parts)]
    if any(text.find(part, text.find(part) + 1) >= 0 for part in parts):
        assert refusal(text, *pairs)[0] is AMBIGUOUS
        return
    result = replace(text, *pairs)
    assert result == "".join(new for _, new in pairs)
    assert replace(text, *data.draw(st.permutations(pairs))) == result


def test_many_replacements_on_the_largest_text_apply() -> None:
    lines = [f"line {number:06} of a long text\n" for number in range(37_000)]
    text = "".join(lines)
    pairs = [(lines[place], f"changed {place}\n") for place in range(0, 37_000, 185)]
    assert len(pairs) == 200
    result = replace(text, *pairs)
    assert result.count("changed") == 200
    assert replace(body_with_needle(1_000_000), (NEEDLE, "found")).count("found") == 1


@pytest.mark.requirement("replacements.bounded")
@pytest.mark.parametrize(
    "old",
    ["a" * 500_000, "a" * 500_000 + "b", "b" + "a" * 500_000, "a" * 2_000 + "b" + "a" * 2_000, "aa"],
    ids=["half", "half_then_b", "b_then_half", "b_inside", "two"],
)
def test_a_text_of_one_repeated_letter_is_answered(old: str) -> None:
    # A search in quadratic time would run for hours here and meet the time limit of a test.
    code, _ = refusal("a" * 1_000_000, *([(old, "x")] * 200))
    assert code is (NOT_FOUND if "b" in old else AMBIGUOUS)
