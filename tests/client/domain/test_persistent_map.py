from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.persistent_map import PARTS, PersistentMap

# More keys than parts, so that most parts hold several; and a key that is no valid UTF-8.
KEYS = [f"key {number}" for number in range(3 * PARTS)] + ["", "钥匙", "\ud800"]
ENTRIES = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3), max_size=400)
CHANGES = st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(0, 3), max_size=40)


def digest_of(part: Mapping[str, int]) -> bytes:
    return hashlib.sha256(repr(sorted(part.items())).encode()).digest()


@pytest.mark.requirement("domain.projection.incremental")
@given(entries=ENTRIES, steps=st.lists(CHANGES, max_size=4))
def test_a_successor_is_what_a_changed_dict_is_and_its_former_stays(
    entries: dict[str, int], steps: list[dict[str, int | None]]
) -> None:
    known = [(PersistentMap(entries.items()), dict(entries))]
    for changes in steps:
        former, expected = known[-1]
        following = {key: value for key, value in expected.items() if key not in changes}
        following |= {key: value for key, value in changes.items() if value is not None}
        former.digests(digest_of)
        known.append((former.changed(changes), following))
    for found, expected in known:
        assert found == expected
        assert len(found) == len(expected)
        assert set(found) == set(expected)
        assert [found.get(key) for key in KEYS] == [expected.get(key) for key in KEYS]
        assert [key in found for key in KEYS] == [key in expected for key in KEYS]
        anew = PersistentMap(expected.items())
        assert found.digests(digest_of) == anew.digests(digest_of), "what was kept is of the former"
    first, last = known[0], known[-1]
    assert last[0].differing(first[0]) == {key for key in KEYS if first[1].get(key) != last[1].get(key)}


def test_a_change_of_nothing_is_the_same_map() -> None:
    made = PersistentMap({"a": "text"}.items())
    assert made.changed({"a": made["a"], "b": None}) is made


def test_a_missing_key_is_a_key_error_or_the_default() -> None:
    made: PersistentMap[int] = PersistentMap()
    with pytest.raises(KeyError):
        made["a"]
    assert made.get("a", "none") == "none"
    assert 1 not in made


@pytest.mark.requirement("domain.hash")
def test_parts_and_so_digests_are_the_same_in_every_process() -> None:
    # Recorded: the parts must not depend on the process, because stored hashes are compared.
    made = PersistentMap(dict.fromkeys(KEYS[:100], 1).items())
    joined = hashlib.sha256(b"".join(made.digests(digest_of))).hexdigest()
    assert joined == "0e01c7ad083f399c298f7454264c124b899435933a1b1d9c6cae5e535ddea44d"
