from __future__ import annotations

import re
import uuid
from typing import get_args

import pytest

from shared_schema import ids
from shared_schema.ids import Prefix, is_id, is_resource_id, new_id
from tests.text_fixtures import SCRIPTS


@pytest.mark.requirement("ids.form")
@pytest.mark.parametrize("prefix", get_args(Prefix))
def test_a_fresh_id_is_a_prefix_and_a_version_7_uuid(prefix: Prefix) -> None:
    made = new_id(prefix)
    assert re.fullmatch(rf"{prefix}_[0-9a-f]{{32}}", made)
    value = uuid.UUID(made.partition("_")[2])
    assert value.version == 7
    assert value.variant == uuid.RFC_4122
    assert is_id(made, prefix)
    assert is_resource_id(made) == (prefix == "mem")


def test_an_id_starts_with_the_milliseconds_of_its_making(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids.time, "time_ns", lambda: 1_730_000_000_123_456_789)
    made = new_id("mem")
    assert int(made[4:16], 16) == 1_730_000_000_123
    # RFC 9562 keeps 48 bits for the time; a clock far off must not spill into the other fields.
    monkeypatch.setattr(ids.time, "time_ns", lambda: (2**60) * 1_000_000)
    assert uuid.UUID(new_id("mem")[4:]).version == 7


def test_every_random_bit_of_an_id_can_be_set_and_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids.time, "time_ns", lambda: 0)
    monkeypatch.setattr(ids.os, "urandom", lambda count: b"\xff" * count)
    assert new_id("mem") == "mem_0000000000007fffbfffffffffffffff"
    monkeypatch.setattr(ids.os, "urandom", lambda count: b"\x00" * count)
    assert new_id("mem") == "mem_00000000000070008000000000000000"


def test_ids_made_at_once_differ() -> None:
    assert len({new_id("lop") for _ in range(10_000)}) == 10_000


@pytest.mark.requirement("ids.older")
@pytest.mark.parametrize(
    "text", ["mem_0192f0c4", "ctx_12", "rul_a-b.c", "wfl_ABC", "mem_" + "a" * 120, "mem_guide.md"]
)
def test_resource_ids_of_every_generation_are_recognised(text: str) -> None:
    assert is_resource_id(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "mem", "mem_", "mem_" + "a" * 121, "MEM_1", " mem_1", "mem_1\n", "mem_a/b", "mem_a b"),
        *("drf_1", "prj_1", "xmem_1", "guides/mem_1", "mem_\u0430", "mem-1", "mem_\ud800"),
        *SCRIPTS.values(),
    ],
)
def test_other_texts_are_no_resource_ids(text: str) -> None:
    assert not is_resource_id(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("drf_1", True),
        ("drf_", False),
        ("lop_1", False),
        ("drf_1\n", False),
        ("drf_a/b", False),
        ("drfx_1", False),
    ],
)
def test_an_id_has_the_prefix_asked_for(text: str, found: bool) -> None:
    assert is_id(text, "drf") is found
