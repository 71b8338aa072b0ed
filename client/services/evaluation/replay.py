"""Replaying evaluation cases: each question again, over exactly what was searched when it was asked.

For each corpus an index is built from nothing, in a folder that is deleted afterwards: an index that
grew over time counts deleted units in its word statistics, a fresh one only what was frozen. Vectors
come from the shared cache, so that only what was forgotten there is embedded again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from client.domain.case_judgment import Judgment, JudgmentKind
from client.domain.case_measures import (
    CaseResult,
    Hit,
    answer_result,
    items_of,
    ranking_result,
)
from client.domain.chunking import Unit
from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder
from client.index.builder import Builder
from client.index.files import remove_tree
from client.index.generation import Generation
from client.index.searcher import Searcher, Snapshot
from client.index.vector_cache import VectorCache
from client.services.activate_memory import Models
from client.services.evaluation.freeze import frozen_memory
from client.services.evaluation.run_set import INDEXING, SEARCHING, Progress
from client.services.evaluation.variants import B4_RERANKED, ranked_units
from client.store.evaluation_cases import CaseRow
from client.store.unit_of_work import Store

_KEPT: Final = 10
"""Items of the whole ranking that a result names."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a Project's cases. ``unjudged`` cases are named and not asked."""

    results: tuple[CaseResult, ...]
    unjudged: tuple[str, ...]
    corpora: int
    embedder: str
    reranker: str


class ReplayCases:
    """Asks the judged cases of a Project again. ``new_searcher`` makes one that nobody else uses.

    ``folder`` is its own: what an interrupted replay left there is deleted.
    """

    def __init__(
        self,
        store: Store,
        models: Models,
        cache: VectorCache,
        new_searcher: Callable[[], Searcher],
        folder: Path,
    ) -> None:
        self._store = store
        self._models = models
        self._cache = cache
        self._new_searcher = new_searcher
        self._folder = folder

    def __call__(self, project_id: str, progress: Progress) -> Replay:
        """Replay corpus by corpus, one at a time; not to be called again before it returns.

        Raises:
            InterleafError: ``database_corrupt`` for a corpus that is not what was frozen, and what the
                embedder raises; it is not asked for without a judged case.
            IndexCorruptError: an index cannot be read back.
            OSError: an index cannot be written.
        """
        with self._store.read() as uow:
            cases = uow.cases.list(project_id)
        unjudged = [case for case in cases if case.newest.judgment.kind is JudgmentKind.UNJUDGED]
        judged = [case for case in cases if case not in unjudged]
        if not judged:
            return Replay((), _ids(unjudged), 0, "", "")
        embedder = self._models.embedder()
        results: dict[str, CaseResult] = {}
        reranker = ""
        corpora = dict.fromkeys(case.newest.memory_hash for case in judged)
        for memory_hash in corpora:
            its_cases = [case for case in judged if case.newest.memory_hash == memory_hash]
            with self._corpus(memory_hash, embedder, progress) as corpus:
                if corpus is None:
                    continue
                for case in its_cases:
                    progress(SEARCHING, len(results), len(judged))
                    results[case.case_id], reranker = corpus.ask(case)
        progress(SEARCHING, len(judged), len(judged))
        ordered = tuple(results[case.case_id] for case in judged if case.case_id in results)
        return Replay(ordered, _ids(unjudged), len(corpora), embedder.fingerprint, reranker)

    def tidy(self) -> None:
        """Delete what an interrupted replay left."""
        remove_tree(self._folder)

    @contextmanager
    def _corpus(self, memory_hash: str, embedder: Embedder, progress: Progress) -> Iterator[_Corpus | None]:
        """Lend a corpus with its index; none when its cases were deleted meanwhile."""
        with self._store.read() as uow:
            memory = frozen_memory(uow, memory_hash)
        if memory is None:
            yield None
            return
        self.tidy()
        try:
            builder = Builder(embedder, self._cache, lambda done, total: progress(INDEXING, done, total))
            generation = builder.build(memory, self._folder / "index", None)
            yield _Corpus(memory, generation, self._new_searcher(), embedder)
        finally:
            self.tidy()


def _ids(cases: Iterable[CaseRow]) -> tuple[str, ...]:
    return tuple(case.case_id for case in cases)


class _Corpus:
    """One frozen corpus with its index, ready to be asked."""

    def __init__(
        self, memory: EffectiveMemory, generation: Generation, searcher: Searcher, embedder: Embedder
    ) -> None:
        self._snapshot = Snapshot(generation, memory)
        self._searcher = searcher
        self._embedder = embedder
        self._units = frozenset(unit.unit_key for unit in generation.units)
        self._warm = False

    def ask(self, case: CaseRow) -> tuple[CaseResult, str]:
        """Ask one case as an agent's activation does; return its result and the reranker's name."""
        if not self._warm:
            # Opens what all later searches find open; the first one's time is no search's.
            self._searcher.search(self._snapshot, case.query, self._embedder)
            self._warm = True
        began = time.perf_counter()
        trace = self._searcher.search(self._snapshot, case.query, self._embedder)
        took = (time.perf_counter() - began) * 1_000
        judgment = case.newest.judgment
        corpus = self._snapshot.memory.by_id
        ranked = {name: [each.unit for each in found] for name, found in ranked_units(trace).items()}
        result = CaseResult(
            case_id=case.case_id,
            version=case.newest.version,
            query=case.query,
            kind=judgment.kind,
            rankings={
                name: ranking_result(self._hits(units), judgment, corpus) for name, units in ranked.items()
            },
            answer=answer_result(self._hits(trace.units), judgment, corpus),
            milliseconds=took,
            best=items_of(ranked[B4_RERANKED], judgment)[:_KEPT],
            lost_units=self._lost(judgment),
        )
        return result, trace.reranker

    def _hits(self, units: Iterable[Unit]) -> Sequence[Hit]:
        """Return units with the scope that an agent would be told."""
        shown = self._snapshot.memory.by_id
        return [
            Hit(unit, resource.scope if (resource := shown.get(unit.resource_id)) else None) for unit in units
        ]

    def _lost(self, judgment: Judgment) -> tuple[str, ...]:
        keys = (each.unit_key for each in judgment.evidence if each.unit_key is not None)
        return tuple(key for key in keys if key not in self._units)
