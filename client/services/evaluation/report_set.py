"""The report of an evaluation as JSON-able values. Every share is from 0 to 1, times are milliseconds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from client.domain.evaluation import MRR_AT, NDCG_AT, RECALL_AT, Measures
from client.services.evaluation.run_set import QueryResult, SetResult
from client.services.evaluation.variants import B1_BM25, B2_DENSE, B3_FUSED, RRF, VARIANTS

FORMAT: Final = 1
_BEFORE: Final = (B1_BM25, B2_DENSE, B3_FUSED, RRF)


def report_of(result: SetResult, *, queries: bool = False) -> dict[str, Any]:
    """Return one set's report; with ``queries``, every query's measures and the answer's documents.

    ``variants`` are the four that are compared and ``references`` reciprocal rank fusion;
    ``differences`` the whole ranking's nDCG@10 less the others', with 95 % bootstrap intervals;
    ``answers`` what an agent really gets, after the relevance floor and the token budget.
    """
    measures = result.variants
    report: dict[str, Any] = {
        "format": FORMAT,
        "set": result.name,
        "documents": result.documents,
        "units": result.units,
        "queries": len(result.queries),
        "embedder": result.embedder,
        "reranker": result.reranker,
        "variants": {name: named(measures[name]) for name in VARIANTS},
        "references": {RRF: named(measures[RRF])},
        "differences": {
            name: asdict(found) for name in _BEFORE if (found := result.compare(name)) is not None
        },
        "answers": _answers(result),
        "latency_ms": latencies([query.milliseconds for query in result.queries]),
        "stages_ms": _stages(result.queries),
        "indexing_seconds": round(result.indexing_seconds, 2),
    }
    if queries:
        report["by_query"] = [_query(query) for query in result.queries]
    return report


def named(measures: Measures) -> dict[str, float]:
    """Return measures by their names with cutoffs."""
    return {
        f"recall@{RECALL_AT}": round(measures.recall, 4),
        f"ndcg@{NDCG_AT}": round(measures.ndcg, 4),
        f"mrr@{MRR_AT}": round(measures.mrr, 4),
    }


def latencies(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return median and 95th percentile; zeros of nothing."""
    if not milliseconds:
        return {"p50": 0.0, "p95": 0.0}
    if len(milliseconds) == 1:
        return {"p50": round(milliseconds[0], 2), "p95": round(milliseconds[0], 2)}
    p95 = statistics.quantiles(milliseconds, n=20, method="inclusive")[-1]
    return {"p50": round(statistics.median(milliseconds), 2), "p95": round(p95, 2)}


def _answers(result: SetResult) -> dict[str, Any]:
    answerable = result.answerable
    empty = [query for query in result.queries if not query.answerable]
    return {
        "with_a_right_document": round(sum(query.answered for query in answerable) / len(answerable), 4)
        if answerable
        else None,
        "documents": round(sum(len(query.answer) for query in result.queries) / len(result.queries), 2),
        "forbidden_hits": sum(len(query.forbidden_hits) for query in result.queries),
        "unanswerable_left_empty": {"empty": sum(not query.answer for query in empty), "of": len(empty)},
    }


def _stages(queries: Sequence[QueryResult]) -> Mapping[str, float]:
    names = list(dict.fromkeys(name for query in queries for name in query.stages))
    return {
        name: round(statistics.median(query.stages.get(name, 0.0) for query in queries), 3) for name in names
    }


def _query(query: QueryResult) -> dict[str, Any]:
    return {
        "id": query.query_id,
        "text": query.text,
        "variants": {name: named(query.measures(name)) for name in VARIANTS},
        "best": list(query.rankings["b4_reranked"][:NDCG_AT]),
        "answer": list(query.answer),
        "judgments": dict(query.judgments),
    }
