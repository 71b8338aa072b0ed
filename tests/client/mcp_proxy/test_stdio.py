from __future__ import annotations

import json

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.mcp_proxy.stdio import parse_line


def test_a_message_is_parsed_and_a_blank_line_is_nothing() -> None:
    message = parse_line(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert isinstance(message, types.JSONRPCRequest)
    assert parse_line(b"  \r\n") is None


@pytest.mark.requirement("proxy.malformed")
@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"not json", types.PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1', types.PARSE_ERROR, None),
        (b"\xff\xfe", types.PARSE_ERROR, None),
        (b"[" * 100_000, types.PARSE_ERROR, None),
        (b"[]", types.INVALID_REQUEST, None),
        (b"3", types.INVALID_REQUEST, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', types.INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":"x","method":5}', types.INVALID_REQUEST, "x"),
        (b'{"jsonrpc":"2.0","id":true,"method":5}', types.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":5}', types.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', types.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":5}', types.PARSE_ERROR, None),
    ],
)
def test_a_malformed_line_is_answered_at_the_protocol(line: bytes, code: int, request_id: object) -> None:
    answer = parse_line(line)
    assert isinstance(answer, types.JSONRPCError)
    assert (answer.error.code, answer.id) == (code, request_id)


@pytest.mark.requirement("proxy.malformed")
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.floats() | st.integers(), st.lists).map(
        lambda value: json.dumps(value).encode()
    )
)
def test_any_line_has_an_answer_that_can_be_written(line: bytes) -> None:
    message = parse_line(line)
    if message is not None:
        assert json.loads(message.model_dump_json(by_alias=True, exclude_unset=True))
