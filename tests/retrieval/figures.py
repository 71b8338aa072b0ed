"""Figures of a run of the repository's own set, as they are stored in ``figures.json``.

The file keeps what the stored run ranked and returned, question by question, and the figures that
follow from it.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from client.clock import system_clock
from client.domain.embedding import Embedder
from client.domain.evaluation import NDCG_AT, ndcg
from client.index.vector_cache import VectorCache
from client.services.evaluation.run_set import Progress, QueryResult, SetResult, no_progress, run_set
from client.services.evaluation.sets import CORPUS, JUDGMENTS, QUERIES, read_set
from client.services.evaluation.variants import VARIANTS

SET: Final = Path(__file__).parent / "set"
FIGURES: Final = Path(__file__).parent / "figures.json"

ANSWER: Final = "answer"


@dataclass(frozen=True, slots=True)
class Kind:
    """What the answers to one kind's questions hold."""

    questions: int
    answerable: int
    answered: int
    """Questions whose answer holds a document of the best grade that was given for them."""
    forbidden: int
    """Documents in answers that must not be there."""
    returned: int
    """Documents in answers."""

    @classmethod
    def of(cls, queries: Sequence[QueryResult]) -> Self:
        """Count in the answers to some questions."""
        return cls(
            len(queries),
            sum(query.answerable for query in queries),
            sum(is_answered(query, query.answer) for query in queries),
            sum(len(query.forbidden_hits) for query in queries),
            sum(len(query.answer) for query in queries),
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """One run, as it is stored."""

    judged: str
    """Hash of the set's three files."""
    embedder: str
    reranker: str
    ndcg: Mapping[str, float]
    """nDCG@10 by variant, over the questions that have a right document."""
    kinds: Mapping[str, Kind]
    kind_ndcg: Mapping[str, Mapping[str, float]]
    rankings: Mapping[str, Mapping[str, Sequence[str]]]
    """Question → variant → the first ten documents, and ``answer`` → what was returned."""

    @classmethod
    def of(cls, result: SetResult, judged: str = "") -> Self:
        """Return a run's figures."""
        kinds = by_kind(result)
        return cls(
            judged,
            result.embedder,
            result.reranker,
            means(result.queries),
            {kind: Kind.of(queries) for kind, queries in kinds.items()},
            {kind: found for kind, queries in kinds.items() if (found := means(queries))},
            {query.query_id: _rankings(query) for query in result.queries},
        )

    @classmethod
    def read(cls, path: Path = FIGURES) -> Self:
        """Read stored figures."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored["kinds"] = {kind: Kind(**figures) for kind, figures in stored["kinds"].items()}
        return cls(**stored)

    def write(self, path: Path = FIGURES) -> None:
        """Write the figures, a question's ranking a line, so that a difference can be read."""
        members = []
        for name, value in asdict(self).items():
            text = json.dumps(value, ensure_ascii=False)
            if isinstance(value, dict):
                rows = [
                    f"    {json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}"
                    for key, row in value.items()
                ]
                text = "{\n" + ",\n".join(rows) + "\n  }"
            members.append(f'  "{name}": {text}')
        path.write_text("{\n" + ",\n".join(members) + "\n}\n", encoding="utf-8")


def run(embedder: Embedder, progress: Progress = no_progress) -> SetResult:
    """Run the repository's own set in a new index, nothing taken from a cache."""
    with tempfile.TemporaryDirectory() as folder:
        cache = VectorCache(Path(folder) / "vectors.db", system_clock)
        try:
            return run_set(read_set(SET), embedder, cache, Path(folder) / "index", progress)
        finally:
            cache.close()


def hash_of(folder: Path = SET) -> str:
    """Return the hash of a set's three files."""
    found = hashlib.sha256()
    for name in (CORPUS, QUERIES, JUDGMENTS):
        found.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return f"sha256:{found.hexdigest()}"


def by_kind(result: SetResult) -> dict[str, list[QueryResult]]:
    """Return the questions by kind, which is their id up to the first ``-``."""
    kinds: dict[str, list[QueryResult]] = {}
    for query in result.queries:
        kinds.setdefault(query.query_id.partition("-")[0], []).append(query)
    return kinds


def means(queries: Iterable[QueryResult]) -> dict[str, float]:
    """Return nDCG@10 by variant over the answerable questions; nothing where there are none."""
    answerable = [query for query in queries if query.answerable]
    totals = {
        variant: sum(ndcg_of(each, each.rankings[variant]) for each in answerable) for variant in VARIANTS
    }
    return {variant: round(total / len(answerable), 4) for variant, total in totals.items() if answerable}


def ndcg_of(query: QueryResult, ranking: Sequence[str]) -> float:
    """Return nDCG@10 of a ranking for a question."""
    return ndcg(ranking, query.judgments)


def right(query: QueryResult) -> set[str]:
    """Return the documents of the best grade that was given for a question."""
    best = max(query.judgments.values())
    return {document for document, grade in query.judgments.items() if grade == best}


def is_answered(query: QueryResult, answer: Iterable[str]) -> bool:
    """Tell whether an answer holds a right document."""
    return query.answerable and not right(query).isdisjoint(answer)


def _rankings(query: QueryResult) -> dict[str, list[str]]:
    found = {variant: list(query.rankings[variant][:NDCG_AT]) for variant in VARIANTS}
    return {**found, ANSWER: list(query.answer)}
