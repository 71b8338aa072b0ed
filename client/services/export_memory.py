"""What a Project shows, page by page, with its texts: published alone, or with this machine's Drafts."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.projection import Installed, project
from client.services.bind_directories import find_project
from client.services.project_memory import ProjectMemory, readable_project
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.limits import MIB
from shared_schema.memory import Provenance
from shared_schema.transfer.manifest import ExportedResource
from shared_schema.transfer_contract import ExportCall, ExportedMemory, ExportedText

PAGE: Final = 200
PAGE_CHARACTERS: Final = 4 * MIB
"""Of the texts of one page, besides its last one."""


class ExportMemory:
    """Carries out ``export_memory``; one object serves all threads."""

    def __init__(self, store: Store, memory: ProjectMemory) -> None:
        self._store = store
        self._memory = memory

    def __call__(self, call: ExportCall) -> ExportedMemory:
        """Return a page of one state of the Project.

        Raises ``not_found``, ``project_access_lost``, ``project_not_synced``, and ``version_conflict``
        when the Project shows another state than ``call.state``.
        """
        row, memory = self._read(call)
        if call.state is not None and call.state != memory.hash:
            raise InterleafError(
                ErrorCode.VERSION_CONFLICT, "The Project changed while it was exported. Export it again."
            )
        start = bisect_right(memory.resources, call.after, key=lambda item: item.resource_id)
        page = _page(memory.resources[start:])
        return ExportedMemory(
            project_id=row.project_id,
            name=row.name,
            commit_id=memory.commit_id,
            state=memory.hash,
            documents=[ExportedText(resource=_exported(item), body=item.body) for item in page],
            total=len(memory.resources),
            complete=start + len(page) == len(memory.resources),
        )

    def _read(self, call: ExportCall) -> tuple[ProjectRow, EffectiveMemory]:
        with self._store.read() as uow:
            row = readable_project(uow, find_project(uow, call.project).project_id)
            if not call.drafts:
                installed = Installed(row.project_id, row.installed_commit, row.installed_seq)
                return row, project(installed, uow.published.all(row.project_id), ())
        return row, self._memory.get(row.project_id)


def _page(resources: tuple[EffectiveResource, ...]) -> list[EffectiveResource]:
    page: list[EffectiveResource] = []
    characters = 0
    for item in resources[:PAGE]:
        page.append(item)
        characters += len(item.body)
        if characters >= PAGE_CHARACTERS:
            break
    return page


def _exported(item: EffectiveResource) -> ExportedResource:
    drafted = item.provenance is Provenance.DRAFT and item.draft is not None
    return ExportedResource(
        resource_id=item.resource_id,
        path=item.path,
        scope=item.scope,
        description=item.description,
        content_hash=item.content_hash,
        org_source=item.org_source,
        draft_id=item.draft.draft_id if drafted and item.draft is not None else None,
    )
