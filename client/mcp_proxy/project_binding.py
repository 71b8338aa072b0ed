"""From a working directory to a Project, and from a tool call to a typed daemon call.

The directory is fixed when the proxy starts, the Project when it is first resolved. The daemon
resolves the directory again on every call and refuses when it means another Project by now, so a
running proxy is never retargeted silently.
"""

from __future__ import annotations

import asyncio
from typing import Any

from client.mcp_proxy.daemon_client import DaemonClient
from shared_schema.daemon_contract import (
    ActivateCall,
    AgentScope,
    Binding,
    Empty,
    Hello,
    LoadCall,
    ResolveCall,
    RuntimeMarker,
    StoreCall,
    WorkingDirectory,
    runtime_marker,
)
from shared_schema.directories import Directory
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import new_id
from shared_schema.places import Places
from shared_schema.tool_contract import Activate, Load, Store


class ProjectBinding:
    """The Project of one directory; resolved once, when the daemon first can."""

    def __init__(self, daemon: DaemonClient, marker: RuntimeMarker, directory: Directory) -> None:
        self._daemon = daemon
        self._marker = marker
        self._directory = WorkingDirectory(path=directory.path, main_checkout=directory.main_checkout)
        self._scope: AgentScope | None = None
        self._resolving = asyncio.Lock()

    async def scope(self) -> AgentScope:
        """Return what an agent's call names.

        Raises ``agent_runtime_mismatch`` before anything is asked of a daemon of another release,
        ``project_binding_not_found`` and ``daemon_unavailable``.
        """
        if self._scope is None:
            async with self._resolving:
                if self._scope is None:
                    self._scope = await self._resolve()
        return self._scope

    async def _resolve(self) -> AgentScope:
        hello = Hello.model_validate(await self._daemon.call("hello", Empty()))
        if hello.marker != self._marker:
            raise runtime_mismatch(proxy=self._marker, daemon=hello.marker)
        found = await self._daemon.call("resolve_binding", ResolveCall(directory=self._directory))
        return AgentScope(
            project_id=Binding.model_validate(found).project_id,
            directory=self._directory,
        )


class MemoryCalls:
    """The three calls an agent can make; nothing else reaches the daemon."""

    def __init__(self, daemon: DaemonClient, binding: ProjectBinding) -> None:
        self._daemon = daemon
        self._binding = binding

    async def resolve(self) -> None:
        """Resolve the binding ahead of the first call; raises what that call would."""
        await self._binding.scope()

    async def __call__(self, operation: Activate | Load | Store) -> dict[str, Any]:
        """Return the domain object of the daemon's answer."""
        scope = await self._binding.scope()
        match operation:
            case Activate():
                activate = ActivateCall(scope=scope, activate=operation)
                return await self._daemon.call("activate_memory", activate)
            case Load():
                load = LoadCall(scope=scope, load=operation)
                return await self._daemon.call("load_memory", load)
            case Store():
                # The id makes the write safe to send again when its answer was lost.
                store = StoreCall(scope=scope, store=operation, operation_id=new_id("lop"))
                return await self._daemon.call("store_draft_operation", store)


def connect(places: Places, directory: Directory) -> MemoryCalls:
    """Return the calls of a proxy that was started in ``directory``; asks nothing of the daemon yet."""
    marker = runtime_marker()
    daemon = DaemonClient(places, marker)
    return MemoryCalls(daemon, ProjectBinding(daemon, marker, directory))


def runtime_mismatch(*, proxy: RuntimeMarker, daemon: RuntimeMarker) -> InterleafError:
    """Return ``agent_runtime_mismatch`` with both identities and the remedy."""
    return InterleafError(
        ErrorCode.AGENT_RUNTIME_MISMATCH,
        "The agent's integration and the daemon come from different builds; nothing was executed. "
        "Run: interleaf daemon restart. Then reconnect the integration, or restart the host.",
        details={"proxy": proxy.model_dump(), "daemon": daemon.model_dump()},
    )
