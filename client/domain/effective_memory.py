"""Effective Memory: what one Project shows an agent on one machine.

An immutable value; `client.domain.projection` computes it. A changed one shares with its former one
all that did not change, its look-ups and its hash included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias, TypeVar

from client.domain.persistent_map import PersistentMap
from client.domain.retirement import retired_as
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import OrgSource, Provenance, Scope
from shared_schema.rules.hashing import canonical_json

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
        return hashlib.sha256(canonical_json(visible_fields(self))).digest()

    @cached_property
    def signature(self) -> str:
        """Changes whenever the resource has to be cut or embedded again."""
        parts = (self.content_hash, self.path, self.title, self.description)
        joined = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @cached_property
    def retired(self) -> bool:
        """Whether it says of itself that it no longer holds; then it answers no question."""
        return retired_as(self.body) is not None

    @property
    def adapts(self) -> str | None:
        """The Org resource that this one replaces in its Project, if it is an adaptation."""
        return self.org_source.resource_id if self.org_source and self.scope is Scope.PROJECT else None


class Shown(Protocol):
    """What a reader can see of a resource; its content hash stands for the text."""

    @property
    def resource_id(self) -> str: ...  # noqa: D102 - named as in EffectiveResource
    @property
    def scope(self) -> Scope: ...  # noqa: D102
    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def description(self) -> str: ...  # noqa: D102
    @property
    def content_hash(self) -> str: ...  # noqa: D102
    @property
    def provenance(self) -> Provenance: ...  # noqa: D102
    @property
    def org_source(self) -> OrgSource | None: ...  # noqa: D102
    @property
    def draft(self) -> DraftRef | None: ...  # noqa: D102


def visible_fields(item: Shown) -> list[object]:
    """Return as JSON-able values everything that makes one shown resource another one."""
    source, draft = item.org_source, item.draft
    return [
        item.resource_id,
        item.scope.value,
        item.path,
        item.title,
        item.description,
        item.content_hash,
        item.provenance.value,
        [source.resource_id, source.commit_id] if source else None,
        [draft.draft_id, draft.freshness.value, draft.reconciliation.value] if draft else None,
    ]


Groups: TypeAlias = PersistentMap[tuple[EffectiveResource, ...]]
"""Resources by something that they share; in each group the foremost one first."""


class _Foremost(Mapping[str, _V]):
    """What is foremost in each group."""

    __slots__ = ("_groups", "_shown")

    def __init__(self, groups: Groups, shown: Callable[[EffectiveResource], _V]) -> None:
        self._groups = groups
        self._shown = shown

    def __getitem__(self, key: str) -> _V:
        return self._shown(self._groups[key][0])

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


@dataclass(frozen=True)
class EffectiveMemory:
    """The visible resources of one Project."""

    project_id: str
    commit_id: str | None
    by_id: PersistentMap[EffectiveResource]
    """Visible resources by id."""
    hidden: PersistentMap[EffectiveResource] = field(default_factory=PersistentMap)
    """What adaptations hide, by id; it comes back when its adaptation goes."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Draft that could not be applied → its resource."""

    @classmethod
    def of(
        cls, project_id: str, commit_id: str | None, resources: Iterable[EffectiveResource]
    ) -> EffectiveMemory:
        """Return a memory that shows exactly these resources."""
        return cls(project_id, commit_id, PersistentMap((item.resource_id, item) for item in resources))

    @property
    def broken_drafts(self) -> tuple[str, ...]:
        """Drafts that could not be applied; left out, never fatal."""
        return tuple(sorted(self.broken))

    @cached_property
    def hash(self) -> str:
        """``sha256:…`` over the Project, the installed commit and everything a reader can see."""
        digest = hashlib.sha256(canonical_json([self.project_id, self.commit_id]))
        digest.update(b"".join(self.by_id.digests(_digest_of)))
        return f"sha256:{digest.hexdigest()}"

    @cached_property
    def resources(self) -> tuple[EffectiveResource, ...]:
        """Visible resources, ordered by id."""
        return tuple(self.by_id[resource_id] for resource_id in sorted(self.by_id))

    @property
    def by_path(self) -> Mapping[str, EffectiveResource]:
        """Visible resources by exact path.

        Where somebody published the path of a local Draft meanwhile, the Draft is named, then the
        Project's own resource, then the one with the smaller id.
        """
        return _Foremost(self._paths, lambda resource: resource)

    @property
    def adapted_by(self) -> Mapping[str, str]:
        """Org source id → id of the adaptation that replaces it, whether or not the source is hidden
        here or already left out by the server.
        """
        return _Foremost(self.adaptations, lambda resource: resource.resource_id)

    def titled(self, title: str) -> tuple[EffectiveResource, ...]:
        """Return the visible resources with exactly this title, case aside."""
        return self._titles.get(title.casefold(), ())

    @cached_property
    def _titles(self) -> Groups:
        return regrouped(PersistentMap(), (), self.by_id.values(), _title)

    @cached_property
    def _paths(self) -> Groups:
        return regrouped(PersistentMap(), (), self.by_id.values(), _path)

    @cached_property
    def adaptations(self) -> Groups:
        """Adaptations by the Org source that they replace."""
        return regrouped(PersistentMap(), (), self.by_id.values(), source_of)

    def followed_by(
        self,
        commit_id: str | None,
        visible: Mapping[str, EffectiveResource | None],
        hidden: Mapping[str, EffectiveResource | None],
        broken: Mapping[str, str],
    ) -> EffectiveMemory:
        """Return the memory after a change: ``visible`` and ``hidden`` are what differs, by id, with
        ``None`` for what is not there any more; ``broken`` is complete.
        """
        memory = EffectiveMemory(
            self.project_id, commit_id, self.by_id.changed(visible), self.hidden.changed(hidden), broken
        )
        gone = [item for key in visible if (item := self.by_id.get(key)) is not None]
        come = [item for item in visible.values() if item is not None]
        # What was looked up by once is kept for the next, so it need not be made from everything again.
        for name, key_of in (("adaptations", source_of), ("_paths", _path), ("_titles", _title)):
            if (groups := self.__dict__.get(name)) is not None:
                memory.__dict__[name] = regrouped(groups, gone, come, key_of)
        return memory


