"""Search: identity and BM25 and dense recall, fusion, reranking, assembly, in one pass."""

from __future__ import annotations

import re
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from client.domain import ranking
from client.domain.analysis import query_terms
from client.domain.assembly import Ranked, Signals, assemble, floor_of
from client.domain.chunking import Unit, passage_of
from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder, PassageVectors, QueryVectors
from client.index.generation import Generation
from client.index.lexical import QUERY_TERMS
from client.index.overlay import View
from client.index.trace import Candidate, Trace
from client.index.vector_cache import VectorCache
from shared_schema.errors import ErrorCode, InterleafError

_VIEWS: Final = 4
_IDENTITY_UNITS: Final = 8
"""Units of a resource that the query names, taken into the candidates whatever their scores."""
_NAME: Final = re.compile(r"[^\s\"'`<>()\[\]{},;，。；：、（）「」《》“”‘’]+")

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


@dataclass(slots=True)
class _Candidates:
    """The union of all lists: positions (generation's units first, then the overlay's) and scores."""

    positions: list[int]
    identity: set[int]
    bm25: dict[int, float]
    bm25_ranks: dict[int, int]
    cosines: Floats
    dense_ranks: dict[int, int]


class Searcher:
    """Searches any Project's snapshots. Thread-safe; keeps a few views, nothing else.

    ``reranker`` is a prepared cross-encoder; without one, late interaction reranks.
    """

    def __init__(
        self,
        cache: VectorCache,
        reranker: Callable[[], ranking.PairReranker | None] = lambda: None,
    ) -> None:
        self._cache = cache
        self._reranker = reranker
        self._views: OrderedDict[tuple[str, str, str], View] = OrderedDict()
        self._lock = Lock()

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
        with watch.stage("lexical"):
            terms = query_terms(query)
            frequencies = {term: view.frequency(term) for term in terms}
            coverage = sum(1 for count in frequencies.values() if count) / len(terms) if terms else 0.0
            searched = sorted((t for t in terms if frequencies[t]), key=frequencies.__getitem__)[:QUERY_TERMS]
            overlay_bm25 = view.bm25(searched)
            bm25 = _lexical(view, searched, overlay_bm25)
            full = _full_bm25(view, frequencies)
        with watch.stage("embed_query"):
            vectors = embedder.embed_query(query)
        with watch.stage("embed_overlay"):
            view.embed(self._cache, embedder, overlay_bm25)
        with watch.stage("dense"):
            cosines = _cosines(view, vectors)
        with watch.stage("fusion"):
            found = _union(view, query, bm25, cosines)
            order, fused, rrf = _fuse(found, coverage)
        reranker = self._reranker()
        with watch.stage("rerank"):
            reranked, finals, order = _rerank(view, query, vectors, reranker, found, fused, order, coverage)
        name = reranker.name if reranker else ranking.LATE_INTERACTION
        with watch.stage("assembly"):
            floor = floor_of(name)
            ranked: list[Ranked] = []
            shares: list[float] = []
            for place in order:
                position = found.positions[place]
                share = found.bm25.get(position, 0.0) / full
                signals = Signals(float(cosines[position]), reranked.get(place), share)
                unit, ordinal = _unit(view, position)
                named = position in found.identity
                ranked.append(
                    Ranked(unit, ordinal, place in reranked or named, named or floor.passes(signals))
                )
                shares.append(share)
            assembly = assemble(ranked)
            candidates = tuple(
                Candidate(
                    unit=each.unit,
                    ordinal=each.ordinal,
                    identity=found.positions[place] in found.identity,
                    overlay=found.positions[place] >= len(generation.units),
                    bm25_rank=found.bm25_ranks.get(found.positions[place]),
                    bm25=found.bm25.get(found.positions[place], 0.0),
                    bm25_share=share,
                    dense_rank=found.dense_ranks.get(found.positions[place]),
                    dense=float(cosines[found.positions[place]]),
                    rrf=rrf[place],
                    fused=float(fused[place]),
                    rerank=reranked.get(place),
                    final=finals.get(place),
                    relevant=each.relevant,
                    reason=reason,
                )
                for place, each, share, reason in zip(order, ranked, shares, assembly.reasons, strict=True)
            )
        return Trace(
            index_revision=generation.revision,
            generation=generation.name,
            memory_hash=memory.hash,
            query_terms=tuple(terms),
            coverage=coverage,
            alpha=ranking.fusion_weight(coverage),
            rerank_weight=ranking.rerank_weight(coverage),
            reranker=name,
            candidates=candidates,
            selected=assembly.selected,
            tokens=assembly.tokens,
            index_lag=view.lag,
            latencies=watch.times,
            is_live=view.is_live,
        )

    def _view(self, generation: Generation, memory: EffectiveMemory, embedder: Embedder) -> View:
        key = (str(generation.folder), memory.project_id, memory.hash)
        with self._lock:
            if (view := self._views.get(key)) is not None:
                self._views.move_to_end(key)
                return view
        view = View(generation, memory, embedder)
        with self._lock:
            self._views[key] = view
            while len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        return view


