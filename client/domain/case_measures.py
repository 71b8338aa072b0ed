"""Measures of evaluation cases: rankings against judgments, and faults of what was returned.

A case's items are what its judgment speaks of: a graded unit is an item of its own, every other unit
stands for its resource. Rankings are measured over items, so that evidence for one section is not
found by another section of the same document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from client.domain.case_judgment import Judgment, JudgmentKind
from client.domain.chunking import Unit, text_hash
from client.domain.effective_memory import EffectiveResource
from client.domain.evaluation import Difference, Measures, difference, mean_of, measure
from shared_schema.memory import Scope

LOOKED_AT: Final = 10
"""Places of a ranking in which faults are counted; the cutoff of nDCG."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One unit of a ranking or an answer, and the scope that it was returned with, if any."""

    unit: Unit
    scope: Scope | None


@dataclass(frozen=True, slots=True)
class Faults:
    """What must not be: counts over some hits."""

    scope_violations: int = 0
    """Hits of a resource that is not in the corpus, or is there in another scope."""
    stale_results: int = 0
    """Hits whose text is not the one that the corpus holds at their place."""
    forbidden_hits: int = 0
    """Forbidden resources among the hits, each once."""

    def __add__(self, other: Faults) -> Faults:
        return Faults(
            self.scope_violations + other.scope_violations,
            self.stale_results + other.stale_results,
            self.forbidden_hits + other.forbidden_hits,
        )


@dataclass(frozen=True, slots=True)
class RankingResult:
    """One ranking of one case."""

    measures: Measures
    diversity: float | None
    """Resources among the first `LOOKED_AT` units, as a share of those; none of an empty ranking."""
    faults: Faults
    """Of the best unit of each of the first `LOOKED_AT` resources."""


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """What was returned for one case."""

    fragments: int
    resources: int
    evidence: float | None
    """Share of the judged items that the answer holds; none without evidence."""
    faults: Faults

    @property
    def diversity(self) -> float | None:
        """Resources as a share of the fragments; none of an empty answer."""
        return self.resources / self.fragments if self.fragments else None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case, replayed once. ``rankings`` by variant."""

    case_id: str
    version: int
    query: str
    kind: JudgmentKind
    rankings: Mapping[str, RankingResult]
    answer: AnswerResult
    milliseconds: float
    best: Sequence[str] = ()
    """Items of the whole ranking, best first."""
    lost_units: Sequence[str] = ()
    """Graded units that the corpus is not cut into any more."""


@dataclass(frozen=True, slots=True)
class RankingSummary:
    """One ranking over all cases: means over those with evidence, and sums of faults."""

    measures: Measures
    diversity: float | None
    faults: Faults


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """The answers of all cases. Shares are none where nothing can be shared."""

    with_evidence: float | None
    """Share of the graded cases whose answer holds any of the evidence."""
    evidence: float | None
    """Mean share of the evidence that an answer holds."""
    fragments: float
    resources: float
    diversity: float | None
    faults: Faults
    none_matched: int
    """Cases that nothing in their corpus answers,"""
    left_empty: int
    """and how many of those were answered with nothing."""


@dataclass(frozen=True, slots=True)
class Summary:
    """All cases of a Project. ``differences`` compare nDCG of the last ranking with the others'."""

    graded: int
    rankings: Mapping[str, RankingSummary]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    answers: AnswerSummary | None = None
    """None without cases."""


def items_of(units: Iterable[Unit], judgment: Judgment) -> list[str]:
    """Return the items of ranked units, best first; an item stands where its best unit does."""
    graded = judgment.grades
    return list(
        dict.fromkeys(unit.unit_key if unit.unit_key in graded else unit.resource_id for unit in units)
    )


def faults_of(
    hits: Iterable[Hit], corpus: Mapping[str, EffectiveResource], forbidden: Collection[str]
) -> Faults:
    """Count the faults of what was returned against the corpus that it was to be taken from."""
    violations = stale = 0
    seen: set[str] = set()
    for hit in hits:
        seen.add(hit.unit.resource_id)
        frozen = corpus.get(hit.unit.resource_id)
        if frozen is None or hit.scope is not frozen.scope:
            violations += 1
        elif _is_stale(hit.unit, frozen):
            stale += 1
    return Faults(violations, stale, len(seen.intersection(forbidden)))


def ranking_result(
    hits: Sequence[Hit], judgment: Judgment, corpus: Mapping[str, EffectiveResource]
) -> RankingResult:
    """Measure one ranking of units, best first."""
    first = hits[:LOOKED_AT]
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.unit.resource_id, hit)
    return RankingResult(
        measure(items_of((hit.unit for hit in hits), judgment), judgment.grades),
        len({hit.unit.resource_id for hit in first}) / len(first) if first else None,
        faults_of(islice(best.values(), LOOKED_AT), corpus, judgment.forbidden),
    )


def answer_result(
    hits: Sequence[Hit], judgment: Judgment, corpus: Mapping[str, EffectiveResource]
) -> AnswerResult:
    """Measure what was returned."""
    grades = judgment.grades
    found = grades.keys() & items_of((hit.unit for hit in hits), judgment)
    return AnswerResult(
        fragments=len(hits),
        resources=len({hit.unit.resource_id for hit in hits}),
        evidence=len(found) / len(grades) if grades else None,
        faults=faults_of(hits, corpus, judgment.forbidden),
    )


def summarise(results: Sequence[CaseResult], variants: Sequence[str]) -> Summary:
    """Sum up all cases; ``variants`` names the rankings, that of the answers last."""
    graded = [each for each in results if each.kind is JudgmentKind.GRADED]
    last = [each.rankings[variants[-1]].measures.ndcg for each in graded]
    return Summary(
        graded=len(graded),
        rankings={name: _ranking_summary(results, graded, name) for name in variants},
        differences={
            name: difference([each.rankings[name].measures.ndcg for each in graded], last)
            for name in variants[:-1]
            if graded
        },
        answers=_answer_summary(results, graded) if results else None,
    )


def _is_stale(unit: Unit, frozen: EffectiveResource) -> bool:
    source = frozen.body if unit.kind == "body" else frozen.description
    kept = text_hash(source[unit.chars[0] : unit.chars[1]])
    return not kept == text_hash(unit.text) == unit.content_hash


def _ranking_summary(
    results: Sequence[CaseResult], graded: Sequence[CaseResult], name: str
) -> RankingSummary:
    every = [each.rankings[name] for each in results]
    return RankingSummary(
        mean_of([each.rankings[name].measures for each in graded]),
        _mean([each.diversity for each in every]),
        sum((each.faults for each in every), Faults()),
    )


def _answer_summary(results: Sequence[CaseResult], graded: Sequence[CaseResult]) -> AnswerSummary:
    answers = [each.answer for each in results]
    empty = [each.answer for each in results if each.kind is JudgmentKind.NONE_MATCHED]
    return AnswerSummary(
        with_evidence=_mean([float(bool(each.answer.evidence)) for each in graded]),
        evidence=_mean([each.answer.evidence for each in graded]),
        fragments=sum(each.fragments for each in answers) / len(answers),
        resources=sum(each.resources for each in answers) / len(answers),
        diversity=_mean([each.diversity for each in answers]),
        faults=sum((each.faults for each in answers), Faults()),
        none_matched=len(empty),
        left_empty=sum(not each.fragments for each in empty),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
