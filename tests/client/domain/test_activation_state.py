from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.domain.activation_state import (
    EXPIRES_AFTER,
    TOKEN_BYTES,
    ActivationState,
    StateName,
    read,
    sign,
)
from shared_schema.errors import ErrorCode, InterleafError

KEY = b"k" * 32
NAME = StateName("state-1", "prj_1")


def reason_of(token: str, key: bytes = KEY, project_id: str = "prj_1", profile: str = NAME.profile) -> str:
    with pytest.raises(InterleafError) as caught:
        read(token, key, project_id, profile)
    assert caught.value.code is ErrorCode.INVALID_ACTIVATION_STATE
    return str(caught.value.details["reason"])


@pytest.mark.requirement("activate.state.token")
def test_a_token_is_read_back_as_what_was_signed() -> None:
    token = sign(NAME, KEY)
    assert read(token, KEY, "prj_1") == NAME
    assert len(token) < TOKEN_BYTES
    assert token.isascii()


@pytest.mark.requirement("activate.state.bound")
def test_a_token_of_another_project_profile_or_installation_is_refused() -> None:
    token = sign(NAME, KEY)
    assert reason_of(token, project_id="prj_2") == "project"
    assert reason_of(token, profile="agent_activation.v3") == "profile"
    assert reason_of(token, key=b"other" * 8) == "token"


@pytest.mark.parametrize(
    "token", ["", ".", "a.b", "null", "{}", "x" * 70_000, "é", "\ud800", sign(NAME, KEY) + "x"]
)
def test_text_that_is_no_token_is_refused_and_never_taken_for_an_empty_state(token: str) -> None:
    assert reason_of(token) == "token"


@given(st.data())
def test_a_token_with_any_character_changed_is_refused(data: st.DataObject) -> None:
    token = sign(NAME, KEY)
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABCabc019-_.").filter(lambda each: each != token[place]))
    assert reason_of(token[:place] + letter + token[place + 1 :]) == "token"


def test_a_state_expires_after_a_week_without_use() -> None:
    state = ActivationState(NAME, last_used_at=1_000)
    assert not state.expired(1_000 + EXPIRES_AFTER)
    assert state.expired(1_001 + EXPIRES_AFTER)
    assert not state.expired(0), "a clock that went back expires nothing"
