from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.rules.text import check_body, check_description, strip_front_matter, title_of
from tests.text_fixtures import (
    BODIES,
    BROKEN_FRONT_MATTER,
    EMOJI,
    FENCED_HEADINGS,
    FRONT_MATTER,
    LONE_HIGH_SURROGATE,
    MALFORMED_YAML,
    NUL,
    OPEN_FENCE,
    REFUSED_BODIES,
    largest_body,
    oversized_body,
    oversized_in_bytes_only,
)


@pytest.mark.requirement("text.body.accepted")
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_every_kind_of_text_can_be_a_body(body: str) -> None:
    check_body(body)


@pytest.mark.requirement("text.body.refused")
@pytest.mark.parametrize("body", REFUSED_BODIES.values(), ids=REFUSED_BODIES.keys())
def test_blank_and_broken_texts_are_no_bodies(body: str) -> None:
    with pytest.raises(InterleafError) as caught:
        check_body(body)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
    [field] = caught.value.details["fields"]
    assert field["field"] == "body"
    assert field["problem"]


@pytest.mark.requirement("text.body.size")
def test_a_body_may_have_one_mebibyte_and_no_byte_more() -> None:
    check_body(largest_body())
    for body in (oversized_body(), oversized_in_bytes_only()):
        with pytest.raises(InterleafError, match="larger than 1048576 bytes"):
            check_body(body)


@pytest.mark.requirement("text.description")
def test_a_description_is_bounded_in_characters_and_may_be_empty() -> None:
    check_description("")
    check_description(EMOJI)
    check_description("发" * limits.DESCRIPTION_CHARACTERS)
    for text in ("a" * (limits.DESCRIPTION_CHARACTERS + 1), NUL, LONE_HIGH_SURROGATE):
        with pytest.raises(InterleafError) as caught:
            check_description(text)
        assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
        assert caught.value.details["fields"][0]["field"] == "description"


@pytest.mark.requirement("text.title")
@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("# Title\ntext", "Title"),
        ("   #\tTitle \t ##  \n", "Title"),
        ("# C#\n", "C#"),
        ("# a #b\n", "a #b"),
        ("text\n# Title", "Title"),
        ("## Second\n\n# First\n", "First"),
        ("### Third\n\n## Second\n", "Third"),
        ("Title\n===\n", "Title"),
        ("Two\nlines  of\ttitle\n=\n", "Two lines of title"),
        ("Second\n---\n\nFirst\n===\n", "First"),
        ("#\n\n# Title\n", "Title"),
        ("# #\n", "p"),
        ("#Title\n", "p"),
        ("####### seven\n", "p"),
        ("    # code\n", "p"),
        ("\t# code\n", "p"),
        ("\\# escaped\n", "p"),
        ("text\n\n---\n", "p"),
        ("- item\n---\n", "p"),
        ("> quote\nlazy\n===\n", "p"),
        ("> # quoted\n", "p"),
        ("===\n", "p"),
        ("* * *\n# Title\n", "Title"),
        ("a | b\n--- | ---\n1 | 2\n", "p"),
        ("```\n# code\n```\n## After\n", "After"),
        ("``` a`b\n# Title\n", "Title"),
        ("~~~ a`b\n# code\n~~~\n", "p"),
        ("text\n```\ncode\n```\n===\n", "p"),
        (FENCED_HEADINGS, "Real Title"),
        (OPEN_FENCE, "Title"),
        (FRONT_MATTER, "Real Title"),
        (FRONT_MATTER.replace("\n", "\r\n"), "Real Title"),
        ("\ufeff" + FRONT_MATTER, "Real Title"),
        (BROKEN_FRONT_MATTER, "Real Title"),
        (MALFORMED_YAML, "Real Title"),
        ("# Title\r\rmore", "Title"),
        ("\ufeff# Title\n", "Title"),
        ("# " + "long " * 100, ("long " * 100)[:300]),
        ("no heading", "p"),
        ("", "p"),
    ],
)
def test_the_title_is_the_first_top_heading_or_the_name(body: str, title: str) -> None:
    assert title_of(body, "guides/p.md") == title


@pytest.mark.parametrize(
    ("path", "title"), [("a/发布.md", "发布"), ("README", "README"), ("a/b.md.md", "b.md"), (".md", ".md")]
)
def test_without_heading_the_title_is_the_name_in_the_path(path: str, title: str) -> None:
    assert title_of("text", path) == title


@pytest.mark.requirement("text.front_matter")
@pytest.mark.parametrize(
    ("body", "rest"),
    [
        ("---\na: 1\n---\nrest\n", "rest\n"),
        ("---\na: 1\n...\nrest", "rest"),
        ("---  \r\na: 1\r\n---\r\n\r\nrest", "\r\nrest"),
        ("---\n---\n", ""),
        ("---\nnever closed\n", "---\nnever closed\n"),
        ("\n---\na: 1\n---\n", "\n---\na: 1\n---\n"),
        ("----\na\n---\n", "----\na\n---\n"),
        ("text", "text"),
        ("", ""),
    ],
)
def test_front_matter_is_taken_off_only_when_it_is_whole(body: str, rest: str) -> None:
    assert strip_front_matter(body) == rest


@given(body=st.text(alphabet="#=-`~> ab\n\r\t\ufeff*_1.", max_size=60))
def test_every_text_has_a_short_title_on_one_line(body: str) -> None:
    title = title_of(body, "guides/p.md")
    assert title == " ".join(title.split())
    assert 0 < len(title) <= limits.TITLE_CHARACTERS


@pytest.mark.parametrize(
    "body",
    ["#" * 1_000_000, "# " + " #" * 500_000 + "x", "* " * 500_000 + "x", "- " * 500_000, "`" * 1_000_000,
     "a\n-\n" * 250_000, "-" * 1_000_000 + "x", "\r" * 1_000_000, "#" + " " * 1_000_000 + "x"],
    ids=["hashes", "spaced_hashes", "stars", "dashes", "ticks", "setext", "rule", "cr", "spaces"],
)  # fmt: skip
def test_a_title_is_found_in_large_hostile_texts(body: str) -> None:
    # A pattern that backtracks in quadratic time would meet the time limit of a test.
    assert len(title_of(body, "guides/p.md")) <= limits.TITLE_CHARACTERS
