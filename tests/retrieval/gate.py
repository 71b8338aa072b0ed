"""The rules of the quality gate: what a run of the repository's own set is held against.

Each rule returns what is wrong, in lines. What is said of a loss names the questions that got worse,
with the documents ranked then and now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from client.services.evaluation.run_set import QueryResult, SetResult
from client.services.evaluation.variants import B4_RERANKED, VARIANTS
from tests.retrieval.figures import ANSWER, Figures, Kind, by_kind, is_answered, means, ndcg_of, right

NDCG_MAY_FALL: Final = 0.02
"""Of a variant's mean over the set."""
BELOW_BEST: Final = 0.01
"""How far the whole ranking may lie below the best of the three it is made of."""
KIND_MAY_LOSE: Final = 1
"""Answered questions of a kind; vectors differ in their last digits between processors."""
ALL_MAY_LOSE: Final = 2

_SHOWN: Final = 12
_PLACES: Final = 4


def fell(stored: Figures, result: SetResult, variant: str) -> list[str]:
    """Return what is wrong when a variant's nDCG@10 fell."""
    before, after = stored.ndcg[variant], means(result.queries)[variant]
    if after >= before - NDCG_MAY_FALL:
        return []
    problem = f"{variant}: nDCG@10 is {after:.4f}, stored {before:.4f}: more than {NDCG_MAY_FALL} lower."
    return [problem, *_worse(stored, result.queries, (variant, "then"), (variant, "now"))]


def below_best(result: SetResult) -> list[str]:
    """Return what is wrong when the whole ranking lies below one of those it is made of."""
    found = means(result.queries)
    best = max(VARIANTS, key=found.__getitem__)
    if found[B4_RERANKED] >= found[best] - BELOW_BEST:
        return []
    problem = f"{B4_RERANKED}: nDCG@10 is {found[B4_RERANKED]:.4f}, more than {BELOW_BEST} below {best}"
    lost = _worse(Figures.of(result), result.queries, (best, best), (B4_RERANKED, B4_RERANKED))
    return [f"{problem} ({found[best]:.4f}).", *lost]


def lost_answers(stored: Figures, result: SetResult) -> list[str]:
    """Return what is wrong when right documents are missing from answers."""
    problems: list[str] = []
    total = 0
    for kind, queries in by_kind(result).items():
        before, after = stored.kinds[kind].answered, Kind.of(queries).answered
        total += before - after
        if after < before - KIND_MAY_LOSE:
            problems.append(f"{kind}: {after} of {len(queries)} questions are answered, stored {before}.")
            problems.extend(_unanswered(stored, queries))
    if total > ALL_MAY_LOSE and not problems:
        problems.append(f"{total} questions fewer than stored are answered.")
        problems.extend(_unanswered(stored, result.queries))
    return problems


def forbidden(stored: Figures, result: SetResult) -> list[str]:
    """Return what is wrong when answers hold more forbidden documents, or more where nothing is right."""
    problems: list[str] = []
    for kind, queries in by_kind(result).items():
        before, after = stored.kinds[kind], Kind.of(queries)
        if after.forbidden > before.forbidden:
            problems.append(
                f"{kind}: {after.forbidden} forbidden documents returned, not {before.forbidden}."
            )
            for query in queries:
                if new := set(query.forbidden_hits) - set(stored.rankings[query.query_id][ANSWER]):
                    problems.extend([_named(query), f"    new and forbidden: {_list(sorted(new))}"])
        if not after.answerable and after.returned > before.returned:
            problems.append(
                f"{kind}: {after.returned} documents returned where nothing is right, not {before.returned}."
            )
            for query in queries:
                if query.answer:
                    problems.extend([_named(query), f"    now: {_list(query.answer)}"])
    return problems


def _worse(
    stored: Figures, queries: Iterable[QueryResult], then: tuple[str, str], now: tuple[str, str]
) -> list[str]:
    """Name the questions ranked worse by one variant of the run than by another of the stored one, most
    lost first. ``then`` and ``now`` are a variant and what it is called in the lines."""
    lost: list[tuple[float, list[str]]] = []
    for query in queries:
        before, after = stored.rankings[query.query_id][then[0]], query.rankings[now[0]]
        was, is_now = ndcg_of(query, before), ndcg_of(query, after)
        if is_now < was - 1e-9:
            lines = [
                f"{_named(query)}: {was:.2f} → {is_now:.2f}",
                f"    right: {_list(sorted(right(query)))}",
                f"    {then[1]}: {_list(before[:_PLACES])}",
                f"    {now[1]}: {_list(after[:_PLACES])}",
            ]
            lost.append((is_now - was, lines))
    lost.sort()
    more = [f"  and {len(lost) - _SHOWN} more"] if len(lost) > _SHOWN else []
    return [line for _, lines in lost[:_SHOWN] for line in lines] + more


def _unanswered(stored: Figures, queries: Iterable[QueryResult]) -> list[str]:
    lines: list[str] = []
    for query in queries:
        before: Sequence[str] = stored.rankings[query.query_id][ANSWER]
        if is_answered(query, before) and not is_answered(query, query.answer):
            lines.append(_named(query))
            lines.append(f"    right: {_list(sorted(right(query)))}")
            lines.append(f"    then: {_list(before)}")
            lines.append(f"    now: {_list(query.answer)}")
    return lines


def _named(query: QueryResult) -> str:
    return f"  {query.query_id} “{query.text}”"


def _list(documents: Iterable[str]) -> str:
    return ", ".join(documents) or "nothing"
