"""The pieces of a ranking on the screen: columns, arrows, the gauge, and words for figures."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from client.cli.ranking_table import Row, gauge, print_rows, prose, signed
from client.cli.runs_commands import coverage, time_spent


def test_a_gauge_has_the_floor_in_its_middle() -> None:
    assert gauge(0.2, 3) == "···●···"
    assert gauge(2.0, 3) == "···|·●·"
    assert gauge(-99.0, 3) == "●··|···"
    assert (signed(-0.04), signed(0.04), signed(-3.14)) == ("-0.0", "+0.0", "-3.1")


def test_where_the_time_went() -> None:
    stages = {"embed_query": 20.6, "rerank": 4.1, "lexical": 0.4, "later": 2.0}
    assert time_spent(31.4, stages) == "31 ms: query to vector 21, looking again 4, later 2, other 5"
    assert time_spent(3.2, {}) == "3 ms"


def test_coverage_in_words() -> None:
    assert coverage(1, []) == "the query's term occurs in this memory"
    assert coverage(3, []) == "all 3 query terms occur in this memory"
    assert coverage(1, ["kumquat"]) == "0 of 1 query term occur in this memory, not: kumquat"


def test_an_arrow_tells_where_looking_again_moved_a_candidate(capsys: pytest.CaptureFixture[str]) -> None:
    for again, margin in ((3, 6.4), (9, -3.1), (7, 0.0), (None, None)):
        print_rows([Row(None, "a.md", 1, None, 7, again, margin, "note")])
    figures = [line.split() for line in capsys.readouterr().out.splitlines() if line.endswith("note")]
    assert figures == [
        ["1", "–", "7", "3", "↑", "+6.4", "note"],
        ["1", "–", "7", "9", "↓", "-3.1", "note"],
        ["1", "–", "7", "7", "+0.0", "note"],
        ["1", "–", "7", "–", "–", "note"],
    ]


def test_long_names_and_notes_are_broken_and_stay_in_their_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Row(
        12, "路径/" * 60 + " > x\x1b", None, 100, 7, 3, -3.1, "a note that is too long for its column " * 3
    )
    print_rows([row])
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if cell_len(line) > 80] == []
    assert "<U+001B>" in out
    lines = out.splitlines()
    notes = [line for line in lines if "note" in line or "column" in line]
    assert {len(line) - len(line.lstrip()) for line in notes[1:]} == {37}
    prose("word " * 60, indent="- ")
    wrapped = capsys.readouterr().out.splitlines()
    assert wrapped[0].startswith("- word")
    assert all(line.startswith("  word") for line in wrapped[1:])
    monkeypatch.setenv("COLUMNS", "30")
    print_rows([row])
    assert "12  " in capsys.readouterr().out
