"""The wire: JSON-RPC lines on stdin and stdout, for as long as the host lives.

It differs from the SDK's stdio transport where hosts and scripts need more:

* a line that is no JSON-RPC message is answered with the JSON-RPC error for it, not dropped;
* after the end of stdin, requests already read get a moment to be answered, so that
  ``printf … | interleaf mcp serve`` works;
* the parent's death ends the proxy even when somebody else still holds stdin open.

Standard output carries protocol only: while serving, descriptor 1 points at stderr.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from client.mcp_proxy import PARENT

DRAIN_SECONDS: Final = 0.5
"""How long requests read before the end of stdin may still be answered."""
PARENT_POLL_SECONDS: Final = 0.4

_Incoming = SessionMessage | Exception


class _Outstanding:
    """Requests read and not yet answered."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._idle = anyio.Event()
        self._idle.set()

    def read(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            if not self._ids:
                self._idle = anyio.Event()
            self._ids.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))

    def written(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._settle(message.id)

    async def drained(self) -> None:
        with anyio.move_on_after(DRAIN_SECONDS):
            await self._idle.wait()

    def _settle(self, request_id: object) -> None:
        if isinstance(request_id, int | str):
            self._ids.discard(request_id)
        if not self._ids:
            self._idle.set()


@asynccontextmanager
async def wire(
    source: int, sink: int
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[_Incoming], MemoryObjectSendStream[SessionMessage]]]:
    """Serve JSON-RPC lines on two descriptors; the read stream ends with stdin or the parent."""
    to_server, incoming = anyio.create_memory_object_stream[_Incoming](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    refusals = outgoing.clone()
    outstanding = _Outstanding()
    lines = asyncio.Queue[bytes | None]()

    async def read() -> None:
        async with to_server, refusals:
            while (line := await lines.get()) is not None:
                message = parse_line(line)
                if isinstance(message, types.JSONRPCError):
                    await refusals.send(SessionMessage(message))
                elif message is not None:
                    outstanding.read(message)
                    await to_server.send(SessionMessage(message))
            await outstanding.drained()

    async def write() -> None:
        async with from_server:
            async for item in from_server:
                data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                # A host that stopped reading blocks this thread, never the loop.
                await anyio.to_thread.run_sync(_write_all, sink, data, abandon_on_cancel=True)
                outstanding.written(item.message)

    start_reading(source, lines)
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with anyio.create_task_group() as group:
            group.start_soon(_contained, read)
            group.start_soon(_contained, write)
            group.start_soon(_end_with_parent, lines)
            try:
                yield incoming, outgoing
            finally:
                group.cancel_scope.cancel()


async def _contained(task: Callable[[], Awaitable[None]]) -> None:
    """Run one side; a closed peer or pipe is the end of the connection and no failure."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        await task()


def start_reading(source: int, lines: asyncio.Queue[bytes | None]) -> None:
    """Read lines in a daemon thread: it may be blocked for ever when the process has to end."""
    loop = asyncio.get_running_loop()

    def pump() -> None:
        with suppress(RuntimeError, OSError):  # the loop is closed, or the descriptor is
            with os.fdopen(source, "rb", closefd=False) as stream:
                for line in stream:
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=pump, name="stdin", daemon=True).start()


def parse_line(line: bytes) -> types.JSONRPCMessage | None:
    """Return the message, the JSON-RPC error that answers a malformed line, or None for a blank one."""
    if not line.strip():
        return None
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _refusal(line)


def _refusal(line: bytes) -> types.JSONRPCError:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        error = types.ErrorData(code=types.PARSE_ERROR, message="Parse error: the line is not JSON")
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
    request_id = found.get("id") if isinstance(found, dict) else None
    if isinstance(request_id, bool) or not isinstance(request_id, int | str) or not _encodable(request_id):
        request_id = None
    error = types.ErrorData(code=types.INVALID_REQUEST, message="Invalid request: no JSON-RPC 2.0 message")
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _encodable(request_id: int | str) -> bool:
    """Tell whether an id can go out again: ``json`` lets lone surrogates in."""
    try:
        str(request_id).encode()
    except UnicodeEncodeError:
        return False
    except ValueError:  # an integer with more digits than Python converts
        return False
    return True


def _write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]


async def _end_with_parent(lines: asyncio.Queue[bytes | None]) -> None:
    """Put the end of input when the parent is gone.

    Linux tells it through a descriptor, without polling. Windows keeps no parent relation; there
    the closed pipe has to do.
    """
    if sys.platform == "win32":
        return
    if sys.platform == "linux":
        with suppress(OSError):  # no such process any more, or a kernel without the call
            descriptor = os.pidfd_open(PARENT)
            if os.getppid() == PARENT:
                await anyio.wait_readable(descriptor)
    while os.getppid() == PARENT:
        await anyio.sleep(PARENT_POLL_SECONDS)
    lines.put_nowait(None)


def take_standard_streams() -> tuple[int, int]:
    """Move stdin and stdout to private descriptors, so that no stray print reaches the protocol."""
    source, sink = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return source, sink
