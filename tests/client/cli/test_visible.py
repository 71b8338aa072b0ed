"""No text of others can move a cursor, hide itself or reorder what a person reads."""

from __future__ import annotations

import json
import unicodedata

import pytest

from client.cli.visible import escaped_json, visible, visible_line
from tests import text_fixtures as texts

DANGEROUS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.requirement("cli.visible")
@pytest.mark.parametrize("name", sorted(texts.BODIES))
def test_every_hidden_character_of_a_body_is_spelled_out(name: str) -> None:
    shown = visible(texts.BODIES[name])
    assert [c for c in shown if unicodedata.category(c) in DANGEROUS and c not in "\n\t"] == []


@pytest.mark.requirement("cli.visible")
@pytest.mark.parametrize("name", sorted(set(texts.SCRIPTS) - {"emoji", "devanagari", "thai"}))
def test_ordinary_text_of_every_script_stays_as_it_is(name: str) -> None:
    assert visible(texts.SCRIPTS[name]) == texts.SCRIPTS[name]


@pytest.mark.requirement("cli.visible")
def test_controls_are_named_by_their_code_point() -> None:
    assert visible("a\x1b[2Jb\u202ec\u200bd\r\n\te\U000e0041\ud83d") == (
        "a<U+001B>[2Jb<U+202E>c<U+200B>d<U+000D>\n\te<U+E0041><U+D83D>"
    )
    assert visible("\u3164\U000e0101") == "<U+3164><U+E0101>"
    assert visible_line("a\nb\tc") == "a<U+000A>b<U+0009>c"


@pytest.mark.requirement("cli.visible")
@pytest.mark.parametrize("name", sorted(texts.BODIES))
def test_json_holds_no_hidden_character_and_parses_to_the_same(name: str) -> None:
    body = texts.BODIES[name]
    text = escaped_json(json.dumps({"body": body}, ensure_ascii=False))
    assert json.loads(text) == {"body": body}
    assert [c for c in text if unicodedata.category(c) in DANGEROUS] == []


@pytest.mark.requirement("cli.visible")
def test_json_of_astral_hidden_characters_uses_surrogate_pairs() -> None:
    assert escaped_json('"\U000e0041"') == '"\\udb40\\udc41"'
