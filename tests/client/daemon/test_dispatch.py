from __future__ import annotations

import json
from typing import Any

import pytest

from client.daemon.dispatch import Dispatcher
from shared_schema.daemon_contract import (
    AGENT_METHODS,
    AGENT_PROTOCOL,
    METHODS,
    UNMARKED_METHODS,
    AgentScope,
    Contract,
    Count,
    Empty,
    Hello,
    RuntimeMarker,
)
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.sync_status import SyncStatus
from shared_schema.tool_contract import LoadAnswer, StoreAnswer

MARKER = RuntimeMarker(protocol=AGENT_PROTOCOL, release="1", fingerprint="f")
SCOPE = {"project_id": "prj_1", "directory": {"path": "/w"}}
PARAMS: dict[str, Any] = {
    "activate_memory": {"scope": SCOPE, "activate": {"query": "q"}},
    "load_memory": {"scope": SCOPE, "load": {"ids": ["a"]}},
    "store_draft_operation": {"scope": SCOPE, "store": {"discard": {"id": "mem_1"}}},
}


class Services:
    """Counts what was executed; answers by method."""

    def __init__(self) -> None:
        self.executed: list[str] = []

    def handlers(self) -> dict[str, Any]:
        return {method: self._handler(method) for method in METHODS}

    def _handler(self, method: str) -> Any:
        def handle(_params: Contract) -> Contract:
            self.executed.append(method)
            return LoadAnswer(resources=[]) if method == "load_memory" else Count(count=0)

        return handle


def verify_with(refusal: InterleafError | None) -> Any:
    def verify(_scope: AgentScope) -> None:
        if refusal is not None:
            raise refusal

    return verify


def dispatcher(services: Services, refusal: InterleafError | None = None) -> Dispatcher:
    return Dispatcher(MARKER, services.handlers(), verify_with(refusal))


def body(params: Any, marker: Any = None) -> bytes:
    return json.dumps(
        {"marker": MARKER.model_dump() if marker is None else marker, "params": params}
    ).encode()


def refused(
    services: Services, method: str, call: bytes, refusal: InterleafError | None = None
) -> InterleafError:
    with pytest.raises(InterleafError) as failure:
        dispatcher(services, refusal).call(method, call)
    assert services.executed == []
    return failure.value


@pytest.mark.requirement("daemon.marker")
@pytest.mark.parametrize("method", sorted(METHODS.keys() - UNMARKED_METHODS))
@pytest.mark.parametrize(
    "marker",
    [
        {},
        "text",
        3,
        {"protocol": 99, "release": "1", "fingerprint": "f"},
        {"protocol": AGENT_PROTOCOL, "release": "2", "fingerprint": "f"},
        {"protocol": AGENT_PROTOCOL, "release": "1", "fingerprint": "g"},
    ],
)
def test_another_build_is_refused_before_the_call_is_looked_at(method: str, marker: Any) -> None:
    error = refused(Services(), method, body({"unknown": 1}, marker))
    assert error.code is ErrorCode.AGENT_RUNTIME_MISMATCH
    assert error.details["daemon"] == MARKER.model_dump()
    assert "interleaf daemon restart" in error.message


@pytest.mark.requirement("daemon.marker")
@pytest.mark.parametrize("method", sorted(UNMARKED_METHODS))
def test_any_build_may_ask_who_runs_and_stop_it(method: str) -> None:
    services = Services()
    dispatcher(services).call(method, b'{"marker": {"protocol": 0}, "params": {}}')
    dispatcher(services).call(method, b'{"params": {}}')
    assert services.executed == [method, method]


@pytest.mark.requirement("daemon.binding.revalidated")
@pytest.mark.parametrize("method", sorted(AGENT_METHODS))
def test_an_agents_directory_is_verified_before_every_call(method: str) -> None:
    changed = InterleafError(ErrorCode.PROJECT_BINDING_CHANGED)
    assert refused(Services(), method, body(PARAMS[method]), changed) is changed
    services = Services()
    dispatcher(services).call(method, body(PARAMS[method]))
    assert services.executed == [method]


@pytest.mark.requirement("daemon.calls.typed")
@pytest.mark.parametrize(
    "call",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"params": {}, "other": 1}',
        b'{"params": {"scope": 1}}',
        b'{"params": NaN}',
        b"\xff",
        b'{"params": {"scope": {"project_id": "\\ud800"}}}',
    ],
)
def test_a_call_of_another_form_is_refused_by_name(call: bytes) -> None:
    marked = call.replace(b'{"params"', b'{"marker": ' + MARKER.model_dump_json().encode() + b', "params"')
    error = refused(Services(), "load_memory", marked)
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert isinstance(error.as_wire()["details"], list)


def test_an_unknown_method_is_refused() -> None:
    assert refused(Services(), "eval", body({})).code is ErrorCode.NOT_FOUND


def test_every_method_of_the_protocol_has_exactly_one_handler() -> None:
    handlers = Services().handlers()
    del handlers["hello"]
    with pytest.raises(ValueError, match="hello"):
        Dispatcher(MARKER, handlers, verify_with(None))
    with pytest.raises(ValueError, match="more"):
        Dispatcher(MARKER, {**Services().handlers(), "more": lambda _: Empty()}, verify_with(None))


@pytest.mark.requirement("tool.answers.sparse")
def test_answers_of_the_tool_leave_out_what_is_not_there() -> None:
    answer = StoreAnswer(
        local_operation_id="lop_1",
        draft_id="drf_1",
        resource_id="mem_1",
        queued=False,
        sync_status=SyncStatus.SYNCED,
    )
    handlers = Services().handlers() | {"store_draft_operation": lambda _params: answer}
    made = Dispatcher(MARKER, handlers, verify_with(None))
    result = json.loads(made.call("store_draft_operation", body(PARAMS["store_draft_operation"])))["result"]
    assert result == {
        "local_operation_id": "lop_1",
        "draft_id": "drf_1",
        "resource_id": "mem_1",
        "queued": False,
        "sync_status": "synced",
    }


def test_hello_answers_with_the_build() -> None:
    handlers = Services().handlers() | {"hello": lambda _params: Hello(marker=MARKER, pid=1)}
    made = Dispatcher(MARKER, handlers, verify_with(None))
    assert json.loads(made.call("hello", b'{"params": {}}'))["result"] == {
        "marker": MARKER.model_dump(),
        "pid": 1,
    }


def test_what_is_verified_is_the_scope_of_the_call() -> None:
    asked: list[AgentScope] = []
    made = Dispatcher(MARKER, Services().handlers(), asked.append)
    directory = {"path": "/w", "main_checkout": "/m"}
    scope = {"project_id": "prj_1", "directory": directory}
    made.call("load_memory", body({"scope": scope, "load": {"ids": ["a"]}}))
    assert asked == [AgentScope.model_validate(scope)]
