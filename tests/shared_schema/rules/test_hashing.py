from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_schema.rules.hashing import canonical_json, content_hash, fingerprint
from tests.text_fixtures import BODIES, LONE_HIGH_SURROGATE

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.requirement("hashing.content")
def test_a_content_hash_is_that_of_the_utf8_text() -> None:
    assert content_hash("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert content_hash("发布") == f"sha256:{hashlib.sha256('发布'.encode()).hexdigest()}"


def test_texts_that_look_alike_have_hashes_of_their_own() -> None:
    assert len({content_hash(body) for body in BODIES.values()}) == len(BODIES)


def test_a_lone_surrogate_has_no_hash() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        content_hash(LONE_HIGH_SURROGATE)
    with pytest.raises(ValueError, match="surrogates"):
        canonical_json({"a": LONE_HIGH_SURROGATE})


@pytest.mark.requirement("hashing.canonical")
def test_canonical_json_has_sorted_keys_no_spaces_and_plain_utf8() -> None:
    value = {"b": [1, True, None, "发\n\u2028"], "a": {"é": "", "Z": "\x7f"}, "A": -0}
    expected = '{"A":0,"a":{"Z":"\x7f","é":""},"b":[1,true,null,"发\\n\u2028"]}'
    assert canonical_json(value) == expected.encode()
    assert canonical_json((1, 2)) == b"[1,2]"


@given(value=VALUES)
def test_canonical_json_reads_back_as_the_value_and_is_stable(value: Any) -> None:
    written = canonical_json(value)
    assert json.loads(written) == value
    assert canonical_json(json.loads(written)) == written


@given(value=st.dictionaries(st.text(), VALUES, min_size=2, max_size=5), data=st.data())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], data: st.DataObject) -> None:
    shuffled = {key: value[key] for key in data.draw(st.permutations(list(value)))}
    assert fingerprint(shuffled) == fingerprint(value)


@given(one=VALUES, other=VALUES)
def test_fingerprints_are_equal_only_for_the_same_json(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint(one) == fingerprint(other)) == same


@pytest.mark.parametrize(
    "value", [1.0, {"a": [float("nan")]}, {1: "a"}, {None: 1}, {"a": {2: 1}}, {"a": {1, 2}}, b"x"]
)
def test_values_with_more_than_one_json_form_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)
