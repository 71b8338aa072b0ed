"""Effective Memory: what one Project shows an agent on one machine.

A pure function of the published state and this machine's Drafts::

    published resources of the installed commit
      → the newest Draft that lies over each: its own base state, its operations applied
      → less the Org sources that an adaptation replaces (by link, never by equal path)
      → by resource id

Nothing is patched in place: `project` computes it from everything, `update` computes the same from
a former one and from what changed since.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from client.domain.local_draft import BrokenDraft, LocalDraft
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import OrgSource, Provenance, PublishedResource, ResourceState, Scope
from shared_schema.rules.hashing import canonical_json, content_hash
from shared_schema.rules.text import title_of

_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class DraftRef:
    """The Draft behind an item, as a reader sees it."""

    draft_id: str
    freshness: Freshness
    reconciliation: Reconciliation


@dataclass(frozen=True)
class EffectiveResource:
    """One visible resource, with the text that a reader gets."""

    resource_id: str
    scope: Scope
    path: str
    title: str
    description: str
    body: str
    content_hash: str
    provenance: Provenance
    org_source: OrgSource | None = None
    draft: DraftRef | None = None
    """The open or submitted Draft; none on a merged one that is not pulled yet."""

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 over all that a reader can see; the content hash stands for the body."""
        source, draft = self.org_source, self.draft
        visible = [
            self.resource_id,
            self.scope.value,
            self.path,
            self.title,
            self.description,
            self.content_hash,
            self.provenance.value,
            [source.resource_id, source.commit_id] if source else None,
            [draft.draft_id, draft.freshness.value, draft.reconciliation.value] if draft else None,
        ]
        return hashlib.sha256(canonical_json(visible)).digest()

    @property
    def adapts(self) -> str | None:
        """The Org resource that this one replaces in its Project, if it is an adaptation."""
        return self.org_source.resource_id if self.org_source and self.scope is Scope.PROJECT else None


