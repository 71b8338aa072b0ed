"""Effective Memory: what one Project shows an agent on one machine.

A pure function of the published state and this machine's Drafts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import OrgSource, Provenance, Scope


@dataclass(frozen=True, slots=True)
class DraftRef:
    """The Draft behind an item, as a reader sees it."""

    draft_id: str
    freshness: Freshness
    reconciliation: Reconciliation


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True)
class EffectiveMemory:
    """The visible resources of one Project, ordered by resource id."""

    project_id: str
    commit_id: str | None
    resources: tuple[EffectiveResource, ...]
    hash: str
    """``sha256:…`` over everything a reader can see."""
    adapted_by: Mapping[str, str] = field(default_factory=dict)
    """Hidden Org source id → id of the adaptation that replaces it."""
    broken_drafts: tuple[str, ...] = ()
    """Drafts that could not be applied; left out, never fatal."""

    @cached_property
    def by_id(self) -> Mapping[str, EffectiveResource]:
        """Visible resources by id."""
        return {resource.resource_id: resource for resource in self.resources}

    @cached_property
    def by_path(self) -> Mapping[str, EffectiveResource]:
        """Visible resources by exact path."""
        return {resource.path: resource for resource in self.resources}
