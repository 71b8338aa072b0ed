"""Building a generation beside the one that serves.

What did not change is taken over: units without cutting them again, vectors without embedding them
again, files by a second name. Nothing is visible to readers before the whole is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from client.domain.chunking import passage_of
from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder, PassageVectors
from client.index.files import (
    IndexCorruptError,
    digest_of,
    files_below,
    link_or_copy,
    private_directory,
    sync_directory,
)
from client.index.generation import (
    LEXICAL,
    VECTORS,
    Generation,
    IndexedResource,
    IndexedUnit,
    write_units,
)
from client.index.lexical import FieldTerms, LexicalDocument, write_lexical
from client.index.manifest import Manifest, Versions, write_manifest
from client.index.planning import NewUnit, Plan, plan_of, segments_to_rewrite
from client.index.vector_cache import VectorCache
from client.index.vectors import PARTS, SegmentInfo, SegmentWriter

_EMBED_BATCH: Final = 8
_CACHE_BATCH: Final = 256
_LEXICAL_REMOVED: Final = 0.3
"""A share of deleted units above which the lexical index is built whole again."""

Progress = Callable[[int, int], None]
Checkpoint = Callable[[str], None]


def _ignore(*_: object) -> None:
    """Do nothing."""


class Builder:
    """Builds generations with one embedder.

    ``progress(done, total)`` counts units that have vectors; ``checkpoint(name)`` is called at named
    points, between which a crash must be harmless.
    """

    def __init__(
        self,
        embedder: Embedder,
        cache: VectorCache,
        progress: Progress = _ignore,
        checkpoint: Checkpoint = _ignore,
    ) -> None:
        self._embedder = embedder
        self._cache = cache
        self._progress = progress
        self._checkpoint = checkpoint
        self.versions = Versions.current(embedder.fingerprint, embedder.dimensions, embedder.token_dimensions)

    def build(self, memory: EffectiveMemory, folder: Path, former: Generation | None) -> Generation:
        """Write a generation of ``memory`` into the empty ``folder`` and return it, opened and checked.

        ``former`` lends what did not change; one of other versions lends nothing.

        Raises:
            IndexCorruptError: the result does not hold what it should, or the former's files broke.
            InterleafError: from the embedder.
        """
        if former is not None and former.manifest.versions != self.versions:
            former = None
        plan = plan_of(memory, former, self._embedder.count_tokens)
        self._checkpoint("planned")
        private_directory(folder / VECTORS)
        segments = self._vectors(plan, folder / VECTORS, former)
        self._checkpoint("vectors written")
        lexical_removed = self._lexical(plan, memory, folder / LEXICAL, former)
        self._checkpoint("lexical written")
        resources = _indexed(memory, plan)
        write_units(folder, resources)
        digests = _digests(folder, former)
        manifest = Manifest(
            versions=self.versions,
            project_id=memory.project_id,
            memory_hash=memory.hash,
            resources=len(resources),
            units=sum(len(resource.units) for resource in resources.values()),
            next_uid=plan.next_uid,
            lexical_removed=lexical_removed,
            segments=segments,
            files=digests,
        )
        _finish(folder, manifest)
        self._checkpoint("written")
        if former is not None:
            former.check()  # What was taken over was not read again.
        generation = Generation.open(folder, frozenset(digests.values()), resources)
        _smoke_test(generation)
        generation.warm(memory)
        return generation

    def _vectors(self, plan: Plan, folder: Path, former: Generation | None) -> tuple[SegmentInfo, ...]:
        """Give every unit a place: kept segments by a second name, everything else in a new one."""
        infos = list(former.manifest.segments) if former else []
        rewritten = segments_to_rewrite(plan, infos)
        numbers: dict[int, int] = {}
        segments: list[SegmentInfo] = []
        for number, info in enumerate(infos):
            if number not in rewritten and former is not None:
                for part in PARTS:
                    name = f"{info.name}.{part}"
                    link_or_copy(former.folder / VECTORS / name, folder / name)
                numbers[number] = len(segments)
                segments.append(info)
        new = len(segments)
        name = f"s{1 + max((_serial(info.name) for info in infos), default=0)}"
        shape = (self._embedder.dimensions, self._embedder.token_dimensions)
        with SegmentWriter(folder, name, *shape) as writer:
            for resource_id, resource in plan.kept.items():
                units = []
                for unit in resource.units:
                    segment, row = unit.place
                    if segment in numbers:
                        place = (numbers[segment], row)
                    else:
                        place = (new, writer.append(_vectors_of(former, unit)))
                    units.append(unit if place == unit.place else replace(unit, place=place))
                plan.kept[resource_id] = replace(resource, units=tuple(units))
            self._append_fresh(plan, writer, new, former)
            segments.append(writer.finish())
        return tuple(segments)

    def _append_fresh(
        self, plan: Plan, writer: SegmentWriter, segment: int, former: Generation | None
    ) -> None:
        fresh = [new for units in plan.fresh.values() for new in units]
        done = sum(len(resource.units) for resource in plan.kept.values())
        total = done + len(fresh)
        self._progress(done, total)
        rows: dict[str, int] = {}
        for start in range(0, len(fresh), _CACHE_BATCH):
            batch = fresh[start : start + _CACHE_BATCH]
            wanted = [new for new in batch if new.passage not in rows]
            for count, (passage, vectors) in enumerate(self._passages(wanted, former)):
                if passage not in rows:
                    rows[passage] = writer.append(vectors)
                self._progress(done + count, total)
            for new in batch:
                new.place = (segment, rows[new.passage])
            done += len(batch)
            self._progress(done, total)

    def _passages(
        self, wanted: Sequence[NewUnit], former: Generation | None
    ) -> Iterable[tuple[str, PassageVectors]]:
        """Yield the vectors of passages: the former generation's, the cache's, then newly made ones."""
        if former is not None:
            known = former.number_of_passage
            yield from (
                (new.passage, former.vectors.unit(known[new.passage]))
                for new in wanted
                if new.passage in known
            )
            wanted = [new for new in wanted if new.passage not in known]
        cached = self._cache.get_many(self._embedder.fingerprint, [new.passage for new in wanted])
        cached = {key: value for key, value in cached.items() if self._fits(value)}
        yield from cached.items()
        missing = {new.passage: passage_of(new.unit) for new in wanted if new.passage not in cached}
        for batch in self._batches(missing):
            vectors = self._embedder.embed_passages([missing[passage] for passage in batch])
            made = dict(zip(batch, vectors, strict=True))
            self._cache.put_many(self._embedder.fingerprint, made)
            yield from made.items()
            self._checkpoint("batch embedded")

    def _batches(self, passages: Mapping[str, str]) -> Iterable[list[str]]:
        """Split passages (texts by hash) into batches of one length, the shortest first.

        A batch is padded to its longest: in the document's order a quarter of the work would be padding.
        """
        lengths = dict(zip(passages, self._embedder.count_tokens(list(passages.values())), strict=True))
        ordered = sorted(passages, key=lengths.__getitem__)
        for start in range(0, len(ordered), _EMBED_BATCH):
            yield ordered[start : start + _EMBED_BATCH]

    def _fits(self, vectors: PassageVectors) -> bool:
        return (
            len(vectors.pooled) == self._embedder.dimensions
            and vectors.tokens.shape[1] == self._embedder.token_dimensions
        )

    def _lexical(self, plan: Plan, memory: EffectiveMemory, folder: Path, former: Generation | None) -> int:
        """Write the lexical index and return how many deleted units it still counts."""
        documents = [
            LexicalDocument(new.uid, resource_id, new.terms)
            for resource_id, units in plan.fresh.items()
            for new in units
        ]
        if former is not None:
            gone = sum(len(former.resources[resource_id].units) for resource_id in plan.removed)
            removed = former.manifest.lexical_removed + gone
            if removed <= _LEXICAL_REMOVED * max(len(former.units), 1):
                private_directory(folder)
                for name, path in files_below(former.folder / LEXICAL).items():
                    link_or_copy(path, folder / name)
                if documents or plan.removed:
                    write_lexical(folder, plan.removed, documents)
                return removed
            documents.extend(_documents_again(plan, memory))
        write_lexical(folder, (), documents)
        return 0


def _finish(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, last of all, and bring the folder to disk."""
    write_manifest(folder, manifest)
    for directory in (folder / VECTORS, folder / LEXICAL, folder, folder.parent):
        sync_directory(directory)