def regrouped(
    groups: Groups,
    gone: Iterable[EffectiveResource],
    come: Iterable[EffectiveResource],
    key_of: Callable[[EffectiveResource], str | None],
) -> Groups:
    """Return the groups after some resources went and others came; each with the foremost one first."""
    moved: dict[str, dict[str, EffectiveResource]] = {}

    def group(key: str) -> dict[str, EffectiveResource]:
        if key not in moved:
            moved[key] = {item.resource_id: item for item in groups.get(key, ())}
        return moved[key]

    for item in gone:
        if (key := key_of(item)) is not None:
            group(key).pop(item.resource_id, None)
    for item in come:
        if (key := key_of(item)) is not None:
            group(key)[item.resource_id] = item
    return groups.changed(
        {key: tuple(sorted(items.values(), key=_rank)) or None for key, items in moved.items()}
    )


def _digest_of(part: Mapping[str, EffectiveResource]) -> bytes:
    return hashlib.sha256(b"".join(part[key].digest for key in sorted(part))).digest()


def _path(resource: EffectiveResource) -> str:
    return resource.path


def _title(resource: EffectiveResource) -> str:
    return resource.title.casefold()


def source_of(resource: EffectiveResource) -> str | None:
    """Return the Org resource that an adaptation replaces."""
    return resource.adapts


def _rank(resource: EffectiveResource) -> tuple[bool, bool, str]:
    return (
        resource.provenance is not Provenance.DRAFT,
        resource.scope is not Scope.PROJECT,
        resource.resource_id,
    )
