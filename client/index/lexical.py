"""BM25 through Tantivy, with our own terms.

Terms come from ``client.domain.analysis`` on both sides and pass through Tantivy's white-space
tokenizer; queries are boolean queries of term queries. Tantivy's query parser is never used: what an
agent writes is no query language.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import tantivy

from client.domain.analysis import tokens
from client.domain.chunking import Unit
from client.domain.ranking import FIELD_BOOSTS
from client.index.files import IndexCorruptError, private_directory

TANTIVY_VERSION: Final = version("tantivy")
QUERY_TERMS: Final = 96
"""The rarest terms of a long query that are searched for."""

_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)|Os \{ code: (\d+)")
_HEAP: Final = 64_000_000
_FIELDS: Final = tuple(FIELD_BOOSTS)


@dataclass(frozen=True, slots=True)
class FieldTerms:
    """A unit's terms by field; the body field also holds path and headings."""

    path: list[str]
    headings: list[str]
    body: list[str]

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Terms in each field."""
        return len(self.path), len(self.headings), len(self.body)

    @classmethod
    def of(cls, unit: Unit) -> FieldTerms:
        """Analyse one unit."""
        titles = (
            unit.heading_path if unit.title in unit.heading_path[:1] else (unit.title, *unit.heading_path)
        )
        path, headings = tokens(unit.path), tokens("\n".join(titles))
        return cls(path, headings, [*path, *headings, *tokens(unit.text)])


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """One unit as it is indexed. ``uid`` is its number, never used twice in a line of generations."""

    uid: int
    resource_id: str
    terms: FieldTerms


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("uid", fast=True)
    builder.add_text_field("resource", tokenizer_name="raw", index_option="basic")
    for field in _FIELDS:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    return builder.build()


@contextmanager
def _tantivy(action: str) -> Iterator[None]:
    """Turn Tantivy's ways to fail into one: ValueError for nearly everything, and panics.

    What the system refuses is no fault of the files and stays an OSError.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        number = int(found[1] or found[2]) if (found := _OS_ERROR.search(str(error))) else 0
        # Opening takes a lock, in a file.
        if number not in (0, errno.ENOENT, errno.EIO) or (number == errno.EIO and action == "written"):
            raise OSError(number, os.strerror(number)) from error
        raise IndexCorruptError(f"the lexical index cannot be {action}: {error}") from error
    except BaseException as error:
        # A Rust panic arrives as a BaseException whose class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise IndexCorruptError(f"the lexical index cannot be {action}: it is broken") from error


def write_lexical(folder: Path, removed: Iterable[str], added: Iterable[LexicalDocument]) -> None:
    """Create an index in ``folder``, or change the one there: resources out, units in. Durable.

    Raises:
        IndexCorruptError: the index there cannot be read.
    """
    private_directory(folder)
    with _tantivy("written"):
        index = tantivy.Index(_schema(), path=str(folder))
        writer = index.writer(heap_size=_HEAP, num_threads=1)
        for resource_id in removed:
            writer.delete_documents_by_term("resource", resource_id)
        for document in added:
            fields: dict[str, Any] = {name: " ".join(getattr(document.terms, name)) for name in _FIELDS}
            writer.add_document(tantivy.Document(uid=document.uid, resource=document.resource_id, **fields))
        writer.commit()
        writer.wait_merging_threads()
    for path in folder.iterdir():
        path.chmod(0o600)  # Tantivy leaves its files to the umask.


class LexicalIndex:
    """An open index: a snapshot, safe to read from any thread."""

    def __init__(self, folder: Path) -> None:
        with _tantivy("opened"):
            if not tantivy.Index.exists(str(folder)):
                raise IndexCorruptError("the lexical index is missing")
            index = tantivy.Index.open(str(folder))
            # The files never change; the default reader would watch them with a thread.
            index.config_reader("manual")
            self._schema = index.schema
            self._searcher = index.searcher()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def frequency(self, term: str, field: str = "body") -> int:
        """Return how many units hold a term."""
        return int(self._searcher.doc_freq(field, term))

    def search(self, terms: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Return the best units for any of the terms as ``(uid, score)``, best first.

        Raises:
            IndexCorruptError: the files behind the index are broken.
        """
        if not terms or limit < 1 or not len(self):
            return []
        with _tantivy("searched"):
            clauses = [
                (
                    tantivy.Occur.Should,
                    tantivy.Query.boost_query(tantivy.Query.term_query(self._schema, field, term), boost),
                )
                for term in terms
                for field, boost in FIELD_BOOSTS.items()
            ]
            query = tantivy.Query.boolean_query(clauses)
            hits = self._searcher.search(query, limit, count=False).hits
            uids = self._searcher.fast_field_values("uid", [address for _, address in hits])
        return [
            (int(uid), float(score)) for uid, (score, _) in zip(uids, hits, strict=True) if uid is not None
        ]
