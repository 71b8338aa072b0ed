"""The ``load`` operation of the memory tool: complete resources by id or exact path."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final, Never

from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.near_paths import near_paths
from client.services.project_memory import ProjectMemory
from client.store.unit_of_work import Store
from shared_schema import tool_contract
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import is_resource_id
from shared_schema.tool_contract import LoadAnswer, LoadedResource, OpenDraft

_SUGGESTED_FOR: Final = 10
"""Missing targets that get suggestions; more of them are no typing errors."""


class LoadMemory:
    """Carries out ``load``; one object serves all threads."""

    def __init__(self, store: Store, memory: ProjectMemory) -> None:
        self._store = store
        self._memory = memory

    def __call__(self, project_id: str, load: tool_contract.Load) -> LoadAnswer:
        """Return the resources in the order of the request, each once.

        Raises ``memory_resource_not_found`` when any is missing: ``details.missing`` lists them,
        ``details.suggestions`` has near paths for each, ``details.adapted`` maps a hidden Org id to
        the adaptation that replaces it, and ``details.adapted_by`` is that adaptation when it is
        the only one missing.
        """
        memory = self._memory.get(project_id)
        found: dict[str, LoadedResource] = {}
        missing: list[str] = []
        known = load.knownHashes or {}
        for asked in load.ids:
            item = find_item(memory, asked)
            if item is None:
                missing.append(asked)
            elif item.resource_id not in found:
                known_hash = known.get(asked, known.get(item.resource_id))
                found[item.resource_id] = loaded(item, known_hash)
        if missing:
            _refuse(memory, missing)
        return LoadAnswer(resources=list(found.values()))


def find_item(memory: EffectiveMemory, asked: str) -> EffectiveResource | None:
    """Return the visible resource with this id, else with exactly this path, else None."""
    return memory.by_id.get(asked) or memory.by_path.get(unicodedata.normalize("NFC", asked))


def loaded(item: EffectiveResource, known_hash: str | None = None) -> LoadedResource:
    """Return a resource as a reader gets it, without its text when the reader has that already."""
    changed = known_hash != item.content_hash
    draft = item.draft
    return LoadedResource(
        resource_id=item.resource_id,
        scope=item.scope,
        path=item.path,
        title=item.title,
        description=item.description,
        content_hash=item.content_hash,
        changed=changed,
        provenance=item.provenance,
        org_source=item.org_source,
        draft=OpenDraft(
            draft_id=draft.draft_id, freshness=draft.freshness, reconciliation=draft.reconciliation
        )
        if draft
        else None,
        content=item.body if changed else None,
    )


def missing_details(memory: EffectiveMemory, missing: list[str]) -> Mapping[str, object]:
    """Return the details of ``memory_resource_not_found``; paths only, no content."""
    adapted = {asked: memory.adapted_by[asked] for asked in missing if asked in memory.adapted_by}
    spelled = [asked for asked in missing if not is_resource_id(asked)][:_SUGGESTED_FOR]
    suggestions: dict[str, list[str]] = {asked: [] for asked in missing}
    if spelled:
        suggestions |= near_paths(spelled, memory.by_path)
    details: dict[str, object] = {"missing": missing, "suggestions": suggestions}
    if adapted:
        details["adapted"] = adapted
        if len(missing) == 1:
            details["adapted_by"] = adapted[missing[0]]
    return details


def _refuse(memory: EffectiveMemory, missing: list[str]) -> Never:
    details = missing_details(memory, missing)
    if "adapted_by" in details:
        message = f"This Project uses an adaptation instead; load its id: {details['adapted_by']}."
    else:
        message = (
            f"{len(missing)} of the ids or paths asked for name nothing here, so nothing was loaded. "
            "See details.suggestions, or activate to find them."
        )
    raise InterleafError(ErrorCode.MEMORY_RESOURCE_NOT_FOUND, message, details=details)
