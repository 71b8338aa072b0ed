from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.retirement import STATUSES, retired_as


@pytest.mark.requirement("retrieval.retired")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("---\nstatus: superseded\n---\n# Old", "superseded"),
        ("\ufeff---\r\ntype: decision\r\nStatus: 'Archived'  # since May\r\n---\r\ntext", "archived"),
        ('---\nstatus:   "deprecated"\n...\ntext', "deprecated"),
        ("---\nstatus: 已废止\n---\n", "已废止"),
        ("---\nstatus: active\n---\n", None),
        ("---\nstatus: superseded\nstatus: active\n---\n", None),
        ("---\nstatus: not superseded\n---\n", None),
        ("---\nstatus: superseded by 7\n---\n", None),
        ("---\nold_status: superseded\n---\n", None),
        ("---\nhistory:\n  status: superseded\n---\n", None),
        ("---\n---\nstatus: superseded\n---\n", None),
        ("# Title\n---\nstatus: superseded\n---\n", None),
        ("---\nstatus: superseded\n", None),
        ("---\n" + "a: b\n" * 100 + "status: superseded\n---\n", None),
        (" ---\nstatus: superseded\n---\n", None),
        ("status: superseded", None),
        ("---", None),
        ("", None),
    ],
)
def test_only_the_front_matter_s_own_status_counts(body: str, status: str | None) -> None:
    assert retired_as(body) == status


@pytest.mark.requirement("retrieval.retired")
@given(st.text())
def test_any_text_is_answered_and_only_with_a_known_status(text: str) -> None:
    assert retired_as(text) is None
    assert retired_as(f"---\nstatus: superseded\n---\n{text}") == "superseded"
    assert retired_as(f"---\n{text}\n---\n") in {None, *STATUSES}
