from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.domain.delta import KNOWN_UNITS, Action, Delta, KnownUnit, compute


@dataclass(frozen=True)
class Selected:
    unit_key: str
    content_hash: str
    resource_id: str = "mem_1"


def delta(known: dict[str, str], selected: list[Selected], *alive: str) -> Delta:
    return compute(
        {key: KnownUnit(content, "mem_1") for key, content in known.items()},
        selected,
        lambda key, _: key in alive,
    )


def everything(unit_key: str, resource_id: str) -> bool:
    return True


@pytest.mark.requirement("activate.delta.actions")
def test_new_changed_and_known_units_are_told_apart() -> None:
    result = delta({"b": "1", "c": "1"}, [Selected("a", "1"), Selected("b", "2"), Selected("c", "1")])
    assert result.actions == (Action.ADD, Action.REPLACE, Action.REUSE)
    assert result.removed == ()


@pytest.mark.requirement("activate.delta.removed")
def test_a_known_unit_that_is_gone_is_removed_and_a_merely_irrelevant_one_is_not() -> None:
    result = delta({"gone": "1", "irrelevant": "1"}, [], "irrelevant")
    assert result.removed == ("gone",)
    assert set(result.known) == {"irrelevant"}


@pytest.mark.requirement("activate.delta.actions", "activate.delta.removed")
@pytest.mark.parametrize(
    ("known", "selected", "alive", "action", "removed", "following"),
    [
        # known: the hash that was sent; selected: the hash now, where it is selected; alive: it exists.
        (None, "1", True, Action.ADD, False, "1"),
        ("1", "1", True, Action.REUSE, False, "1"),
        ("1", "2", True, Action.REPLACE, False, "2"),
        ("1", None, True, None, False, "1"),
        ("1", None, False, None, True, None),
        (None, None, True, None, False, None),
        (None, None, False, None, False, None),
        # Selected units are live by definition, whatever the other says.
        (None, "1", False, Action.ADD, False, "1"),
        ("1", "1", False, Action.REUSE, False, "1"),
        ("1", "2", False, Action.REPLACE, False, "2"),
    ],
)
def test_what_is_said_of_one_unit(
    known: str | None,
    selected: str | None,
    alive: bool,
    action: Action | None,
    removed: bool,
    following: str | None,
) -> None:
    result = delta(
        {} if known is None else {"u": known},
        [] if selected is None else [Selected("u", selected)],
        *(["u"] if alive else []),
    )
    assert result.actions == (() if action is None else (action,))
    assert result.removed == (("u",) if removed else ())
    assert {key: unit.content_hash for key, unit in result.known.items()} == (
        {} if following is None else {"u": following}
    )


@pytest.mark.requirement("activate.delta.forks")
def test_a_state_is_a_value_that_two_conversations_may_go_on_from() -> None:
    state = delta({}, [Selected("a", "1"), Selected("b", "1")]).known
    before = dict(state)
    left = compute(state, [Selected("a", "2"), Selected("c", "1")], everything)
    right = compute(state, [Selected("b", "1")], lambda key, _: key != "a")
    assert state == before
    assert (left.actions, left.removed) == ((Action.REPLACE, Action.ADD), ())
    assert (right.actions, right.removed) == ((Action.REUSE,), ("a",))


def test_a_unit_that_comes_back_after_its_removal_is_added_again() -> None:
    first = delta({"a": "1"}, [])
    again = compute(first.known, [Selected("a", "1")], everything)
    assert again.actions == (Action.ADD,)


def test_a_state_stays_bounded_and_forgets_what_was_mentioned_longest_ago() -> None:
    known = {f"k{n}": "1" for n in range(KNOWN_UNITS)}
    result = compute(
        {key: KnownUnit(content, "mem_1") for key, content in known.items()},
        [Selected("new", "1"), Selected("k0", "1")],
        everything,
    )
    assert len(result.known) == KNOWN_UNITS
    assert "k1" not in result.known
    assert {"new", "k0"} <= set(result.known)


_KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), _KEYS, st.integers(0, 3)),
        st.tuples(st.just("rename"), _KEYS, _KEYS),
        st.tuples(st.just("delete"), _KEYS, st.just(0)),
        st.tuples(st.just("activate"), st.sets(_KEYS), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.requirement("activate.delta.client")
@settings(max_examples=500, deadline=None)
@given(_STEPS)
def test_a_client_that_applies_deltas_holds_live_text_and_gets_nothing_twice(
    steps: list[tuple[str, object, object]],
) -> None:
    memory: dict[str, str] = {}
    client: dict[str, str] = {}
    known: dict[str, KnownUnit] = {}
    for kind, first, second in steps:
        if kind == "edit":
            memory[str(first)] = f"text {second}"
        elif kind == "rename" and first in memory:
            memory[str(second)] = memory.pop(str(first))
        elif kind == "delete":
            memory.pop(str(first), None)
        elif kind == "activate":
            assert isinstance(first, set)
            selected = [Selected(key, memory[key]) for key in sorted(first) if key in memory]
            result = compute(known, selected, lambda key, _: key in memory)
            for key in result.removed:
                assert client.pop(key) is not None, "only what the client has is removed"
            for unit, action in zip(selected, result.actions, strict=True):
                if action is Action.REUSE:
                    assert client[unit.unit_key] == unit.content_hash, "reuse names what the client has"
                else:
                    assert client.get(unit.unit_key) != unit.content_hash, "nothing is sent twice"
                    assert (action is Action.REPLACE) == (unit.unit_key in client)
                    client[unit.unit_key] = unit.content_hash
            known = dict(result.known)
            assert {key: unit.content_hash for key, unit in known.items()} == client
            assert set(client) <= set(memory)
            for unit in selected:
                assert client[unit.unit_key] == memory[unit.unit_key]
