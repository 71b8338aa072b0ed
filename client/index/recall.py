"""Recall: which units are candidates, by name, by words and by meaning.

A position numbers what can be found in a view: the generation's units first, then the overlay's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from client.domain import ranking
from client.domain.analysis import is_cjk
from client.domain.chunking import Unit
from client.domain.effective_memory import EffectiveResource
from client.domain.embedding import PassageVectors, QueryVectors
from client.index.lexical import QUERY_TERMS
from client.index.overlay import View
from shared_schema import limits

_IDENTITY_UNITS: Final = 8
"""Units of a resource that the query names, taken into the candidates whatever their scores."""
_NAME: Final = re.compile(r"[^\s\"'`<>()\[\]{},;，。；：、（）「」《》“”‘’]+")
_PLACE: Final = re.compile(r"(?:#.*|(?::\d+)+)$")
"""Behind a path: a fragment, or line and column."""
_ENDING: Final = ".md"

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Candidates:
    """The union of all lists: positions (generation's units first, then the overlay's) and scores."""

    positions: list[int]
    identity: set[int]
    bm25: dict[int, float]
    """By position, best first."""
    both_cjk: NDArray[np.bool_]
    """By position: the query is Chinese, Japanese or Korean, and the passage holds such letters."""
    foreign: NDArray[np.bool_]
    """By position: the query is, and the passage holds none."""
    cosines: Floats
    """As they are, by position."""
    dense: Floats
    """What the dense list is ranked by: nearness that comes from the script alone is taken off."""
    dense_list: list[int]
    """The best positions by meaning, best first."""


def searched_terms(frequencies: Mapping[str, int]) -> list[str]:
    """Return the terms that are searched for: those that occur, and of a long query the rarest ones."""
    present = [term for term, count in frequencies.items() if count]
    return sorted(present, key=frequencies.__getitem__)[:QUERY_TERMS]


def by_words(
    view: View, terms: Sequence[str], overlay: Floats, size: int = ranking.LIST_SIZE
) -> dict[int, float]:
    """Return the best units by BM25: score by position, best first, at most ``size``."""
    generation = view.generation
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


def full_bm25(view: View, frequencies: Mapping[str, int]) -> float:
    """Return what a passage full of all the query's terms would score, unknown terms included."""
    documents = len(view.generation.units) + len(view.overlay)
    total = sum(
        ranking.inverse_document_frequency(max(documents, count), count) for count in frequencies.values()
    )
    return max(total * (1.0 + ranking.BM25_K1), 1e-9)


def by_meaning(view: View, query: QueryVectors) -> Floats:
    """Return every position's cosine; what may not be returned is minus infinity."""
    own = view.generation.vectors.cosines(query.pooled)
    own[~view.live] = -np.inf
    overlaid = [
        -np.inf if each.vectors is None else float(each.vectors.pooled @ query.pooled)
        for each in view.overlay
    ]
    return np.concatenate([own, np.array(overlaid, dtype=np.float32)])


def union(
    view: View, query: str, bm25: dict[int, float], cosines: Floats, frequencies: Mapping[str, int]
) -> tuple[Candidates, ranking.Coverage]:
    """Join what was found by name, by words and by meaning; tell how far words could lead.

    ``frequencies``: query term → how many units hold it.
    """
    generation = view.generation
    both_cjk = np.zeros(len(cosines), dtype=bool)
    foreign = both_cjk
    scores = cosines
    present = [term for term, count in frequencies.items() if count]
    coverage = ranking.Coverage(len(present) / max(len(frequencies), 1))
    if is_cjk(query):
        both_cjk[: len(generation.cjk)] = generation.cjk
        both_cjk[len(generation.cjk) :] = [each.holds_cjk for each in view.overlay]
        foreign = ~both_cjk
        excess = np.float32(ranking.same_script(generation.manifest.versions.embedder).cosine)
        scores = cosines - excess * both_cjk.astype(np.float32)
        if np.isfinite(cosines[foreign]).any():
            other = sum(not is_cjk(term) for term in present) / max(len(frequencies), 1)
            coverage = ranking.Coverage(coverage.own, other)
    reachable = np.isfinite(cosines[list(bm25)]) if bm25 else ()
    bm25 = dict(compress(bm25.items(), reachable))
    dense = _best(scores, ranking.dense_list_size(coverage.least))
    identity = _identified(view, query, cosines)
    positions = list(dict.fromkeys([*identity, *bm25, *dense]))
    return Candidates(positions, set(identity), bm25, both_cjk, foreign, cosines, scores, dense), coverage


