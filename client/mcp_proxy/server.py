"""The stdio proxy: one tool, ``memory``, whose calls the resident daemon answers.

Start-up costs what the SDK costs: the daemon's client is imported after the handshake was answered,
and nothing here waits for the daemon, a model or an index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from client.mcp_proxy.guidance import TOOL_DESCRIPTION, instructions
from client.mcp_proxy.stdio import take_standard_streams, wire
from shared_schema import tool_contract
from shared_schema.directories import Directory, bound_directory, canonical_directory, read_guides
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import new_id
from shared_schema.places import Places, find_places
from shared_schema.release import RELEASE

if TYPE_CHECKING:
    from client.mcp_proxy.project_binding import MemoryCalls

Operation = tool_contract.Activate | tool_contract.Load | tool_contract.Store
Calls = Callable[[Operation], Awaitable[dict[str, Any]]]

SETTLE_SECONDS: Final = 0.5
"""Without a request for the tools, the binding is resolved after this long."""
ANSWER_FIRST_SECONDS: Final = 0.02
"""Between the host's request for the tools and the background's start: the answer goes first."""

log = logging.getLogger("interleaf.proxy")


def memory_tool() -> types.Tool:
    """Return the advertised tool."""
    return types.Tool(
        name=tool_contract.TOOL_NAME,
        description=TOOL_DESCRIPTION,
        input_schema=tool_contract.input_schema(),
        output_schema=tool_contract.output_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
        ),
    )


def build_server(
    calls: Calls, *, guidance: str, on_listed: Callable[[], None] = lambda: None
) -> Server[dict[str, Any]]:
    """Return the SDK's server with the one tool; ``calls`` executes a validated operation."""
    listing = types.ListToolsResult(tools=[memory_tool()])

    async def list_tools(
        _context: ServerRequestContext[dict[str, Any]], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        on_listed()
        return listing

    async def call_tool(
        _context: ServerRequestContext[dict[str, Any]], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name != tool_contract.TOOL_NAME:
            raise MCPError(code=types.INVALID_PARAMS, message="Unknown tool: the only one is memory")
        return await answer(calls, params.arguments)

    return Server(
        "interleaf",
        version=RELEASE,
        title="Interleaf",
        instructions=guidance,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def answer(calls: Calls, arguments: dict[str, Any] | None) -> types.CallToolResult:
    """Validate, execute and wrap; every failure is a result that the model can read."""
    try:
        operation = tool_contract.parse_arguments({} if arguments is None else arguments)
        return _wrap(await calls(operation), is_error=False)
    except InterleafError as error:
        return _wrap({"error": error.as_wire()}, is_error=True)
    except Exception as error:  # noqa: BLE001 - the model can read a result, never a broken call
        incident = new_id("evt")
        # No traceback: an exception's text may quote memory.
        log.error("%s: %s in a memory call", incident, type(error).__name__)  # noqa: TRY400
        failure = InterleafError(
            ErrorCode.INTERNAL_ERROR,
            f"The integration failed; its standard error names {incident}. Try once more.",
            details={"id": incident},
        )
        return _wrap({"error": failure.as_wire()}, is_error=True)


def _wrap(value: dict[str, Any], *, is_error: bool) -> types.CallToolResult:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=value, is_error=is_error
    )


class LateCalls:
    """The daemon's client, imported and connected behind the handshake."""

    def __init__(self, connect: Callable[[], MemoryCalls]) -> None:
        self._connect = connect
        self._calls: MemoryCalls | None = None
        self._connecting = asyncio.Lock()
        self._handshake_over = asyncio.Event()

    async def __call__(self, operation: Operation) -> dict[str, Any]:
        """Execute one operation."""
        calls = await self._prepared()
        return await calls(operation)

    def handshake_is_over(self) -> None:
        """Let the background begin: the host has what it waits for."""
        self._handshake_over.set()

    async def resolve_in_background(self) -> None:
        """Resolve the binding once the host has its tools; a failure shows at the first call."""
        with anyio.move_on_after(SETTLE_SECONDS):
            await self._handshake_over.wait()
        await anyio.sleep(ANSWER_FIRST_SECONDS)
        calls = await self._prepared()
        with suppress(InterleafError):
            await calls.resolve()

    async def _prepared(self) -> MemoryCalls:
        async with self._connecting:
            if self._calls is None:
                self._calls = await anyio.to_thread.run_sync(self._connect, abandon_on_cancel=True)
        return self._calls


def _connect(places: Places, directory: Directory) -> MemoryCalls:
    # Imported here and not above: what it brings would add a sixth to the time until the handshake.
    from client.mcp_proxy.project_binding import connect

    return connect(places, directory)


def guide_path(places: Places, directory: Directory) -> str | None:
    """Return the configured guide of the directory's Project, from the daemon's mirror on disk."""
    guides = read_guides(places.guides)
    bound = bound_directory(directory, guides)
    return None if bound is None else guides[bound]


async def _serve(places: Places, directory: Directory) -> None:
    calls = LateCalls(partial(_connect, places, directory))
    server = build_server(
        calls,
        guidance=instructions(guide_path(places, directory)),
        on_listed=calls.handshake_is_over,
    )
    source, sink = take_standard_streams()
    async with anyio.create_task_group() as group, wire(source, sink) as (incoming, outgoing):
        group.start_soon(calls.resolve_in_background)
        await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


def serve(project_root: Path | None = None) -> NoReturn:
    """Serve until stdin ends or the parent dies, then end the process.

    It leaves at once and without Python's clean-up, which would wait for a thread that is blocked
    in reading stdin; this process owns nothing that needs one.
    """
    # The SDK reports a broken line or an unknown method as a warning; that is the host's matter.
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="interleaf mcp: %(message)s")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    status = 0
    try:
        asyncio.run(_serve(find_places(), canonical_directory(project_root or Path.cwd())))
    except Exception:  # noqa: BLE001 - the last line before the process ends
        log.critical("the integration ended: %s", sys.exc_info()[1])
        status = 1
    sys.stderr.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``interleaf mcp serve``; kept apart from the command line's framework to start fast."""
    parser = argparse.ArgumentParser(
        prog="interleaf mcp serve", description="Serve the memory tool on standard input and output."
    )
    parser.add_argument(
        "--project-root",
        type=Path,
        metavar="DIR",
        help="the directory whose Project is served (default: the current directory)",
    )
    parser.add_argument("--toolset", choices=["memory"], default="memory", help="which tools to offer")
    given = parser.parse_args(arguments)
    root: Path | None = given.project_root
    if root is not None and not root.is_dir():
        parser.error(f"--project-root: {root} is no directory")
    serve(root)
