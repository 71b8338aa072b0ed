"""What a new generation takes over from the former one, and what is new in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from client.domain.analysis import holds_cjk
from client.domain.chunking import Unit, cut, passage_of
from client.domain.effective_memory import EffectiveMemory
from client.index.generation import Generation, IndexedResource, IndexedUnit
from client.index.lexical import FieldTerms
from client.index.vector_cache import passage_hash
from client.index.vectors import SegmentInfo

_SEGMENTS: Final = 8
"""More vector segments than this are merged."""
_GARBAGE: Final = 0.5
"""A share of unused rows above which a segment is written again."""


@dataclass(slots=True)
class NewUnit:
    """A unit to be indexed; its place is known once its vectors are written."""

    unit: Unit
    terms: FieldTerms
    uid: int
    passage: str
    place: tuple[int, int] = (-1, -1)

    def indexed(self) -> IndexedUnit:
        """Return it as the index keeps it."""
        unit = self.unit
        return IndexedUnit(
            self.uid,
            unit.unit_key,
            unit.heading_path,
            unit.kind,
            unit.chars,
            unit.span,
            unit.content_hash,
            unit.tokens,
            self.terms.lengths,
            holds_cjk(passage_of(unit)),
            self.passage,
            self.place,
        )


@dataclass(slots=True)
class Plan:
    """What is kept, what is new, what goes."""

    kept: dict[str, IndexedResource] = field(default_factory=dict)
    fresh: dict[str, list[NewUnit]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    next_uid: int = 0


def plan_of(
    memory: EffectiveMemory, former: Generation | None, count_tokens: Callable[[Sequence[str]], list[int]]
) -> Plan:
    """Compare a memory with the former generation and cut what is new or changed."""
    plan = Plan(next_uid=former.manifest.next_uid if former else 0)
    for resource in memory.resources:
        before = former.resources.get(resource.resource_id) if former else None
        if before is not None and before.signature == resource.signature:
            plan.kept[resource.resource_id] = before
            continue
        if before is not None:
            plan.removed.append(resource.resource_id)
        fresh = []
        for unit in cut(resource, count_tokens):
            fresh.append(NewUnit(unit, FieldTerms.of(unit), plan.next_uid, passage_hash(passage_of(unit))))
            plan.next_uid += 1
        plan.fresh[resource.resource_id] = fresh
    if former is not None:
        plan.removed.extend(former.resources.keys() - memory.by_id.keys())
    return plan


def segments_to_rewrite(plan: Plan, infos: Sequence[SegmentInfo]) -> set[int]:
    """Return the segments whose rows go into the new one: empty ones, wasteful ones, and the smaller
    ones when there are too many, so that a large segment is rarely written again."""
    used = [0] * len(infos)
    for resource in plan.kept.values():
        for unit in resource.units:
            used[unit.place[0]] += 1
    rewritten = {n for n, info in enumerate(infos) if used[n] < (1 - _GARBAGE) * info.rows or not used[n]}
    remaining = sorted(set(range(len(infos))) - rewritten, key=lambda n: infos[n].rows)
    if len(remaining) >= _SEGMENTS:
        rewritten.update(remaining[: len(remaining) - _SEGMENTS // 4])
    return rewritten
