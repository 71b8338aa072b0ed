"""Effective Memory as a person's command line reads it."""

from __future__ import annotations

from client.domain.effective_memory import EffectiveResource
from client.services.bind_directories import find_project
from client.services.load_memory import find_item, loaded, missing_details
from client.services.project_memory import ProjectMemory
from client.store.unit_of_work import Store
from shared_schema.daemon_contract import MemoryItem, MemoryList
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.tool_contract import LoadedResource


class ReadMemory:
    """Lists and shows what a Project shows on this machine; Projects by id or name."""

    def __init__(self, store: Store, memory: ProjectMemory) -> None:
        self._store = store
        self._memory = memory

    def list(self, project: str) -> MemoryList:
        """Return every visible resource by path, without bodies."""
        memory = self._memory.get(self._project_id(project))
        items = sorted(memory.resources, key=lambda item: (item.path, item.resource_id))
        return MemoryList(
            project_id=memory.project_id,
            commit_id=memory.commit_id,
            hash=memory.hash,
            resources=[_item(resource) for resource in items],
        )

    def show(self, project: str, resource: str) -> LoadedResource:
        """Return one resource by id or exact path; ``memory_resource_not_found`` suggests others."""
        memory = self._memory.get(self._project_id(project))
        item = find_item(memory, resource)
        if item is None:
            raise InterleafError(
                ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
                "The Project shows no resource with this id or path. List them with: interleaf memory list",
                details=missing_details(memory, [resource]),
            )
        return loaded(item)

    def _project_id(self, text: str) -> str:
        with self._store.read() as uow:
            return find_project(uow, text).project_id


def _item(resource: EffectiveResource) -> MemoryItem:
    return MemoryItem(
        resource_id=resource.resource_id,
        scope=resource.scope,
        path=resource.path,
        title=resource.title,
        description=resource.description,
        content_hash=resource.content_hash,
        provenance=resource.provenance,
        org_source=resource.org_source,
        draft_id=resource.draft.draft_id if resource.draft else None,
    )
