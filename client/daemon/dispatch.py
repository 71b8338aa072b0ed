"""From raw bytes of a call to the service that answers it.

Order, the same for every method: the caller's build, then the form of the call, then (for an
agent) the directory's Project, then the service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from shared_schema.daemon_contract import (
    AGENT_METHODS,
    METHODS,
    UNMARKED_METHODS,
    AgentScope,
    RuntimeMarker,
)
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract
from shared_schema.tool_contract import invalid_arguments

Handler = Callable[[Any], Contract]
"""Takes the method's parameters and returns its answer."""
Verify = Callable[[AgentScope], None]
"""Raises when an agent's directory does not mean its Project any more."""


class Dispatcher:
    """Knows every method of the local protocol and what answers it."""

    def __init__(self, marker: RuntimeMarker, handlers: Mapping[str, Handler], verify: Verify) -> None:
        if handlers.keys() != METHODS.keys():
            wrong = ", ".join(sorted(handlers.keys() ^ METHODS.keys()))
            raise ValueError(f"handlers and protocol differ in: {wrong}")
        self._marker = marker
        self._handlers = dict(handlers)
        self._verify = verify

    def call(self, method: str, body: bytes) -> bytes:
        """Execute one call and return the answer's JSON, ``{"result": …}``.

        Raises:
            InterleafError: ``not_found`` for an unknown method, ``agent_runtime_mismatch``,
                ``invalid_arguments``, and whatever the service raises.
        """
        if method not in METHODS:
            raise InterleafError(ErrorCode.NOT_FOUND, "There is no such method in the local protocol.")
        if method not in UNMARKED_METHODS:
            self._check_marker(body)
        params = _parse(method, body)
        if method in AGENT_METHODS:
            self._verify(params.scope)
        answer = self._handlers[method](params)
        return _encode(method, answer)

    def _check_marker(self, body: bytes) -> None:
        try:
            given = _Marked.model_validate_json(body).marker
        except ValidationError as error:
            raise invalid_arguments(error) from None
        try:
            marker = RuntimeMarker.model_validate(given)
        except ValidationError:
            marker = None
        if marker == self._marker:
            return
        raise InterleafError(
            ErrorCode.AGENT_RUNTIME_MISMATCH,
            "The caller and the daemon come from different builds; nothing was executed. "
            "Run: interleaf daemon restart. Then reconnect the integration, or restart the host.",
            details={
                "proxy": None if marker is None else marker.model_dump(),
                "daemon": self._marker.model_dump(),
            },
        )


class _Marked(BaseModel):
    """The marker alone: it is judged before anything else of the call is looked at."""

    model_config = ConfigDict(extra="ignore")

    marker: Any = None


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    marker: Any = None


@cache
def _call_model(method: str) -> type[_Call]:
    parameters = METHODS[method][0]
    return create_model(f"Call_{method}", __base__=_Call, params=(parameters, ...))


def _parse(method: str, body: bytes) -> Any:
    try:
        return _call_model(method).model_validate_json(body).params  # type: ignore[attr-defined]  # the field is added by create_model
    except ValidationError as error:
        raise invalid_arguments(error) from None


_AS_IN_THE_TOOL: Final = frozenset(name for name, (_, answer) in METHODS.items() if answer is None)
"""Methods whose answer follows the tool contract: what is not there is left out."""


def _encode(method: str, answer: Contract) -> bytes:
    text = answer.model_dump_json(exclude_none=method in _AS_IN_THE_TOOL)
    return b'{"result":' + text.encode() + b"}"
