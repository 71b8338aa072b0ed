from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.domain.chunking import Unit, cut, passage_of, slug, text_hash
from client.domain.splitting import MAX_TOKENS, OVERLAP_TOKENS
from tests import text_fixtures as fixtures
from tests.fakes.hashing_embedder import HashingEmbedder


@dataclass(frozen=True)
class Document:
    body: str
    description: str = ""
    resource_id: str = "mem_1"
    path: str = "guides/release.md"
    title: str = "Release"


def letters(texts: Sequence[str]) -> list[int]:
    """A token is four characters, whatever they are."""
    return [(len(text) + 3) // 4 for text in texts]


def body_units(body: str) -> list[Unit]:
    return [unit for unit in cut(Document(body), letters) if unit.kind == "body"]


def words(count: int, word: str = "word") -> str:
    return " ".join(f"{word}{number}" for number in range(count))


@pytest.mark.requirement("retrieval.units.own-text")
def test_a_section_holds_its_own_text_and_not_its_childrens() -> None:
    body = f"# Top\n\n{words(60, 'top')}\n\n## Child\n\n{words(60, 'child')}\n"
    top, child = body_units(body)
    assert top.heading_path == ("Top",)
    assert top.text == words(60, "top")
    assert child.heading_path == ("Top", "Child")
    assert child.text == words(60, "child")


@pytest.mark.requirement("retrieval.units.fences")
@pytest.mark.parametrize(
    "hidden",
    [
        "```\n# not a heading\n```",
        "~~~sh\n## not a heading\n~~~",
        "    # not a heading",
        "> # not a heading",
        "- item\n\n  # not a heading",
    ],
)
def test_what_looks_like_a_heading_inside_a_block_is_text(hidden: str) -> None:
    units = body_units(f"# Real\n\nbefore\n\n{hidden}\n\nafter\n")
    assert [unit.heading_path for unit in units] == [("Real",)]
    assert "not a heading" in units[0].text


def test_an_unclosed_fence_hides_headings_to_the_end() -> None:
    units = body_units("# Real\n\n```\n# code\n\n# more code\n")
    assert {unit.heading_path for unit in units} == {("Real",)}


@pytest.mark.requirement("retrieval.units.front-matter")
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["---", "..."])
def test_front_matter_is_text_and_makes_no_heading(start: str, end: str) -> None:
    body = f"{start}---\ntitle: Something\ntags: [a]\n{end}\n# Real\n\ntext\n"
    assert [unit.heading_path for unit in body_units(body)] == [(), ("Real",)]


def test_front_matter_that_never_ends_is_ordinary_text() -> None:
    assert ("Real",) in [unit.heading_path for unit in body_units("---\ntitle: x\n\n# Real\n\ntext\n")]


def test_a_thematic_break_at_the_start_is_no_front_matter() -> None:
    units = body_units(f"---\n\n# Real\n\n{words(80)}\n\n---\n\nmore\n")
    assert ("Real",) in [unit.heading_path for unit in units]


def test_a_heading_after_a_byte_order_mark_is_a_heading() -> None:
    (unit,) = body_units(fixtures.BOM)
    assert unit.heading_path == ("Title",)


@pytest.mark.parametrize("body", [fixtures.LF, fixtures.CRLF, fixtures.LONE_CR, fixtures.MIXED_LINE_ENDS])
def test_line_ends_of_every_kind_give_the_same_headings(body: str) -> None:
    assert [unit.heading_path for unit in body_units(body)] == [("Title",)]


def test_a_heading_with_nothing_below_can_still_be_found() -> None:
    units = body_units("# Title\n\n## Undecided: which queue\n")
    assert [unit.text for unit in units] == ["## Undecided: which queue"]


@pytest.mark.parametrize("body", ["", "\n\n \t\n", "\ufeff"])
def test_a_document_without_text_has_no_body_units(body: str) -> None:
    assert body_units(body.replace("\ufeff", "")) == []


def test_short_neighbours_under_one_heading_become_one_unit() -> None:
    body = "# FAQ\n\n## One\n\nshort\n\n## Two\n\nalso short\n\n# Other\n\ntext\n"
    joined, other = body_units(body)
    assert joined.heading_path == ("FAQ",)
    assert joined.text == "## One\n\nshort\n\n## Two\n\nalso short"
    assert other.heading_path == ("Other",)


def test_a_short_section_is_not_joined_across_a_parent() -> None:
    body = "# A\n\n## One\n\nshort\n\n# B\n\n## Two\n\nshort\n"
    assert [unit.heading_path for unit in body_units(body)] == [("A", "One"), ("B", "Two")]


@pytest.mark.requirement("retrieval.units.keys")
def test_keys_are_stable_when_other_sections_change() -> None:
    def text(first: str) -> str:
        return f"# A\n\n{first}\n\n## B\n\n{words(90)}\n\n## B\n\n{words(90, 'again')}\n"

    before = {unit.unit_key: unit.content_hash for unit in body_units(text(words(70)))}
    after = {unit.unit_key: unit.content_hash for unit in body_units(text(words(700)))}
    for key in ("mem_1/a/b/0/0", "mem_1/a/b/1/0"):
        assert before[key] == after[key]