def _best(scores: Floats, size: int) -> list[int]:
    """Return the positions of the best finite scores, best first, at most ``size``."""
    best = np.argpartition(scores, -size)[-size:] if size < len(scores) else np.arange(len(scores))
    best = best[np.isfinite(scores[best])]
    found: list[int] = best[np.lexsort((best, -scores[best]))].tolist()
    return found


def _identified(view: View, query: str, cosines: Floats) -> list[int]:
    """Return units of the resources that the query names: by id or path anywhere, by title as a whole."""
    memory = view.memory
    whole = unicodedata.normalize("NFC", query.strip())
    resources = dict.fromkeys(
        resource.resource_id
        for name in [whole, *_names(whole)]
        if (resource := memory.by_id.get(name) or memory.by_path.get(name)) is not None
    )
    resources.update(dict.fromkeys(view.titled(whole)))
    found: list[int] = []
    for resource_id in resources:
        units = [n for n in positions_of(view, resource_id) if np.isfinite(cosines[n])]
        found.extend(sorted(units, key=lambda n: (-cosines[n], n))[:_IDENTITY_UNITS])
    return found


def _names(query: str) -> Iterator[str]:
    """Yield what may be an id or a path in a query: whole words, and what is left of them without a
    line number, a fragment, a leading ``./`` or the letters that stand around a path where a script has
    no spaces."""
    for word in _NAME.findall(query):
        name = word.rstrip(".:!?")
        yield name
        bare = _PLACE.sub("", name.removeprefix("./"))
        if bare != name:
            yield bare
        ending = bare.rfind(_ENDING)
        if ending > 0 and is_cjk(bare):
            path = bare[: ending + len(_ENDING)]
            yield from (path[start:] for start in range(min(len(path), limits.PATH_BYTES)))


def positions_of(view: View, resource_id: str) -> list[int]:
    """Return a resource's positions, those that may not be returned included."""
    generation = view.generation
    first = len(generation.units)
    found = [first + n for n, each in enumerate(view.overlay) if each.unit.resource_id == resource_id]
    if not found and resource_id in generation.resources:
        start = generation.first_unit[resource_id]
        found = list(range(start, start + len(generation.resources[resource_id].units)))
    return found


def resource_at(view: View, position: int) -> EffectiveResource:
    """Return the resource of a position, as the memory shows it."""
    generation = view.generation
    if position < len(generation.units):
        owner = generation.owners[position]
    else:
        owner = view.overlay[position - len(generation.units)].unit.resource_id
    return view.memory.by_id[owner]


def vectors_at(view: View, position: int) -> PassageVectors:
    """Return the vectors at a position."""
    generation = view.generation
    if position < len(generation.units):
        return generation.vectors.unit(position)
    vectors = view.overlay[position - len(generation.units)].vectors
    if vectors is None:
        raise ValueError("a unit without vectors is no candidate")
    return vectors


def unit_at(view: View, position: int) -> tuple[Unit, int]:
    """Return the unit at a position, text cut from the memory of the moment, and its ordinal."""
    generation = view.generation
    if position >= len(generation.units):
        each = view.overlay[position - len(generation.units)]
        return each.unit, each.ordinal
    resource = resource_at(view, position)
    unit = generation.units[position].as_unit(resource)
    return unit, position - generation.first_unit[resource.resource_id]
