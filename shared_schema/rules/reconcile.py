"""Bringing a Draft onto a newer published state: a three-way merge of whole resources.

A *base* state (what the author saw), the *current* published state and the *draft* state go in.
Where one side only changed, or both changed alike, the result is clear; what does not go together
comes back as values, never as marks inside a text. A clean result may still be wrong in meaning,
so whoever applies one drops approvals of another content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from shared_schema.memory import ABSENT, OrgSource, ResourceState
from shared_schema.org_contract import Conflict
from shared_schema.rules.merge import merge_text, merge_text_conflicts

PRESENT: Final = "present"
DELETED: Final = "absent"
"""How an ``existence`` conflict writes that a resource is there, or is not."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The merged state, or what stands in its way; exactly one of both is given.

    A clean result that ``exists`` not is a deletion (or nothing at all) that both sides agree on.
    """

    state: ResourceState | None
    conflicts: tuple[Conflict, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether the state can be applied without asking the author."""
        return self.state is not None


def reconcile(
    base: ResourceState,
    current: ResourceState,
    draft: ResourceState,
    occupied: Callable[[str], str | None] | None = None,
) -> Reconciled:
    """Merge the changes from ``base`` to ``current`` with those from ``base`` to ``draft``.

    One side unchanged: the other side's state. One side deleted and the other changed:
    ``existence``. Path, description and Org source merge as single values, the body by lines with
    one ``content`` conflict for each region that both changed; every conflict is reported.
    ``occupied`` tells which **other** resource stands in the way of a path among what is published
    now, if any; a result that is in the way gets ``path_occupied``, whose ``current`` is that
    resource's id and whose ``draft`` is the path.
    """
    merged = _merge(base, current, draft)
    conflicts = merged.conflicts
    if merged.path is not None and occupied is not None and (holder := occupied(merged.path)) is not None:
        conflicts = (*conflicts, Conflict(kind="path_occupied", current=holder, draft=merged.path))
    return Reconciled(None if conflicts else merged.state, conflicts)


class _Merged(NamedTuple):
    state: ResourceState | None
    path: str | None
    """The path of the result, known even if something else conflicts; None when it has none."""
    conflicts: tuple[Conflict, ...] = ()


def _merge(base: ResourceState, current: ResourceState, draft: ResourceState) -> _Merged:
    base, current, draft = (state if state.exists else ABSENT for state in (base, current, draft))
    if draft in (base, current) or current == base:
        result = draft if current == base else current
        return _Merged(result, result.path if result.exists else None)
    if not current.exists or not draft.exists:
        sides = {"base": _presence(base), "current": _presence(current), "draft": _presence(draft)}
        return _Merged(None, None, (Conflict(kind="existence", **sides),))
    return _merge_fields(base, current, draft)


def _merge_fields(base: ResourceState, current: ResourceState, draft: ResourceState) -> _Merged:
    """Merge two states that exist and differ; ``base`` may be absent, both sides then created it."""
    conflicts: list[Conflict] = []
    if (path := _pick(base.path, current.path, draft.path)) is None:
        conflicts.append(Conflict(kind="path", base=base.path, current=current.path, draft=draft.path))
    if (description := _pick(base.description, current.description, draft.description)) is None:
        conflicts.append(
            Conflict(
                kind="description",
                base=base.description,
                current=current.description,
                draft=draft.description,
            )
        )
    body = merge_text(base.body, current.body, draft.body)
    if body is None:
        conflicts += (
            Conflict(kind="content", base=part.base, current=part.ours, draft=part.theirs)
            for part in merge_text_conflicts(base.body, current.body, draft.body)
        )
    sources = [_source(state.org_source) for state in (base, current, draft)]
    if (source := _pick(*sources)) is None:
        conflicts.append(Conflict(kind="org_source", base=sources[0], current=sources[1], draft=sources[2]))
    if path is None or description is None or body is None or source is None:
        return _Merged(None, path, tuple(conflicts))
    org_source = current.org_source if source == sources[1] else draft.org_source
    state = ResourceState(exists=True, path=path, description=description, body=body, org_source=org_source)
    return _Merged(state, path)


def _pick(base: str, current: str, draft: str) -> str | None:
    """Return the value that one side changed or both share, or None when they disagree."""
    if draft in (base, current):
        return current
    return draft if current == base else None


def _presence(state: ResourceState) -> str:
    return PRESENT if state.exists else DELETED


def _source(source: OrgSource | None) -> str:
    return f"{source.resource_id}@{source.commit_id}" if source else ""
