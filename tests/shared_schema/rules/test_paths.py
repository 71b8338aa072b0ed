from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import new_id
from shared_schema.rules.paths import PathSet, ancestors, find_clash, normalise_path, path_key
from tests.text_fixtures import PATH_TWINS, PATHS, REFUSED_PATHS

RULES = {
    "empty": "empty",
    "absolute": "segment_empty",
    "trailing_slash": "segment_empty",
    "double_slash": "segment_empty",
    "dot": "segment_dot",
    "dot_dot": "segment_dot",
    "only_dot_dot": "segment_dot",
    "leading_space": "segment_whitespace",
    "trailing_space": "segment_whitespace",
    "trailing_ideographic_space": "segment_whitespace",
    "trailing_dot": "segment_trailing_dot",
    "three_dots": "segment_trailing_dot",
    "newline": "character_control",
    "tab": "character_control",
    "nul": "character_control",
    "delete": "character_control",
    "c1_control": "character_control",
    "line_separator": "character_control",
    "escape": "character_control",
    "backslash": "character_forbidden",
    "drive": "character_forbidden",
    "angle": "character_forbidden",
    "quote": "character_forbidden",
    "pipe": "character_forbidden",
    "question": "character_forbidden",
    "star": "character_forbidden",
    "colon": "character_forbidden",
    "device": "segment_device",
    "device_lower": "segment_device",
    "device_suffix": "segment_device",
    "device_two_suffixes": "segment_device",
    "device_space": "segment_device",
    "device_superscript": "segment_device",
    "bidi_override": "character_invisible",
    "bidi_isolate": "character_invisible",
    "right_to_left_mark": "character_invisible",
    "zero_width_space": "character_invisible",
    "zero_width_joiner": "character_invisible",
    "inner_bom": "character_invisible",
    "soft_hyphen": "character_invisible",
    "tag_character": "character_invisible",
    "hangul_filler": "character_invisible",
    "lone_surrogate": "character_surrogate",
    "id": "id_like",
    "id_with_suffix": "id_like",
    "old_id": "id_like",
    "old_rule_id": "id_like",
    "old_workflow_id": "id_like",
    "draft_id": "id_like",
    "long_segment": "segment_too_long",
    "long_segment_in_bytes": "segment_too_long",
    "long": "too_long",
    "very_long": "too_long",
}
SEGMENT = st.text(alphabet="aAbB\u00e9\u00df\u03c3\u03c2\u212aK\uac00", min_size=1, max_size=2)
GOOD_PATHS = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)


@pytest.mark.requirement("paths.accepted")
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_a_good_path_stays_as_it_is(path: str) -> None:
    assert normalise_path(path) == path


@pytest.mark.requirement("paths.refused")
@pytest.mark.parametrize("name", REFUSED_PATHS)
def test_a_bad_path_is_refused_by_the_rule_that_it_breaks(name: str) -> None:
    with pytest.raises(InterleafError) as caught:
        normalise_path(REFUSED_PATHS[name])
    assert caught.value.code is ErrorCode.INVALID_PATH
    assert caught.value.details["rule"] == RULES[name]
    shown = caught.value.details["path"]
    assert shown.isprintable()
    assert len(shown) <= 200 * len("\\U0010ffff")
    assert caught.value.message.isprintable()
    json.dumps(caught.value.as_wire(), ensure_ascii=False).encode()


@pytest.mark.requirement("paths.nfc")
def test_a_path_is_stored_composed() -> None:
    assert normalise_path("cafe\u0301/\u1100\u1161.md") == "caf\u00e9/\uac00.md"
    assert normalise_path("a<\u0338b.md") == "a\u226eb.md"


def test_a_letter_that_composes_to_a_forbidden_character_is_no_way_around() -> None:
    # The Greek question mark composes to a semicolon, the Kelvin sign to K.
    assert normalise_path("a\u037eb.md") == "a;b.md"
    with pytest.raises(InterleafError):
        normalise_path("me\u0301m/..")


def test_bounds_are_reached_exactly() -> None:
    segment = "a" * limits.SEGMENT_BYTES
    longest = f"{segment}/{segment}/"[: limits.PATH_BYTES]
    assert normalise_path(longest[:-1]) == longest[:-1]
    full = f"{segment}/{'b' * (limits.PATH_BYTES - len(segment) - 3)}/c"
    assert len(full) == limits.PATH_BYTES
    assert normalise_path(full) == full
    with pytest.raises(InterleafError) as caught:
        normalise_path(f"{full}d")
    assert caught.value.details["rule"] == "too_long"
    # 256 letters of two bytes, three code points each when decomposed.
    long = "/".join(["\u01d7" * 127, "\u01d7" * 126, "\u01d7"])
    assert normalise_path(unicodedata.normalize("NFD", long)) == long


@pytest.mark.requirement("paths.id_like")
def test_fresh_ids_are_no_paths() -> None:
    for prefix in ("mem", "drf"):
        with pytest.raises(InterleafError):
            normalise_path(new_id(prefix))
    assert normalise_path("mem_发布.md") == "mem_发布.md"


