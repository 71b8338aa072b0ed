"""Calls to the resident daemon over its local socket; the proxy's only door to any data."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx

from shared_schema.daemon_contract import RuntimeMarker
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.local_address import LocalAddress, find_address, unavailable
from shared_schema.memory import Contract
from shared_schema.places import Places

CONNECT_SECONDS: Final = 2.0
ANSWER_SECONDS: Final = 45.0
"""Longer than the daemon's own deadline for an activation, so that its answer says what happened."""
RETURN_SECONDS: Final = 2.0
"""How long a call whose answer was lost waits for the daemon to be back."""
_PAUSE: Final = 0.05

_LOST = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)
_ABSENT = (httpx.ConnectError, httpx.ConnectTimeout)


class DaemonClient:
    """Sends typed calls; every failure is an ``InterleafError``. Not bound to one daemon process."""

    def __init__(
        self,
        places: Places,
        marker: RuntimeMarker,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        return_seconds: float = RETURN_SECONDS,
    ) -> None:
        self._places = places
        self._marker = marker.model_dump_json()
        self._transport = transport
        self._return_seconds = return_seconds
        self._address: LocalAddress | None = None
        self._client: httpx.AsyncClient | None = None

    async def call(self, method: str, params: Contract) -> dict[str, Any]:
        """Return the ``result`` of ``/rpc/<method>``.

        A call whose answer was lost is sent once more when the daemon is back; so it must be safe
        to repeat, as reads are, and writes that carry their operation id.

        Raises what the daemon answered, or ``daemon_unavailable``.
        """
        body = f'{{"marker":{self._marker},"params":{params.model_dump_json(exclude_none=True)}}}'.encode()
        try:
            response = await self._send(method, body)
        except _ABSENT:
            raise unavailable("The daemon is not running") from None
        except httpx.TimeoutException:
            raise _no_answer() from None
        except _LOST:
            response = await self._send_again(method, body)
        return _result(response)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _send(self, method: str, body: bytes) -> httpx.Response:
        client = await self._connected()
        headers = {"Content-Type": "application/json"}
        return await client.post(f"/rpc/{method}", content=body, headers=headers)

    async def _send_again(self, method: str, body: bytes) -> httpx.Response:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._return_seconds
        while True:
            try:
                return await self._send(method, body)
            except (*_ABSENT, InterleafError):
                if loop.time() >= give_up_at:
                    raise _lost() from None
                await asyncio.sleep(_PAUSE)
            except httpx.TransportError:
                raise _lost() from None

    async def _connected(self) -> httpx.AsyncClient:
        """Return a client for the present address; another port or token means another daemon."""
        if self._transport is not None:
            address = LocalAddress(socket="in process")
        else:
            address = find_address(self._places)
        if self._client is None or address != self._address:
            await self.aclose()
            self._address = address
            self._client = httpx.AsyncClient(
                transport=self._transport or httpx.AsyncHTTPTransport(uds=address.socket),
                base_url=address.base_url,
                headers=address.headers,
                timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
                # A proxy of the environment has no business on a local socket.
                trust_env=False,
            )
        return self._client


def _result(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = json.loads(response.content)
        if "error" in answer:
            raise InterleafError.from_wire(answer["error"])
        result: dict[str, Any] = answer["result"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InterleafError(
            ErrorCode.INTERNAL_ERROR,
            f"The daemon's answer (status {response.status_code}) was not understood. "
            "Run: interleaf daemon restart",
        ) from None
    return result


def _no_answer() -> InterleafError:
    return InterleafError(
        ErrorCode.DAEMON_UNAVAILABLE,
        f"The daemon did not answer within {ANSWER_SECONDS:.0f} seconds; a write may still have been made. "
        "If it stays like this, run: interleaf daemon restart",
        details={"outcome": "unknown"},
    )


def _lost() -> InterleafError:
    return InterleafError(
        ErrorCode.DAEMON_UNAVAILABLE,
        "The daemon stopped before it answered; a write may or may not have been made. "
        "Start it with: interleaf daemon start. Then load the resource before you write again.",
        details={"outcome": "unknown"},
    )
