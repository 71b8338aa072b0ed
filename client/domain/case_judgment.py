"""What a person says about a question: which documents answer it, which must not be returned.

Evidence grades a whole resource or one of its units from 1 (helps) to 3 (answers). ``none_matched``
says that nothing in the corpus answers, so that the right answer is an empty one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

BEST_GRADE: Final = 3


class JudgmentKind(StrEnum):
    """What a judgment says of the answers to its question."""

    UNJUDGED = "unjudged"
    GRADED = "graded"
    NONE_MATCHED = "none_matched"
    FORBIDDEN_ONLY = "forbidden_only"


class ContradictionError(ValueError):
    """One change says two things of the same document; the message names it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A resource, or one unit of it where ``unit_key`` is given, and how well it answers."""

    resource_id: str
    unit_key: str | None
    grade: int
    """From 1 to `BEST_GRADE`; in a change also 0, which takes back what was said."""

    @property
    def item(self) -> str:
        """What is judged: the unit's key, else the resource's id; no id is ever a key."""
        return self.unit_key or self.resource_id


@dataclass(frozen=True, slots=True)
class Judgment:
    """All that is said of one question, evidence ordered by item."""

    evidence: tuple[Evidence, ...] = ()
    forbidden: tuple[str, ...] = ()
    """Ids of resources that must not be returned."""
    none_matched: bool = False

    @property
    def kind(self) -> JudgmentKind:
        """What it says of the answers."""
        if self.none_matched:
            return JudgmentKind.NONE_MATCHED
        if self.evidence:
            return JudgmentKind.GRADED
        return JudgmentKind.FORBIDDEN_ONLY if self.forbidden else JudgmentKind.UNJUDGED

    @property
    def grades(self) -> Mapping[str, int]:
        """Item → grade."""
        return {each.item: each.grade for each in self.evidence}

    @property
    def resources(self) -> frozenset[str]:
        """Every resource that something is said of."""
        return frozenset(each.resource_id for each in self.evidence).union(self.forbidden)


@dataclass(frozen=True, slots=True)
class JudgmentChange:
    """What is newly said. ``replace`` forgets all that was said before."""

    evidence: tuple[Evidence, ...] = ()
    forbidden: tuple[str, ...] = ()
    none_matched: bool = False
    replace: bool = False


def changed(judgment: Judgment, change: JudgmentChange) -> Judgment:
    """Return the judgment after a change: what is newly said of an item holds, the rest stays.

    Grade 0 takes back what was said of a unit, or of a resource, its units and its being forbidden;
    units that are graded in the same change hold. To forbid a resource takes its evidence back, and
    the other way round; evidence takes ``none_matched`` back, and the other way round.

    Raises:
        ContradictionError: the change contradicts itself.
    """
    _check(change)
    base = Judgment() if change.replace else judgment
    taken_back = {each.resource_id for each in change.evidence if not each.grade and each.unit_key is None}
    cleared = taken_back.union(change.forbidden)
    graded = [each for each in change.evidence if each.grade]
    kept = {} if change.none_matched else {each.item: each for each in base.evidence}
    kept = {item: each for item, each in kept.items() if each.resource_id not in cleared}
    for each in change.evidence:
        kept.pop(each.item, None)
    kept |= {each.item: each for each in graded}
    allowed = taken_back.union(each.resource_id for each in graded)
    forbidden = {each for each in base.forbidden if each not in allowed}.union(change.forbidden)
    return Judgment(
        tuple(kept[item] for item in sorted(kept)),
        tuple(sorted(forbidden)),
        (base.none_matched or change.none_matched) and not graded,
    )


def _check(change: JudgmentChange) -> None:
    if twice := _twice([each.item for each in change.evidence]):
        raise ContradictionError(f"{twice} is graded twice")
    graded = {each.resource_id for each in change.evidence if each.grade}
    both = sorted(graded.intersection(change.forbidden))
    if both:
        raise ContradictionError(f"{both[0]} cannot be evidence and forbidden at once")
    if change.none_matched and graded:
        raise ContradictionError("none_matched and evidence cannot hold at once")


def _twice(items: Collection[str]) -> str | None:
    return next((item for item, count in Counter(items).items() if count > 1), None)
