"""Typed calls from this machine's command line to the daemon."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx
from pydantic import ValidationError
from pydantic_core import from_json

from client.daemon.local_server import connect
from shared_schema.daemon_contract import Hello, runtime_marker
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.local_address import USE_PORT, unavailable
from shared_schema.memory import Contract
from shared_schema.places import Places

ANSWER_SECONDS: Final = 120.0

Answer = TypeVar("Answer", bound=Contract)


class DaemonConnection:
    """One connection to the running daemon; a context manager."""

    def __init__(self, places: Places, *, timeout: float = ANSWER_SECONDS, use_port: bool = USE_PORT) -> None:
        self._client = connect(places, timeout=timeout, use_port=use_port)
        self._marker = runtime_marker().model_dump_json()

    def call(
        self, method: str, params: Contract, answer: type[Answer], *, timeout: float | None = None
    ) -> Answer:
        """Return the parsed answer of ``/rpc/<method>``.

        ``timeout`` in seconds replaces the connection's own for this call.

        Raises:
            InterleafError: what the daemon answered, or ``daemon_unavailable``.
        """
        body = f'{{"marker":{self._marker},"params":{params.model_dump_json(exclude_none=True)}}}'
        options: Any = {} if timeout is None else {"timeout": timeout}
        try:
            response = self._client.post(f"/rpc/{method}", content=body.encode(), **options)
        except httpx.ConnectError:
            raise unavailable("The daemon is not running") from None
        except httpx.TransportError as error:
            raise unavailable(f"The daemon did not answer ({type(error).__name__})") from None
        return _parse(response, answer)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _parse(response: httpx.Response, answer: type[Answer]) -> Answer:
    try:
        found = from_json(response.content)
        if "error" in found:
            raise InterleafError.from_wire(found["error"])
        # Another build may send what this one does not know; only ``hello`` crosses builds.
        if answer is Hello:
            return answer.model_validate(found["result"])
        return answer.model_validate_json(_result_json(response.content))
    except (ValidationError, ValueError, KeyError, TypeError):
        raise InterleafError(
            ErrorCode.AGENT_RUNTIME_MISMATCH,
            "The daemon's answer was not understood; it comes from another build. "
            "Run: interleaf daemon restart",
        ) from None


def _result_json(content: bytes) -> bytes:
    """Cut the result out of ``{"result":…}``: strict models read enums from JSON, not from objects."""
    return content[len(b'{"result":') : -1]
