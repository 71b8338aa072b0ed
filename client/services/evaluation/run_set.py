"""Run an evaluation set through the pipeline that agents use: cut, embed, index, search, assemble."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from client.domain.embedding import Embedder, PassageVectors, QueryVectors
from client.domain.evaluation import Difference, Judgments, Measures, difference, mean_of, measure
from client.index.builder import Builder
from client.index.searcher import Searcher, Snapshot
from client.index.trace import Trace
from client.index.vector_cache import VectorCache
from client.services.evaluation.sets import EvaluationSet
from client.services.evaluation.variants import B4_RERANKED, RRF, VARIANTS, answer, rankings

INDEXING: Final = "indexing"
SEARCHING: Final = "searching"
_WARM_UP: Final = 3
_KEPT: Final = 100
"""Places of a ranking that are kept; measures look at the first twenty."""

Progress = Callable[[str, int, int], None]
"""Called with a stage, what is done and what there is to do: passages, then queries."""


def no_progress(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One query: rankings of document ids by variant, what was really returned, and what it took."""

    query_id: str
    text: str
    judgments: Judgments
    rankings: Mapping[str, Sequence[str]]
    answer: Sequence[str]
    milliseconds: float
    stages: Mapping[str, float]

    def measures(self, variant: str) -> Measures:
        """Return the measures of one variant."""
        return measure(self.rankings[variant], self.judgments)

    @property
    def answerable(self) -> bool:
        """Whether any document is right; else only forbidden ones are judged."""
        return any(grade > 0 for grade in self.judgments.values())

    @property
    def forbidden_hits(self) -> tuple[str, ...]:
        """Documents in the answer that must not be there."""
        return tuple(document for document in self.answer if self.judgments.get(document, 0) < 0)

    @property
    def answered(self) -> bool:
        """Whether the answer holds at least one right document."""
        return any(self.judgments.get(document, 0) > 0 for document in self.answer)


@dataclass(frozen=True, slots=True)
class SetResult:
    """One set through the pipeline. ``variants`` holds the means over the answerable queries."""

    name: str
    documents: int
    units: int
    queries: tuple[QueryResult, ...]
    embedder: str
    reranker: str
    indexing_seconds: float

    @property
    def answerable(self) -> tuple[QueryResult, ...]:
        """The queries that have a right document."""
        return tuple(query for query in self.queries if query.answerable)

    @property
    def variants(self) -> Mapping[str, Measures]:
        """Means by variant, reciprocal rank fusion included."""
        return {
            variant: mean_of([query.measures(variant) for query in self.answerable])
            for variant in (*VARIANTS, RRF)
        }

    def compare(self, before: str, after: str = B4_RERANKED) -> Difference | None:
        """Compare two variants' nDCG@10, query by query; none without answerable queries."""
        queries = self.answerable
        if not queries:
            return None
        return difference(
            [query.measures(before).ndcg for query in queries],
            [query.measures(after).ndcg for query in queries],
        )


class SharedOut:
    """An embedder that embeds passages in several threads at once, for a machine that has nothing else
    to do; everything else is the embedder's own."""

    def __init__(self, embedder: Embedder, threads: int) -> None:
        self._embedder = embedder
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="embedding")
        self._threads = threads

    @property
    def fingerprint(self) -> str:
        """The embedder's own."""
        return self._embedder.fingerprint

    @property
    def dimensions(self) -> int:
        """The embedder's own."""
        return self._embedder.dimensions

    @property
    def token_dimensions(self) -> int:
        """The embedder's own."""
        return self._embedder.token_dimensions

    def embed_query(self, text: str) -> QueryVectors:
        """Embed one query, in this thread."""
        return self._embedder.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> list[PassageVectors]:
        """Embed passages in the order given, each thread every n-th, so that all get the same lengths."""
        shares = [texts[start :: self._threads] for start in range(self._threads)]
        made = list(self._pool.map(self._embedder.embed_passages, shares))
        return [made[place % self._threads][place // self._threads] for place in range(len(texts))]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count in this thread."""
        return self._embedder.count_tokens(texts)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def run_set(
    evaluated: EvaluationSet,
    embedder: Embedder,
    cache: VectorCache,
    folder: Path,
    progress: Progress = no_progress,
) -> SetResult:
    """Index a set in the empty ``folder`` and ask all its queries, one after the other.

    Raises:
        InterleafError: from the embedder.
        IndexCorruptError: the index cannot be read back.
        OSError: the folder cannot be written.
    """
    memory, documents = evaluated.memory()
    began = time.perf_counter()
    builder = Builder(embedder, cache, lambda done, total: progress(INDEXING, done, total))
    generation = builder.build(memory, folder, None)
    indexing = time.perf_counter() - began
    searcher = Searcher(cache)
    reranker = ""

    def ask(text: str) -> Trace:
        return searcher.search(Snapshot(generation, memory), text, embedder)

    for text in list(evaluated.queries.values())[:_WARM_UP]:
        reranker = ask(text).reranker
    results: list[QueryResult] = []
    for number, query_id in enumerate(evaluated.queries):
        progress(SEARCHING, number, len(evaluated.queries))
        results.append(_asked(evaluated, query_id, documents, ask))
    progress(SEARCHING, len(evaluated.queries), len(evaluated.queries))
    return SetResult(
        evaluated.name,
        len(memory.resources),
        len(generation.units),
        tuple(results),
        embedder.fingerprint,
        reranker,
        indexing,
    )


def _asked(
    evaluated: EvaluationSet, query_id: str, documents: Mapping[str, str], ask: Callable[[str], Trace]
) -> QueryResult:
    """Ask one query; ``documents`` are the set's ids by resource id."""
    text = evaluated.queries[query_id]
    started = time.perf_counter()
    trace = ask(text)
    took = (time.perf_counter() - started) * 1_000
    ranked = rankings(trace).items()
    return QueryResult(
        query_id,
        text,
        evaluated.judgments[query_id],
        {variant: [documents[each] for each in ids[:_KEPT]] for variant, ids in ranked},
        [documents[each] for each in answer(trace)],
        took,
        dict(trace.latencies),
    )