def accepted(raw: str) -> str | None:
    try:
        return normalise_path(raw)
    except InterleafError as error:
        if error.code is not ErrorCode.INVALID_PATH or not error.details["path"].isprintable():
            raise
        return None


@given(raw=st.one_of(st.text(max_size=40), st.text(alphabet="a./ \\:\u0301\u200b", max_size=12)))
@example(raw="a\u0338/<\u0338")
def test_whatever_is_accepted_is_accepted_again_unchanged(raw: str) -> None:
    path = accepted(raw)
    if path is None:
        return
    assert normalise_path(path) == path
    assert unicodedata.is_normalized("NFC", path)
    assert path_key(path) == path_key(raw)


@pytest.mark.requirement("paths.twins")
@pytest.mark.parametrize(("one", "other"), PATH_TWINS.values(), ids=PATH_TWINS.keys())
def test_spellings_of_one_path_share_a_key(one: str, other: str) -> None:
    assert one != other
    assert path_key(one) == path_key(other)


def test_no_character_is_folded_further_by_folding_again() -> None:
    keys = {character: path_key(character) for character in map(chr, range(sys.maxunicode + 1))}
    assert [character for character, key in keys.items() if path_key(key) != key] == []
    # A dotless i is no spelling of i, although its capital is.
    other_case = [c for c, key in keys.items() if key not in (path_key(c.upper()), path_key(c.lower()))]
    assert other_case == []
    assert [c for c, key in keys.items() if path_key(c.upper()) != key] == ["\u0131"]


@given(text=st.text(max_size=20))
def test_a_key_is_its_own_key_in_every_normal_form(text: str) -> None:
    key = path_key(text)
    assert path_key(key) == key
    assert unicodedata.is_normalized("NFC", key)
    assert path_key(unicodedata.normalize("NFD", text)) == path_key(unicodedata.normalize("NFC", text)) == key


def test_ancestors_come_outermost_first() -> None:
    assert ancestors("a") == []
    assert ancestors("a/b/c.md") == ["a", "a/b"]


@given(path=GOOD_PATHS)
def test_the_key_of_an_ancestor_is_the_ancestor_of_the_key(path: str) -> None:
    assert [path_key(each) for each in ancestors(path)] == ancestors(path_key(path))


@pytest.mark.requirement("paths.clash")
@pytest.mark.parametrize(
    ("path", "clash"),
    [
        ("guides/release.md", "mem_1"),
        ("GUIDES/Release.MD", "mem_1"),
        ("guides", "mem_1"),
        ("Guides", "mem_1"),
        ("guides/release.md/more", "mem_1"),
        ("guides/release.md/more/still", "mem_1"),
        ("guides/release.mdx", None),
        ("guides/release", None),
        ("guide", None),
        ("notes/a", "mem_2"),
        ("notes/a.md", None),
    ],
)
def test_equal_paths_ancestors_and_descendants_clash(path: str, clash: str | None) -> None:
    items = [("guides/release.md", "mem_1"), ("Notes/A/b.md", "mem_2")]
    taken = {path_key(each): resource_id for each, resource_id in items}
    assert find_clash(path, taken) == clash
    assert PathSet(items).find_clash(path) == clash
    assert find_clash(path, taken, own_id=clash) is None
    assert PathSet(items).find_clash(path, own_id=clash) is None


@given(
    items=st.lists(st.tuples(GOOD_PATHS, st.sampled_from("pqrstuv")), max_size=8),
    removed=st.lists(st.integers(0, 7), max_size=4),
    path=GOOD_PATHS,
    own=st.sampled_from([None, "p", "q"]),
)
def test_a_set_of_paths_answers_like_a_search_through_all(
    items: list[tuple[str, str]], removed: list[int], path: str, own: str | None
) -> None:
    paths = PathSet(items)
    left = {(path_key(each), holder) for each, holder in items}
    for index in removed:
        each, holder = items[index] if index < len(items) else ("nowhere", "p")
        paths.remove(each, holder)
        left.discard((path_key(each), holder))
    key = path_key(path)
    clashing = {
        holder
        for each, holder in left
        if holder != own and (each == key or each.startswith(f"{key}/") or key.startswith(f"{each}/"))
    }
    found = paths.find_clash(path, own)
    assert found in clashing if clashing else found is None
    for each, holder in left:
        paths.remove(each, holder)
    assert paths.find_clash(path) is None


def test_a_large_set_answers_below_its_busiest_folder() -> None:
    paths = PathSet((f"docs/area/{number}.md", f"mem_{number}") for number in range(10_000))
    assert paths.find_clash("docs", own_id="mem_0") == "mem_1"
    assert paths.find_clash("Docs/Area/9999.md/x") == "mem_9999"
    assert all(paths.find_clash(f"docs/area/{number}.txt") is None for number in range(10_000))
    for number in range(10_000):
        paths.remove(f"docs/area/{number}.md", f"mem_{number}")
    assert paths.find_clash("docs") is None