def _lexical(view: View, terms: Sequence[str], overlay: Floats) -> dict[int, float]:
    """Return the best units by BM25: score by position, best first, at most a list's size."""
    generation = view.generation
    size = ranking.LIST_SIZE
    limit = size
    while True:
        hits = generation.lexical.search(terms, limit)
        live = [
            (number, score)
            for uid, score in hits
            if (number := generation.number_of_uid.get(uid)) is not None and view.live[number]
        ]
        # Units that changed since may have taken all places.
        if len(live) >= size or len(hits) < limit or limit > size + view.stale_units:
            break
        limit *= 4
    first = len(generation.units)
    live.extend((first + number, float(score)) for number, score in enumerate(overlay) if score > 0)
    live.sort(key=lambda hit: (-hit[1], hit[0]))
    return dict(live[:size])


def _full_bm25(view: View, frequencies: dict[str, int]) -> float:
    """Return what a passage full of all the query's terms would score, unknown terms included."""
    documents = len(view.generation.units) + len(view.overlay)
    total = sum(
        ranking.inverse_document_frequency(max(documents, count), count) for count in frequencies.values()
    )
    return max(total * (1.0 + ranking.BM25_K1), 1e-9)


def _cosines(view: View, query: QueryVectors) -> Floats:
    """Return every position's cosine; what may not be returned is minus infinity."""
    own = view.generation.vectors.cosines(query.pooled)
    own[~view.live] = -np.inf
    overlaid = [
        -np.inf if each.vectors is None else float(each.vectors.pooled @ query.pooled)
        for each in view.overlay
    ]
    return np.concatenate([own, np.array(overlaid, dtype=np.float32)])


def _union(view: View, query: str, bm25: dict[int, float], cosines: Floats) -> _Candidates:
    size = min(ranking.LIST_SIZE, len(cosines))
    best = np.argpartition(-cosines, size - 1)[:size] if size else np.array([], dtype=np.intp)
    dense = sorted((int(n) for n in best if np.isfinite(cosines[n])), key=lambda n: (-cosines[n], n))
    bm25 = {position: score for position, score in bm25.items() if np.isfinite(cosines[position])}
    identity = _identified(view, query, cosines)
    positions = list(dict.fromkeys([*identity, *bm25, *dense]))
    return _Candidates(
        positions,
        set(identity),
        bm25,
        {position: rank for rank, position in enumerate(bm25, 1)},
        cosines,
        {position: rank for rank, position in enumerate(dense, 1)},
    )