def test_keys_of_the_description_and_of_a_section_named_description_differ() -> None:
    units = cut(Document("# Description\n\ntext", "what it is"), letters)
    assert [unit.unit_key for unit in units] == ["mem_1/@description/0/0", "mem_1/description/0/0"]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Memory Delta", "memory-delta"),
        ("STRASSE und Straße", "strasse-und-strasse"),
        ("发布 流程", "发布-流程"),
        ("!!!", "section"),
        ("", "section"),
        ("a/b_c", "a-b-c"),
    ],
)
def test_headings_are_normalised_for_keys(heading: str, expected: str) -> None:
    assert slug(heading) == expected


@pytest.mark.requirement("retrieval.units.size")
@pytest.mark.parametrize(
    "body",
    [
        "# T\n\n" + words(5_000),
        "# T\n\n" + "word " * 3_000 + "\n" + "x" * 5_000,
        "# T\n\n" + "发布之前请先检查合同编号，再下载视频。" * 300,
        "# T\n\n" + "発" * 5_000,
        "```\n" + "call(argument)\n" * 800 + "```\n",
        "".join(f"- item {number} of a long list\n" for number in range(900)),
        "# " + "long heading " * 400 + "\n\ntext " * 300,
    ],
)
@pytest.mark.parametrize("count", [letters, lambda texts: [len(text) for text in texts]])
def test_no_passage_is_longer_than_the_limit(body: str, count: object) -> None:
    assert callable(count)
    units = cut(Document(body, path="a/" * 250 + "b.md"), count)
    assert units
    assert max(count([passage_of(unit) for unit in units])) <= MAX_TOKENS


def test_parts_of_a_long_block_overlap_and_cover_it() -> None:
    body = "# T\n\n" + ". ".join(words(30, f"s{n}w") for n in range(60)) + "."
    units = body_units(body)
    assert len(units) > 5
    covered = units[0].chars[1]
    for before, after in pairwise(units):
        assert after.chars[0] < before.chars[1], "they overlap"
        assert after.chars[0] > before.chars[0]
        assert letters([body[after.chars[0] : before.chars[1]]])[0] <= OVERLAP_TOKENS + 1
        covered = after.chars[1]
    assert covered == len(body)


def test_blocks_that_fit_are_not_repeated() -> None:
    body = "\n\n".join(words(60, f"p{number}w") for number in range(10))
    units = body_units(body)
    assert all(a.chars[1] <= b.chars[0] for a, b in pairwise(units))


def test_emoji_with_joiners_are_not_torn_apart() -> None:
    family = "👩‍👩‍👧‍👦"
    units = body_units(family * 2_000)
    assert len(units) > 1
    assert all(unit.text.startswith("👩") and not unit.text.endswith("\u200d") for unit in units)


@pytest.mark.requirement("retrieval.units.spans")
@pytest.mark.parametrize("name", sorted(fixtures.BODIES))
def test_spans_give_back_the_exact_text(name: str) -> None:
    body = fixtures.BODIES[name]
    data = body.encode("utf-8", "surrogatepass")
    for unit in cut(Document(body, description="Größe 发布"), letters):
        source = data if unit.kind == "body" else "Größe 发布".encode()
        assert source[unit.span[0] : unit.span[1]].decode("utf-8", "surrogatepass") == unit.text
        assert unit.content_hash == text_hash(unit.text)


@pytest.mark.requirement("retrieval.units.linear")
@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    "body",
    [
        "word " * (fixtures.MIB // 5),
        "x" * fixtures.MIB,
        "发" * (fixtures.MIB // 3),
        "# a\n" * (fixtures.MIB // 16),
        "## a\n\nb\n# c\n" * (fixtures.MIB // 48),
        "a\n\n" * (fixtures.MIB // 12),
    ],
    ids=["one line", "one word", "one Chinese line", "headings", "nested headings", "paragraphs"],
)
def test_large_bodies_are_cut_with_few_calls_of_the_tokenizer(body: str) -> None:
    calls: list[int] = []

    def count(texts: Sequence[str]) -> list[int]:
        calls.append(len(texts))
        return letters(texts)

    units = cut(Document(body), count)
    assert len(units) > 100
    assert len(calls) <= 4


def test_passages_name_path_title_and_headings() -> None:
    (unit,) = cut(Document("# Release\n\n## Steps\n\nrun it"), letters)
    assert passage_of(unit) == "guides/release.md\nRelease > Steps\nrun it"


_LINES = st.sampled_from(
    [
        "# A",
        "## B",
        "### C",
        "text and more of it",
        "```",
        "---",
        "",
        "- item",
        "> quoted",
        "中文内容。",
        "\ttab",
        "a: b",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_LINES, max_size=40), st.sampled_from(["\n", "\r\n", "\r"]))
def test_all_words_of_a_document_are_in_some_unit_and_keys_are_unique(lines: list[str], end: str) -> None:
    body = end.join(lines)
    units = cut(Document(body), HashingEmbedder().count_tokens)
    assert len({unit.unit_key for unit in units}) == len(units)
    reachable = " ".join([unit.text + " " + " ".join(unit.heading_path) for unit in units])
    for line in lines:
        for word in line.replace("#", " ").replace("`", " ").split():
            if word.isalpha():
                assert word in reachable
