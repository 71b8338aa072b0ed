"""What the generation does not know yet, looked at on the fly.

A view joins one generation and one Effective Memory. Units of resources that were changed or removed
since are left out; changed and new ones are cut, analysed and embedded in memory, a bounded number at
a time, Drafts of this machine first. So an agent finds what it has just written, and nothing that may
no longer be seen is ever returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from client.domain.analysis import holds_cjk
from client.domain.chunking import Unit, cut, passage_of
from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.embedding import Embedder, PassageVectors
from client.domain.ranking import FIELD_BOOSTS, bm25_field, inverse_document_frequency
from client.index.generation import Generation
from client.index.lexical import FieldTerms
from client.index.vector_cache import VectorCache, passage_hash
from shared_schema.memory import Provenance

OVERLAY_UNITS: Final = 32
"""Units embedded within one call."""
OVERLAY_RESOURCES: Final = 64
OVERLAY_CHARACTERS: Final = 512 * 1024
"""Changed resources, and characters of theirs, cut within one call. The rest waits for the index."""


@dataclass(slots=True)
class OverlayUnit:
    """A unit that the generation does not have."""

    unit: Unit
    ordinal: int
    terms: FieldTerms
    passage: str
    is_draft: bool
    counts: tuple[Counter[str], Counter[str], Counter[str]] = field(init=False)
    holds_cjk: bool = field(init=False)
    vectors: PassageVectors | None = None

    def __post_init__(self) -> None:
        self.holds_cjk = holds_cjk(passage_of(self.unit))
        self.counts = (Counter(self.terms.path), Counter(self.terms.headings), Counter(self.terms.body))


class View:
    """One generation seen through one Effective Memory. Thread-safe."""

    def __init__(self, generation: Generation, memory: EffectiveMemory, embedder: Embedder) -> None:
        self.generation = generation
        self.memory = memory
        self._lock = Lock()
        changed: list[EffectiveResource] = []
        self._stale: set[str] = set()
        for resource_id in _suspects(generation, memory):
            resource, indexed = memory.by_id.get(resource_id), generation.resources.get(resource_id)
            if resource and indexed and indexed.signature == resource.signature:
                continue
            if resource is not None:
                changed.append(resource)
            if indexed is not None:
                self._stale.add(resource_id)
        self.live = np.ones(len(generation.units), dtype=bool)
        for resource_id in self._stale:
            first = generation.first_unit[resource_id]
            self.live[first : first + len(generation.resources[resource_id].units)] = False
        self.overlay: list[OverlayUnit] = []
        self._cut(changed, embedder)
        self._overlay_keys = {each.unit.unit_key for each in self.overlay}

    @property
    def lag(self) -> bool:
        """Whether some changed text is neither in the generation nor in the overlay."""
        return bool(self._skipped) or any(each.vectors is None for each in self.overlay)

    @property
    def stale_units(self) -> int:
        """Units of the generation that are left out."""
        return int(len(self.live) - np.count_nonzero(self.live))

    def is_live(self, unit_key: str, resource_id: str) -> bool:
        """Tell whether a unit exists in this memory; of a resource not cut yet, that is assumed."""
        if resource_id not in self.memory.by_id:
            return False
        if resource_id in self._skipped or unit_key in self._overlay_keys:
            return True
        if resource_id in self._stale or resource_id not in self.generation.resources:
            return False
        return any(unit.unit_key == unit_key for unit in self.generation.resources[resource_id].units)

    def is_draft(self, resource_id: str) -> bool:
        """Tell whether what this memory shows of a resource is a Draft."""
        resource = self.memory.by_id.get(resource_id)
        return resource is not None and resource.provenance is Provenance.DRAFT

    def titled(self, title: str) -> list[str]:
        """Return the ids of the resources with exactly this title, case aside."""
        return [resource.resource_id for resource in self.memory.titled(title)]

    def frequency(self, term: str) -> int:
        """Return how many units hold a term."""
        overlaid = sum(1 for each in self.overlay if term in each.counts[2])
        return self.generation.lexical.frequency(term) + overlaid

    def bm25(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 [overlay]: BM25 of the overlay's units, with the generation's statistics."""
        scores = np.zeros(len(self.overlay), dtype=np.float32)
        if not self.overlay:
            return scores
        lexical = self.generation.lexical
        documents = len(lexical) + len(self.overlay)
        for place, (name, boost) in enumerate(FIELD_BOOSTS.items()):
            average = self.generation.average_lengths[place]
            weights = {
                term: inverse_document_frequency(
                    documents,
                    lexical.frequency(term, name)
                    + sum(1 for each in self.overlay if term in each.counts[place]),
                )
                for term in terms
            }
            for number, each in enumerate(self.overlay):
                scores[number] += boost * bm25_field(
                    each.counts[place], each.terms.lengths[place], average, weights
                )
        return scores

    def embed(self, cache: VectorCache, embedder: Embedder, bm25: NDArray[np.float32]) -> None:
        """Give the overlay's units vectors: known ones to all, new ones to at most ``OVERLAY_UNITS``.

        Drafts come first, then those whose words match the query best.
        """
        with self._lock:
            missing = [n for n, each in enumerate(self.overlay) if each.vectors is None]
            if not missing:
                return
            known = self.generation.number_of_passage
            for number in missing:
                each = self.overlay[number]
                if each.passage in known:
                    each.vectors = self.generation.vectors.unit(known[each.passage])
            missing = [n for n in missing if self.overlay[n].vectors is None]
            passages = [self.overlay[n].passage for n in missing]
            cached = cache.get_many(embedder.fingerprint, passages)
            for number, passage in zip(missing, passages, strict=True):
                self.overlay[number].vectors = cached.get(passage)
            missing = [n for n in missing if self.overlay[n].vectors is None]
            missing.sort(key=lambda n: (not self.overlay[n].is_draft, -bm25[n], n))
            chosen = missing[:OVERLAY_UNITS]
            texts = [passage_of(self.overlay[n].unit) for n in chosen]
            made = embedder.embed_passages(texts) if texts else []
            for number, vectors in zip(chosen, made, strict=True):
                self.overlay[number].vectors = vectors
            cache.put_many(
                embedder.fingerprint, dict(zip((self.overlay[n].passage for n in chosen), made, strict=True))
            )

    def _cut(self, changed: list[EffectiveResource], embedder: Embedder) -> None:
        changed.sort(key=lambda each: (each.provenance is not Provenance.DRAFT, each.resource_id))
        self._skipped: set[str] = set()
        characters = 0
        for number, resource in enumerate(changed):
            size = len(resource.body)
            if number >= OVERLAY_RESOURCES or characters + size > OVERLAY_CHARACTERS:
                self._skipped.add(resource.resource_id)
                continue
            characters += size
            for ordinal, unit in enumerate(cut(resource, embedder.count_tokens)):
                self.overlay.append(
                    OverlayUnit(
                        unit,
                        ordinal,
                        FieldTerms.of(unit),
                        passage_hash(passage_of(unit)),
                        resource.provenance is Provenance.DRAFT,
                    )
                )


def _suspects(generation: Generation, memory: EffectiveMemory) -> set[str]:
    """Return the resources that may be others than the generation holds; few where that can be known."""
    if memory.hash == generation.manifest.memory_hash:
        generation.made_of = memory
        return set()
    if generation.made_of is not None:
        return memory.by_id.differing(generation.made_of.by_id)
    return generation.resources.keys() | set(memory.by_id)
