"""Evaluation sets on disk: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels.tsv`` in one folder.

::

    corpus.jsonl    {"id", "path", "title", "text"} a line; ``path`` and ``title`` may be left out
    queries.jsonl   {"id", "text"} a line
    qrels.tsv       query id, document id, grade; tab-separated, no header; grade 0 is not relevant,
                    a negative grade says that the document must not be returned for this query
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from client.domain.effective_memory import EffectiveMemory, EffectiveResource
from client.domain.evaluation import Judgments
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Provenance, Scope
from shared_schema.rules.hashing import content_hash
from shared_schema.rules.text import title_of

CORPUS: Final = "corpus.jsonl"
QUERIES: Final = "queries.jsonl"
JUDGMENTS: Final = "qrels.tsv"
_SEED: Final = 20_261_130


@dataclass(frozen=True, slots=True)
class SetDocument:
    """One document of a corpus."""

    document_id: str
    path: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """A corpus, its queries (id → text) and the judgments of each query."""

    name: str
    documents: tuple[SetDocument, ...]
    queries: Mapping[str, str]
    judgments: Mapping[str, Judgments]

    def sample(self, queries: int | None, documents: int | None) -> EvaluationSet:
        """Return a smaller set, the same one every time: drawn queries, all that is judged for them,
        and other documents up to ``documents``."""
        drawn = _draw(sorted(self.queries), queries)
        judged = {document for query in drawn for document in self.judgments[query]}
        others = sorted({each.document_id for each in self.documents} - judged)
        kept = judged | set(_draw(others, None if documents is None else max(0, documents - len(judged))))
        return EvaluationSet(
            self.name,
            tuple(each for each in self.documents if each.document_id in kept),
            {query: self.queries[query] for query in self.queries if query in drawn},
            {query: self.judgments[query] for query in self.queries if query in drawn},
        )

    def memory(self) -> tuple[EffectiveMemory, dict[str, str]]:
        """Return the corpus as one Project's memory, and which document each resource id stands for.

        Resource ids are numbers, so that no query names a document by the id that it has in the set.
        """
        resources, documents = [], {}
        for number, document in enumerate(self.documents):
            resource_id = f"set_{number:07d}"
            documents[resource_id] = document.document_id
            resources.append(
                EffectiveResource(
                    resource_id=resource_id,
                    scope=Scope.PROJECT,
                    path=document.path,
                    title=document.title,
                    description="",
                    body=document.text,
                    content_hash=content_hash(document.text),
                    provenance=Provenance.AUTHORITY,
                )
            )
        return EffectiveMemory.of("prj_evaluation", None, resources), documents


def read_set(folder: Path) -> EvaluationSet:
    """Read a set.

    Raises:
        InterleafError: INVALID_ARGUMENTS, naming the file and the line, when a file is missing, a line
            is not what it should be, an id occurs twice, or a judgment names what is not there.
    """
    documents: dict[str, SetDocument] = {}
    for place, row in _rows(folder / CORPUS):
        document_id, text = _string(row, "id", place), _string(row, "text", place)
        path = _string(row, "path", place, f"{document_id}.md")
        _once(document_id, documents, place)
        title = _string(row, "title", place, "") or title_of(text, path)
        documents[document_id] = SetDocument(document_id, path, title, text)
    queries: dict[str, str] = {}
    for place, row in _rows(folder / QUERIES):
        query_id = _string(row, "id", place)
        _once(query_id, queries, place)
        queries[query_id] = _string(row, "text", place)
    judgments = _judgments(folder / JUDGMENTS, queries, documents)
    judged = {query: text for query, text in queries.items() if any(g > 0 for g in judgments[query].values())}
    empty = {query: text for query, text in queries.items() if query not in judged and judgments[query]}
    if not documents or not (judged or empty):
        raise _refused(f"{folder} holds no documents, or no query with a judgment.")
    kept = {query: text for query, text in queries.items() if query in judged or query in empty}
    return EvaluationSet(
        folder.resolve().name, tuple(documents.values()), kept, {query: judgments[query] for query in kept}
    )


def _judgments(
    path: Path, queries: Mapping[str, str], documents: Mapping[str, SetDocument]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {query: {} for query in queries}
    for place, line in _lines(path):
        try:
            query, document, grade = line.split("\t")
            number = int(grade)
        except ValueError:
            raise _refused(
                f"{place}: expected query id, document id and a whole grade, tab-separated."
            ) from None
        if query not in queries:
            raise _refused(f"{place}: there is no query {query!r} in {QUERIES}.")
        if document not in documents:
            raise _refused(f"{place}: there is no document {document!r} in {CORPUS}.")
        found[query][document] = number
    return found


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not empty, each with its place in words."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _refused(
            f"{path} cannot be read: {error.strerror}. "
            f"A set is a folder with {CORPUS}, {QUERIES} and {JUDGMENTS}."
        ) from None
    except UnicodeDecodeError:
        raise _refused(f"{path} is not UTF-8 text.") from None
    # Not splitlines(): JSON may hold a bare U+2028.
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            yield f"{path}, line {number}", line.rstrip("\r")


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, line in _lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise _refused(f"{place}: not JSON.") from None
        if not isinstance(row, dict):
            raise _refused(f"{place}: expected a JSON object.")
        yield place, row


def _string(row: Mapping[str, Any], name: str, place: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if not isinstance(value, str) or (default is None and name == "id" and not value):
        raise _refused(f"{place}: {name!r} has to be text.")
    return value


def _once(key: str, known: Mapping[str, object], place: str) -> None:
    if key in known:
        raise _refused(f"{place}: the id {key!r} occurs twice.")


def _draw(names: list[str], number: int | None) -> list[str]:
    if number is None or number >= len(names):
        return names
    return random.Random(_SEED).sample(names, number)  # noqa: S311 - a sample, not a secret


def _refused(message: str) -> InterleafError:
    return InterleafError(ErrorCode.INVALID_ARGUMENTS, message)
