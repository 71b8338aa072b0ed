"""Tables and facts for people: 80 columns, whole ids, nothing hidden."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from client.cli.output import count, facts, moment, print_json, say, styled, table
from tests import text_fixtures as texts

ID = "mem_" + "0192f0c4" * 4


@pytest.mark.requirement("cli.columns")
@pytest.mark.parametrize("path", [*texts.PATHS.values(), "/".join(["a" * 100] * 5)])
def test_tables_fit_80_columns_and_keep_ids_whole(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    table(["Resource", "Path and title"], [[ID, styled(path, "bold", "A long title " * 20)]], empty="")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if cell_len(line) > 80] == []
    assert any(line.startswith(ID) for line in lines)
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.requirement("cli.columns", "cli.visible")
def test_nothing_printed_for_people_interprets_text_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "[bold]x[/bold] :smile: \x1b[2J\u202e"
    say(evil)
    facts([("Name", evil), ("Absent", None)])
    table(["Name"], [[evil]], empty="")
    out = capsys.readouterr().out
    assert out.count("[bold]x[/bold] :smile: <U+001B>[2J<U+202E>") == 3
    assert "Absent" not in out
    assert not {"\x1b", "\u202e"} & set(out)


@pytest.mark.requirement("cli.columns")
def test_a_pipe_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    say("text", style="bold red")
    table(["Title"], [["row"]], empty="")
    assert "\x1b" not in capsys.readouterr().out


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    table(["Title"], [], empty="Nothing here.")
    assert capsys.readouterr().out == "Nothing here.\n"


def test_prose_is_never_wrapped_so_that_it_can_be_copied(capsys: pytest.CaptureFixture[str]) -> None:
    say("word " * 50)
    assert capsys.readouterr().out == "word " * 50 + "\n"


def test_json_is_one_object_in_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": texts.CHINESE_SIMPLIFIED, "n": 1})
    out = capsys.readouterr().out
    assert texts.CHINESE_SIMPLIFIED in out
    assert json.loads(out) == {"text": texts.CHINESE_SIMPLIFIED, "n": 1}


def test_small_words() -> None:
    assert (count(1, "Draft"), count(2, "Draft")) == ("1 Draft", "2 Drafts")
    assert moment(None) == "never"
    assert moment(0).startswith(("1970-01-01", "1969-12-31"))


@pytest.mark.requirement("cli.columns")
def test_a_long_first_cell_never_hides_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    table(["Directory", "Project"], [["/home/someone/" + "deep/" * 30, "Rocket"]], empty="")
    assert "Rocket" in capsys.readouterr().out
