"""The report of a Project's evaluation cases as JSON-able values; shares from 0 to 1, milliseconds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from client.domain.case_judgment import JudgmentKind
from client.domain.case_measures import (
    LOOKED_AT,
    AnswerSummary,
    CaseResult,
    RankingResult,
    RankingSummary,
    summarise,
)
from client.services.evaluation.replay import Replay
from client.services.evaluation.report_set import latencies, named
from client.services.evaluation.variants import B1_BM25, B2_DENSE, B3_FUSED, B4_RERANKED, RRF, VARIANTS
from client.store.projects import ProjectRow

FORMAT: Final = 1
DIVERSITY: Final = f"diversity@{LOOKED_AT}"
_COMPARED: Final = (B1_BM25, B2_DENSE, B3_FUSED, RRF, B4_RERANKED)


def case_report(project: ProjectRow, replay: Replay) -> dict[str, Any]:
    """Return the report.

    ``variants`` are the four that are compared and ``references`` reciprocal rank fusion: means over
    the graded cases, and faults summed over all judged ones, in the first ten places. ``differences``
    are the whole ranking's nDCG@10 less the others', with 95 % bootstrap intervals. ``answers`` is what
    agents would get, after the relevance floor and the token budget.
    """
    results = replay.results
    summary = summarise(results, _COMPARED)
    empty = sum(each.kind is JudgmentKind.NONE_MATCHED for each in results)
    return {
        "format": FORMAT,
        "project_id": project.project_id,
        "project_name": project.name,
        "cases": len(results) + len(replay.unjudged),
        "judged": len(results),
        "graded": summary.graded,
        "none_matched": empty,
        "unjudged": list(replay.unjudged),
        "corpora": replay.corpora,
        "embedder": replay.embedder,
        "reranker": replay.reranker,
        "variants": {name: _ranking(summary.rankings[name]) for name in VARIANTS},
        "references": {RRF: _ranking(summary.rankings[RRF])},
        "differences": {name: asdict(found) for name, found in summary.differences.items()},
        "answers": None if summary.answers is None else _answers(summary.answers),
        "latency_ms": latencies([each.milliseconds for each in results]),
        "by_case": [_case(each) for each in results],
    }


def _ranking(found: RankingSummary | RankingResult) -> dict[str, Any]:
    return {
        **named(found.measures),
        DIVERSITY: _rounded(found.diversity),
        **asdict(found.faults),
    }


def _answers(found: AnswerSummary) -> dict[str, Any]:
    return {
        "with_evidence": _rounded(found.with_evidence),
        "evidence_returned": _rounded(found.evidence),
        "fragments": round(found.fragments, 2),
        "resources": round(found.resources, 2),
        "diversity": _rounded(found.diversity),
        **asdict(found.faults),
        "none_matched_left_empty": {"empty": found.left_empty, "of": found.none_matched},
    }


def _case(each: CaseResult) -> dict[str, Any]:
    answer = each.answer
    return {
        "case_id": each.case_id,
        "version": each.version,
        "query": each.query,
        "kind": each.kind.value,
        "rankings": {name: _ranking(each.rankings[name]) for name in _COMPARED},
        "best": list(each.best),
        "answer": {
            "fragments": answer.fragments,
            "resources": answer.resources,
            "evidence_returned": _rounded(answer.evidence),
            **asdict(answer.faults),
        },
        "lost_units": list(each.lost_units),
        "ms": round(each.milliseconds, 2),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
