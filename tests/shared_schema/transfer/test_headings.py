"""One file as several documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.rules.paths import path_key
from shared_schema.transfer.headings import pieces, split_candidates

LINES = st.sampled_from(
    [
        "# One",
        "## Two ##",
        "### Three",
        "Title",
        "===",
        "---",
        "```",
        "~~~ python",
        "    # indented",
        "- item",
        "> # quoted",
        "",
        "text",
        "\ufeff# marked",
        "description: x",
        "#",
        "# Straße",
        "# STRASSE",
        "# con",
    ]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", ""])


@pytest.mark.requirement("transfer.split")
@given(st.lists(st.tuples(LINES, ENDS)).map(lambda found: "".join(line + end for line, end in found)))
def test_joined_pieces_are_the_file(body: str) -> None:
    cut = pieces(body)
    assert "".join(text for _, text in cut) == body
    candidates = list(split_candidates("AGENTS.md", body))
    assert "".join(str(each.content) for each in candidates) == body
    assert len({path_key(each.path) for each in candidates}) == len(candidates)


@pytest.mark.requirement("transfer.split")
@given(st.text(alphabet="#-=`~> \n\r\taÄ\ufeff\u2028", max_size=60))
def test_joined_pieces_are_the_file_whatever_it_holds(body: str) -> None:
    assert "".join(text for _, text in pieces(body)) == body


@pytest.mark.requirement("transfer.split")
@pytest.mark.parametrize(
    ("body", "titles"),
    [
        ("no heading\n", [None]),
        ("# A\n\n## B\n\n### C\n", ["A", "B"]),
        ("before\n\n# A\n", [None, "A"]),
        ("\n \n# A\n", ["A"]),
        ("\ufeff# A\n", ["A"]),
        ("---\ntitle: x\n---\n# A\n", [None, "A"]),
        ("```\n# no\n```\n# A\n", ["A", None]),
        ("Big\n===\n\ntext\n\nSmall\n---\ntext\n", ["Big", "Small"]),
        ("# A\n~~~\n## no\n", ["A"]),
        ("- # no\n\n# A\n", [None, "A"]),
    ],
)
def test_a_piece_begins_at_each_heading_of_the_first_two_levels(body: str, titles: list[str | None]) -> None:
    found = [title for title, _ in pieces(body)]
    assert sorted(found, key=str) == sorted(titles, key=str)


def test_a_heading_of_two_lines_belongs_to_its_piece() -> None:
    assert pieces("a\n\nLong\ntitle\n=====\nb\n") == [
        (None, "a\n\n"),
        ("Long title", "Long\ntitle\n=====\nb\n"),
    ]


@pytest.mark.requirement("transfer.split")
def test_paths_come_from_headings_and_are_unique() -> None:
    body = "intro\n# Über: Tests & co\n## Setup\n## setup\n## ???\n# nul\n## Straße\n## STRASSE\n"
    assert [each.path for each in split_candidates("CLAUDE.md", body)] == [
        "preamble.md",
        "über-tests-co.md",
        "setup.md",
        "setup-2.md",
        "section.md",
        "nul_.md",
        "straße.md",
        "strasse-2.md",
    ]
    assert [each.source for each in split_candidates("CLAUDE.md", body)][:2] == ["CLAUDE.md#1", "CLAUDE.md#2"]
