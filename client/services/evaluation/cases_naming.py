"""What a person names in a judgment: documents of a corpus, and their units."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from client.domain.case_judgment import Evidence
from client.domain.chunking import CountTokens, Unit, cut, slug
from client.domain.near_paths import near_paths
from client.store.evaluation_corpora import StoredDocument
from client.store.unit_of_work import UnitOfWork
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import GradedTarget

_LISTED: Final = 20
_HEADING_SIGNS: Final = re.compile(r"\s*>\s*|/")
_PLACE: Final = re.compile(r"/\d+/\d+\Z")
"""Occurrence and part, the end of a unit key."""


class CorpusNames:
    """Finds what targets name in one frozen corpus, within one transaction.

    ``count_tokens`` returns the embedder's counter; it is asked for only where a unit is named, and may
    raise while models are being prepared.
    """

    def __init__(self, uow: UnitOfWork, memory_hash: str, count_tokens: Callable[[], CountTokens]) -> None:
        self._uow = uow
        self._memory_hash = memory_hash
        self._count_tokens = count_tokens

    def evidence(self, graded: Sequence[GradedTarget]) -> tuple[Evidence, ...]:
        """Return what targets name, with their grades.

        Raises:
            InterleafError: ``memory_resource_not_found`` for what is not in the corpus,
                ``invalid_arguments`` for what names several things or no unit.
        """
        return tuple(self._one(each.target, each.grade) for each in graded)

    def resources(self, targets: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of the documents that targets name; raises as `evidence` does."""
        return tuple(self._document(target).document.resource_id for target in targets)

    def _one(self, target: str, grade: int) -> Evidence:
        found = self._named(_readings(target))
        if found is None:
            raise self._unknown(target)
        stored, rest = found
        resource_id = stored.document.resource_id
        if rest is None:
            return Evidence(resource_id, None, grade)
        return Evidence(resource_id, self._unit(stored, rest), grade)

    def _document(self, target: str) -> StoredDocument:
        found = self._named([(target, None)])
        if found is None:
            raise self._unknown(target)
        return found[0]

    def _named(self, readings: Sequence[tuple[str, str | None]]) -> tuple[StoredDocument, str | None] | None:
        """Return the first reading that names a document, and what it says of a unit."""
        names = [unicodedata.normalize("NFC", name) for name, _ in readings]
        stored = self._uow.corpora.named(self._memory_hash, set(names))
        for name, (_, rest) in zip(names, readings, strict=True):
            by_id = [each for each in stored if each.document.resource_id == name]
            found = by_id or [each for each in stored if each.document.path == name]
            if len(found) > 1:
                ids = ", ".join(sorted(each.document.resource_id for each in found))
                raise _refused(f"{name} is the path of several documents; give the id: {ids}")
            if found:
                return found[0], rest
        return None

    def _unit(self, stored: StoredDocument, asked: str) -> str:
        resource = stored.document.with_text(stored.body)
        units = cut(resource, self._count_tokens())
        found = _matching(units, resource.resource_id, asked)
        if len(found) == 1:
            return found[0]
        several = found or [unit.unit_key for unit in units]
        what = "names several parts of" if found else "names no part of"
        listed = ", ".join(f"#{_rest(key, resource.resource_id)}" for key in several[:_LISTED])
        more = f" and {len(several) - _LISTED} more" if len(several) > _LISTED else ""
        raise _refused(f"#{asked} {what} {resource.path}; it has {listed or 'none'}{more}")

    def _unknown(self, target: str) -> InterleafError:
        paths = self._uow.corpora.paths(self._memory_hash)
        near = near_paths([target.split("#")[0]], dict.fromkeys(paths.values()))
        return InterleafError(
            ErrorCode.MEMORY_RESOURCE_NOT_FOUND,
            "The case's corpus holds no document with this id or path. See what the run found with: "
            "interleaf runs show RUN",
            details={"missing": [target], "suggestions": {target: next(iter(near.values()), [])}},
        )


def _readings(target: str) -> list[tuple[str, str | None]]:
    """Return how a target can be read: as a document, else split at a ``#``, else as a unit key."""
    splits = [place for place, sign in enumerate(target) if sign == "#"]
    readings: list[tuple[str, str | None]] = [(target, None)]
    readings += [(target[:place], target[place + 1 :]) for place in reversed(splits) if place]
    if "/" in target:
        head, _, rest = target.partition("/")
        readings.append((head, rest))
    return readings


def _matching(units: Sequence[Unit], resource_id: str, asked: str) -> list[str]:
    """Return the keys that ``asked`` may mean: exactly one, else all with these last headings."""
    keys = [unit.unit_key for unit in units]
    exact = [key for key in keys if asked in (key, _rest(key, resource_id))]
    if exact:
        return exact
    heading = "/".join(slug(part) for part in _HEADING_SIGNS.split(asked) if part.strip())
    sections = {key: _PLACE.sub("", _rest(key, resource_id)) for key in keys}
    return [key for key, section in sections.items() if f"/{section}".endswith(f"/{heading}")]


def _rest(unit_key: str, resource_id: str) -> str:
    return unit_key.removeprefix(f"{resource_id}/")


def _refused(problem: str) -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"evidence: {problem}.",
        details={"fields": [{"field": "evidence", "problem": problem}]},
    )