def _indexed(memory: EffectiveMemory, plan: Plan) -> dict[str, IndexedResource]:
    """Return what the generation keeps of each resource, in the memory's order."""
    return {
        resource.resource_id: plan.kept.get(resource.resource_id)
        or IndexedResource(
            resource.resource_id,
            resource.signature,
            tuple(new.indexed() for new in plan.fresh[resource.resource_id]),
        )
        for resource in memory.resources
    }


def _digests(folder: Path, former: Generation | None) -> dict[str, str]:
    """Return the digest of every file by name; files that are the former generation's are not read."""
    digests = {}
    for name, path in files_below(folder).items():
        known = former.manifest.files.get(name) if former else None
        shared = former is not None and known is not None and _same_file(path, former.folder / name)
        digests[name] = known if known is not None and shared else digest_of(path)
    return digests


def _same_file(path: Path, other: Path) -> bool:
    return other.exists() and path.samefile(other)


def _serial(name: str) -> int:
    return int(name[1:])


def _vectors_of(former: Generation | None, unit: IndexedUnit) -> PassageVectors:
    if former is None:
        raise ValueError("a kept unit belongs to a former generation")
    return former.vectors.unit(former.number_of_uid[unit.uid])


def _documents_again(plan: Plan, memory: EffectiveMemory) -> Iterable[LexicalDocument]:
    for resource_id, resource in plan.kept.items():
        source = memory.by_id[resource_id]
        for unit in resource.units:
            yield LexicalDocument(unit.uid, resource_id, FieldTerms.of(unit.as_unit(source)))


def _smoke_test(generation: Generation) -> None:
    """Search once in both lists; what was just written must be found."""
    if not generation.units:
        return
    if not generation.lexical.frequency(generation.owners[0], "resource"):
        raise IndexCorruptError("the lexical index does not find what was written")
    for number in (0, len(generation.units) - 1):
        vectors = generation.vectors.unit(number)
        cosine = float(generation.vectors.cosines(vectors.pooled)[number])
        if not 0.99 < cosine < 1.01:
            raise IndexCorruptError("the vectors do not find what was written")
