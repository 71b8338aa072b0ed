"""Search: identity and BM25 and dense recall, fusion, reranking, assembly, in one pass."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from client.domain import ranking
from client.domain.analysis import query_terms
from client.domain.chunking import passage_of
from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder, QueryVectors
from client.index.generation import Generation
from client.index.listing import Scores, assembled
from client.index.overlay import View
from client.index.recall import (
    Candidates,
    by_meaning,
    by_words,
    full_bm25,
    resource_at,
    searched_terms,
    union,
    unit_at,
    vectors_at,
)
from client.index.trace import Trace
from client.index.vector_cache import VectorCache
from shared_schema.errors import ErrorCode, InterleafError

_VIEWS: Final = 4
_BESIDE: Final = 4
"""Searches by words at the same time; more wait for their turn."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One consistent cut: a generation and the Effective Memory that the answer is made of."""

    generation: Generation
    memory: EffectiveMemory


class _Stopwatch:
    def __init__(self) -> None:
        self.times: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.times[name] = (time.perf_counter() - start) * 1_000


@dataclass(frozen=True, slots=True)
class _Words:
    """The search by words: best units by position, the overlay's scores, and what can be reached."""

    terms: tuple[str, ...]
    missing: tuple[str, ...]
    frequencies: Mapping[str, int]
    overlay: Floats
    bm25: dict[int, float]
    full: float


def _no_reranker() -> ranking.PairReranker | None:
    return None


class Searcher:
    """Searches any Project's snapshots. Thread-safe; keeps a few views, nothing else.

    ``reranker`` is a prepared cross-encoder; without one, late interaction reranks.
    """

    def __init__(
        self,
        cache: VectorCache,
        reranker: Callable[[], ranking.PairReranker | None] = _no_reranker,
    ) -> None:
        self._cache = cache
        self._reranker = reranker
        self._views: OrderedDict[tuple[str, str, str], View] = OrderedDict()
        self._lock = Lock()
        self._beside = ThreadPoolExecutor(_BESIDE, thread_name_prefix="search")

    def search(self, snapshot: Snapshot, query: str, embedder: Embedder) -> Trace:
        """Search a snapshot with the embedder that its generation was built with.

        Raises:
            InterleafError: SEARCH_INDEX_PREPARING, when the generation is of another embedder; and
                what the embedder or reranker raises.
            IndexCorruptError: the generation's files are broken.
        """
        generation, memory = snapshot.generation, snapshot.memory
        if generation.manifest.versions.embedder != embedder.fingerprint:
            raise InterleafError(
                ErrorCode.SEARCH_INDEX_PREPARING,
                "The search index is being built again for another model. Try again shortly.",
                details={"done": 0, "total": len(generation.units)},
            )
        watch = _Stopwatch()
        with watch.stage("view"):
            view = self._view(generation, memory, embedder)
        # The model computes without the interpreter's lock, so words are searched for meanwhile.
        searching = self._beside.submit(_words, view, query, watch)
        try:
            with watch.stage("embed_query"):
                vectors = embedder.embed_query(query)
        finally:
            # Whatever became of the query: nobody reads the generation when this returns.
            wait([searching])
        words = searching.result()
        with watch.stage("embed_overlay"):
            view.embed(self._cache, embedder, words.overlay)
        with watch.stage("dense"):
            cosines = by_meaning(view, vectors)
        with watch.stage("fusion"):
            found, coverage = union(view, query, words.bm25, cosines, words.frequencies)
            scores = _fuse(found, coverage)
        reranker = self._reranker()
        with watch.stage("rerank"):
            _rerank(view, query, vectors, reranker, found, scores, coverage)
        name = reranker.name if reranker else ranking.LATE_INTERACTION
        with watch.stage("assembly"):
            assembly, listing = assembled(view, name, found, words.full, scores)
        return Trace(
            index_revision=generation.revision,
            generation=generation.name,
            memory_hash=memory.hash,
            query_terms=words.terms,
            missing_terms=words.missing,
            coverage=coverage.own,
            foreign_coverage=coverage.foreign,
            alpha=ranking.fusion_weight(coverage.own),
            rerank_weight=ranking.rerank_weight(coverage.own),
            reranker=name,
            listing=listing,
            units=tuple(listing.ranked[index].unit for index in assembly.selected),
            selected=assembly.selected,
            tokens=assembly.tokens,
            index_lag=view.lag,
            latencies=watch.times,
            is_live=view.is_live,
            is_draft=view.is_draft,
        )

    def view(self, snapshot: Snapshot, embedder: Embedder) -> View:
        """Return what `search` looks at, kept from one call to the next."""
        return self._view(snapshot.generation, snapshot.memory, embedder)

    def forget(self, project_id: str) -> None:
        """Drop what is kept in memory of a Project."""
        with self._lock:
            for key in [key for key in self._views if key[1] == project_id]:
                del self._views[key]

    def _view(self, generation: Generation, memory: EffectiveMemory, embedder: Embedder) -> View:
        key = (str(generation.folder), memory.project_id, memory.hash)
        with self._lock:
            # A generation that was opened again stands for other mapped files.
            if (view := self._views.get(key)) is not None and view.generation is generation:
                self._views.move_to_end(key)
                return view
        view = View(generation, memory, embedder)
        with self._lock:
            self._views[key] = view
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        return view


