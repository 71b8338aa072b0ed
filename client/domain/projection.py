"""From published resources and Drafts to Effective Memory.

A pure function of the published state and this machine's Drafts::

    published resources of the installed commit
      → the newest Draft that lies over each: its own base state, its operations applied
      → less the Org sources that an adaptation replaces (by link, never by equal path)
      → by resource id

Nothing is patched in place: `project` computes it from everything, `update` computes the same from
a former one and from what changed since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from client.domain.effective_memory import (
    DraftRef,
    EffectiveMemory,
    EffectiveResource,
    regrouped,
    source_of,
)
from client.domain.local_draft import BrokenDraft, LocalDraft
from client.domain.persistent_map import PersistentMap
from shared_schema.memory import OrgSource, Provenance, PublishedResource, ResourceState, Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.rules.text import title_of


@dataclass(frozen=True, slots=True)
class Installed:
    """Which commit of a Project is installed on this machine."""

    project_id: str
    commit_id: str | None
    seq: int


def project(
    installed: Installed, published: Iterable[PublishedResource], drafts: Iterable[LocalDraft]
) -> EffectiveMemory:
    """Compute Effective Memory from everything. ``drafts`` come in order of creation; those that do
    not lie over this commit are left out.
    """
    candidates, broken = _candidates(installed, published, drafts)
    adapted = {item.adapts for item in candidates.values()}
    hidden = {key: item for key, item in candidates.items() if key in adapted and _hideable(item)}
    visible = ((key, item) for key, item in candidates.items() if key not in hidden)
    return EffectiveMemory(
        installed.project_id,
        installed.commit_id,
        PersistentMap(visible),
        PersistentMap(hidden.items()),
        broken,
    )


def update(
    memory: EffectiveMemory,
    installed: Installed,
    changed: Collection[str],
    published: Iterable[PublishedResource],
    drafts: Iterable[LocalDraft],
) -> EffectiveMemory:
    """Compute the Effective Memory that follows ``memory``, in time that hardly grows with its size.

    ``changed`` are the resources that may differ; ``published`` and ``drafts`` hold everything of
    those and nothing else. When another commit was installed, every resource with a Draft belongs
    to them, because freshness depends on the commit. The result equals that of `project`.
    """
    candidates, broken_now = _candidates(installed, published, drafts)
    broken = {draft: resource for draft, resource in memory.broken.items() if resource not in changed}
    # What adapts is never hidden, so all adaptations are among what was and what will be visible.
    former = [item for key in changed if (item := memory.by_id.get(key)) is not None]
    adaptations = regrouped(memory.adaptations, former, candidates.values(), source_of)
    visible: dict[str, EffectiveResource | None] = {}
    hidden: dict[str, EffectiveResource | None] = {}
    for resource_id in {*changed, *adaptations.differing(memory.adaptations)}:
        if resource_id in changed:
            item = candidates.get(resource_id)
        else:
            item = memory.by_id.get(resource_id) or memory.hidden.get(resource_id)
        hides = resource_id in adaptations and _hideable(item)
        visible[resource_id], hidden[resource_id] = (None, item) if hides else (item, None)
    return memory.followed_by(installed.commit_id, visible, hidden, broken | broken_now)


def _candidates(
    installed: Installed, published: Iterable[PublishedResource], drafts: Iterable[LocalDraft]
) -> tuple[dict[str, EffectiveResource], dict[str, str]]:
    """Return every item before adaptations hide their sources, and the Drafts left out."""
    base = {resource.resource_id: resource for resource in published}
    candidates = {resource_id: _from_published(resource) for resource_id, resource in base.items()}
    broken: dict[str, str] = {}
    for draft in drafts:
        if not draft.overlays(installed.seq):
            continue
        try:
            state = draft.state()
        except BrokenDraft:
            broken[draft.draft_id] = draft.resource_id
            continue
        if state.exists:
            candidates[draft.resource_id] = _from_draft(installed, draft, state, base.get(draft.resource_id))
        else:
            candidates.pop(draft.resource_id, None)
    return candidates, broken


def _from_published(resource: PublishedResource) -> EffectiveResource:
    return EffectiveResource(
        resource_id=resource.resource_id,
        scope=resource.scope,
        path=resource.path,
        title=title_of(resource.body, resource.path),
        description=resource.description,
        body=resource.body,
        content_hash=resource.content_hash,
        provenance=Provenance.AUTHORITY,
        org_source=resource.org_source,
    )


def _from_draft(
    installed: Installed, draft: LocalDraft, state: ResourceState, published: PublishedResource | None
) -> EffectiveResource:
    reference = DraftRef(
        draft_id=draft.draft_id,
        freshness=draft.freshness(authority_commit(installed, draft, published)),
        reconciliation=draft.reconciliation,
    )
    return EffectiveResource(
        resource_id=draft.resource_id,
        scope=draft.scope,
        path=state.path,
        title=title_of(state.body, state.path),
        description=state.description,
        body=state.body,
        content_hash=content_hash(state.body),
        provenance=Provenance.DRAFT,
        org_source=_source_of_draft(draft, state, published),
        draft=reference if draft.active else None,
    )


def authority_commit(
    installed: Installed, draft: LocalDraft, published: PublishedResource | None
) -> str | None:
    """Return the newest commit of the Draft's target authority that this machine knows of.

    For Org scope that is the commit of the reference in the carrying Project; a machine does not
    follow the Org ref itself.
    """
    if draft.scope is Scope.PROJECT:
        return installed.commit_id
    if published is not None and published.org_source is not None:
        return published.org_source.commit_id
    return draft.base_commit


def _source_of_draft(
    draft: LocalDraft, state: ResourceState, published: PublishedResource | None
) -> OrgSource | None:
    if draft.scope is Scope.PROJECT:
        return state.org_source
    if not draft.active and draft.merged_commit is not None:
        return OrgSource(resource_id=draft.resource_id, commit_id=draft.merged_commit)
    return published.org_source if published is not None else None


def _hideable(resource: EffectiveResource | None) -> bool:
    # A Project's own resource is never hidden, whatever a link says: no loop can hide everything.
    return resource is not None and resource.scope is Scope.ORG