@dataclass(frozen=True)
class EffectiveMemory:
    """The visible resources of one Project, ordered by resource id."""

    project_id: str
    commit_id: str | None
    resources: tuple[EffectiveResource, ...]
    adapted_by: Mapping[str, str] = field(default_factory=dict)
    """Org source id → id of the adaptation that replaces it, whether or not the source is hidden
    here or already left out by the server."""
    hidden: Mapping[str, EffectiveResource] = field(default_factory=dict)
    """What adaptations hide, by id; it comes back when its adaptation goes."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Draft that could not be applied → its resource."""

    @property
    def broken_drafts(self) -> tuple[str, ...]:
        """Drafts that could not be applied; left out, never fatal."""
        return tuple(sorted(self.broken))

    @cached_property
    def hash(self) -> str:
        """``sha256:…`` over the Project, the installed commit and everything a reader can see."""
        digest = hashlib.sha256(canonical_json([self.project_id, self.commit_id]))
        digest.update(b"".join(resource.digest for resource in self.resources))
        return f"sha256:{digest.hexdigest()}"

    @cached_property
    def by_id(self) -> Mapping[str, EffectiveResource]:
        """Visible resources by id."""
        return {resource.resource_id: resource for resource in self.resources}

    @cached_property
    def by_path(self) -> Mapping[str, EffectiveResource]:
        """Visible resources by exact path.

        Where somebody published the path of a local Draft meanwhile, the Draft is named, then the
        Project's own resource, then the one with the smaller id.
        """
        found: dict[str, EffectiveResource] = {}
        for resource in self.resources:
            if (other := found.get(resource.path)) is None or _rank(resource) < _rank(other):
                found[resource.path] = resource
        return found

    @cached_property
    def _adaptations(self) -> Mapping[str, tuple[str, ...]]:
        return _by_source(self.resources)


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
    by_source = _by_source(candidates.values())
    hidden = {source: candidates.pop(source) for source in by_source if _hideable(candidates.get(source))}
    return EffectiveMemory(
        project_id=installed.project_id,
        commit_id=installed.commit_id,
        resources=tuple(candidates[resource_id] for resource_id in sorted(candidates)),
        adapted_by={source: _foremost(ids, candidates) for source, ids in by_source.items()},
        hidden=hidden,
        broken=broken,
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
    visible, hidden = _copied(memory.by_id), _copied(memory.hidden)
    adaptations = _copied(memory._adaptations)
    moved: set[str] = set()
    for resource_id in changed:
        former, item = visible.pop(resource_id, None), candidates.get(resource_id)
        hidden.pop(resource_id, None)
        for source in {former.adapts if former else None, item.adapts if item else None} - {None}:
            assert source is not None  # noqa: S101 - taken out above, which a checker cannot follow
            moved.add(source)
            ids = set(adaptations.pop(source, ())) - {resource_id}
            if item is not None and item.adapts == source:
                ids.add(resource_id)
            if ids:
                adaptations[source] = tuple(sorted(ids))
        if item is not None:
            visible[resource_id] = item
    for resource_id in moved | set(changed):
        item = visible.pop(resource_id, None) or hidden.pop(resource_id, None)
        if item is not None:
            hides = resource_id in adaptations and _hideable(item)
            (hidden if hides else visible)[resource_id] = item
    return _assemble(
        memory, installed, moved | set(changed), visible, hidden, adaptations, broken | broken_now
    )


def _assemble(
    former: EffectiveMemory,
    installed: Installed,
    changed: Collection[str],
    visible: dict[str, EffectiveResource],
    hidden: dict[str, EffectiveResource],
    adaptations: dict[str, tuple[str, ...]],
    broken: dict[str, str],
) -> EffectiveMemory:
    adapted_by = _copied(former.adapted_by)
    for source in {*changed, *(found for item in changed for found in _sources(visible.get(item)))}:
        adapted_by.pop(source, None)
        if source in adaptations:
            adapted_by[source] = _foremost(adaptations[source], visible)
    memory = EffectiveMemory(
        project_id=installed.project_id,
        commit_id=installed.commit_id,
        resources=_spliced(former.resources, changed, visible),
        adapted_by=adapted_by,
        hidden=hidden,
        broken=broken,
    )
    # Both are at hand, so the cached properties need not be computed from all resources again.
    memory.__dict__["by_id"] = visible
    memory.__dict__["_adaptations"] = adaptations
    return memory


def _copied(mapping: Mapping[str, _V]) -> dict[str, _V]:
    # dict.copy() clones the table as a whole; dict(mapping) inserts one by one after a deletion.
    return mapping.copy() if isinstance(mapping, dict) else dict(mapping)


def _spliced(
    resources: tuple[EffectiveResource, ...],
    changed: Collection[str],
    visible: Mapping[str, EffectiveResource],
) -> tuple[EffectiveResource, ...]:
    result = list(resources)
    for resource_id in changed:
        place = bisect_left(result, resource_id, key=lambda item: item.resource_id)
        found = place < len(result) and result[place].resource_id == resource_id
        item = visible.get(resource_id)
        result[place : place + found] = [] if item is None else [item]
    return tuple(result)


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


def _by_source(resources: Iterable[EffectiveResource]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for resource in resources:
        for source in _sources(resource):
            found.setdefault(source, []).append(resource.resource_id)
    return {source: tuple(sorted(ids)) for source, ids in found.items()}


def _hideable(resource: EffectiveResource | None) -> bool:
    # A Project's own resource is never hidden, whatever a link says: no loop can hide everything.
    return resource is not None and resource.scope is Scope.ORG


def _sources(resource: EffectiveResource | None) -> tuple[str, ...]:
    return () if resource is None or resource.adapts is None else (resource.adapts,)


def _foremost(ids: Iterable[str], items: Mapping[str, EffectiveResource]) -> str:
    return min(ids, key=lambda resource_id: _rank(items[resource_id]))


def _rank(resource: EffectiveResource) -> tuple[bool, bool, str]:
    return (
        resource.provenance is not Provenance.DRAFT,
        resource.scope is not Scope.PROJECT,
        resource.resource_id,
    )