def _words(view: View, query: str, watch: _Stopwatch) -> _Words:
    """Search by words; of a long query, by its rarest ones."""
    with watch.stage("lexical"):
        return _by_words(view, query_terms(query))


def _by_words(view: View, terms: Sequence[str]) -> _Words:
    frequencies = {term: view.frequency(term) for term in terms}
    missing = tuple(term for term, count in frequencies.items() if not count)
    searched = searched_terms(frequencies)
    overlay = view.bm25(searched)
    return _Words(
        terms=tuple(terms),
        missing=missing,
        frequencies=frequencies,
        overlay=overlay,
        bm25=by_words(view, searched, overlay),
        full=full_bm25(view, frequencies),
    )


def _fuse(found: Candidates, coverage: ranking.Coverage) -> Scores:
    """Fuse both lists' scores; equals stay in the order of the units."""
    count = len(found.positions)
    positions = np.fromiter(found.positions, dtype=np.intp, count=count)
    bm25 = np.fromiter((found.bm25.get(p, 0.0) for p in found.positions), dtype=np.float32, count=count)
    alpha = ranking.fusion_weight(coverage.of(found.foreign[positions]))
    fused = ranking.fuse(bm25, found.dense[positions], alpha)
    return Scores(np.lexsort((positions, -fused)).tolist(), fused)


def _rerank(
    view: View,
    query: str,
    vectors: QueryVectors,
    reranker: ranking.PairReranker | None,
    found: Candidates,
    scores: Scores,
    coverage: ranking.Coverage,
) -> None:
    """Look at the best candidates again and put them first, in the order of their mixed scores.

    Units of a resource that the query names are looked at in any case and go before all others; those
    of one that no longer holds and is not named go behind them.
    """
    named = [place for place in scores.order if found.positions[place] in found.identity]
    depth = ranking.RERANK if reranker else ranking.rerank_depth(coverage.least)
    best = list(dict.fromkeys([*scores.order[:depth], *named]))
    if not best:
        return
    at = np.array([found.positions[place] for place in best], dtype=np.intp)
    raw, excess = _looked_at_again(view, query, vectors, reranker, at)
    weight = ranking.rerank_weight(coverage.of(found.foreign[at]))
    mixed = ranking.mix(scores.fused[best], raw - excess * found.both_cjk[at].astype(np.float32), weight)
    scores.reranked = {place: float(score) for place, score in zip(best, raw, strict=True)}
    scores.finals = {place: float(score) for place, score in zip(best, mixed, strict=True)}
    retired = {place for place in best if resource_at(view, found.positions[place]).retired}
    scores.retired = frozenset(retired.difference(named))
    best.sort(key=lambda place: (place not in named, place in scores.retired, -scores.finals[place], place))
    scores.order = [*best, *(place for place in scores.order if place not in scores.finals)]


def _looked_at_again(
    view: View,
    query: str,
    vectors: QueryVectors,
    reranker: ranking.PairReranker | None,
    positions: NDArray[np.intp],
) -> tuple[Floats, np.float32]:
    """Return the reranker's scores, and what of them is the script's alone where it is the query's."""
    if reranker is not None:
        passages = [passage_of(unit_at(view, position)[0]) for position in positions.tolist()]
        return np.array(reranker.score(query, passages), dtype=np.float32), np.float32(0.0)
    stored = [vectors_at(view, position) for position in positions.tolist()]
    raw = ranking.maxsim(vectors.tokens, [v.tokens for v in stored], [v.scales for v in stored])
    excess = ranking.same_script(view.generation.manifest.versions.embedder).late_interaction
    return raw, np.float32(excess)