def _identified(view: View, query: str, cosines: Floats) -> list[int]:
    """Return units of the resources that the query names: by id or path anywhere, by title as a whole."""
    memory = view.memory
    whole = unicodedata.normalize("NFC", query.strip())
    names = [whole, *(name.rstrip(".:!?") for name in _NAME.findall(whole))]
    resources = dict.fromkeys(
        resource.resource_id
        for name in names
        if (resource := memory.by_id.get(name) or memory.by_path.get(name)) is not None
    )
    resources.update(dict.fromkeys(view.titled(whole)))
    found: list[int] = []
    for resource_id in resources:
        units = [n for n in _positions(view, resource_id) if np.isfinite(cosines[n])]
        found.extend(sorted(units, key=lambda n: (-cosines[n], n))[:_IDENTITY_UNITS])
    return found


def _positions(view: View, resource_id: str) -> list[int]:
    generation = view.generation
    first = len(generation.units)
    found = [first + n for n, each in enumerate(view.overlay) if each.unit.resource_id == resource_id]
    if not found and resource_id in generation.resources:
        start = generation.first_unit[resource_id]
        found = list(range(start, start + len(generation.resources[resource_id].units)))
    return found


def _fuse(found: _Candidates, coverage: float) -> tuple[list[int], Floats, list[float]]:
    """Return candidates' places in fused order, their fused scores, and RRF beside them."""
    bm25 = np.array([found.bm25.get(p, 0.0) for p in found.positions], dtype=np.float32)
    dense = found.cosines[found.positions] if found.positions else bm25
    fused = ranking.fuse(bm25, dense, ranking.fusion_weight(coverage))
    order = sorted(range(len(fused)), key=lambda n: (-fused[n], found.positions[n]))
    rrf = ranking.rrf(
        [found.bm25_ranks.get(p) for p in found.positions],
        [found.dense_ranks.get(p) for p in found.positions],
    )
    return order, fused, rrf


def _rerank(
    view: View,
    query: str,
    vectors: QueryVectors,
    reranker: ranking.PairReranker | None,
    found: _Candidates,
    fused: Floats,
    order: list[int],
    coverage: float,
) -> tuple[dict[int, float], dict[int, float], list[int]]:
    """Return raw and mixed scores of the best candidates by place, and the final order of all.

    Units of a resource that the query names go first, in the order of their scores.
    """
    named = [place for place in order if found.positions[place] in found.identity]
    depth = ranking.RERANK if reranker else ranking.rerank_depth(coverage)
    best = list(dict.fromkeys([*order[:depth], *named]))
    if reranker is None:
        stored = [_vectors(view, found.positions[place]) for place in best]
        raw = ranking.maxsim(vectors.tokens, [v.tokens for v in stored], [v.scales for v in stored])
    else:
        passages = [passage_of(_unit(view, found.positions[place])[0]) for place in best]
        raw = np.array(reranker.score(query, passages), dtype=np.float32)
    mixed = ranking.mix(fused[best], raw, ranking.rerank_weight(coverage)) if best else raw
    finals = {place: float(score) for place, score in zip(best, mixed, strict=True)}
    best.sort(key=lambda place: (found.positions[place] not in found.identity, -finals[place], place))
    rest = [place for place in order if place not in finals]
    return dict(zip(finals, map(float, raw), strict=True)), finals, [*best, *rest]


def _vectors(view: View, position: int) -> PassageVectors:
    generation = view.generation
    if position < len(generation.units):
        return generation.vectors.unit(position)
    vectors = view.overlay[position - len(generation.units)].vectors
    if vectors is None:
        raise ValueError("a unit without vectors is no candidate")
    return vectors


def _unit(view: View, position: int) -> tuple[Unit, int]:
    """Return the unit at a position, text cut from the memory of the moment, and its ordinal."""
    generation = view.generation
    if position >= len(generation.units):
        each = view.overlay[position - len(generation.units)]
        return each.unit, each.ordinal
    owner = generation.owners[position]
    unit = generation.units[position].as_unit(view.memory.by_id[owner])
    return unit, position - generation.first_unit[owner]
