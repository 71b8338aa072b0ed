"""Evaluation cases and their versions; a version is added by compare-and-swap and never changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from client.domain.case_judgment import Evidence, Judgment
from client.store.evaluation_tables import metadata

_CASE = metadata.tables["evaluation_case"]
_VERSION = metadata.tables["evaluation_version"]
_CORPUS = metadata.tables["evaluation_corpus"]


@dataclass(frozen=True, slots=True)
class CaseVersion:
    """One state of a case, and the run and the corpus (by its memory hash) that it belongs to."""

    version: int
    created_at: int
    run_id: str
    run_pinned: bool
    """The run was pinned for this version, and by nobody before."""
    memory_hash: str
    judgment: Judgment
    note: str


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case in its newest version."""

    case_id: str
    project_id: str
    query: str
    created_at: int
    newest: CaseVersion


class CaseRepository:
    """Evaluation cases. The corpus that a version names has to be there before it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, case: CaseRow) -> None:
        """Insert a case with its first version."""
        self._connection.execute(
            insert(_CASE).values(
                case_id=case.case_id,
                project_id=case.project_id,
                query=case.query,
                version=case.newest.version,
                created_at=case.created_at,
            )
        )
        self._add_version(case.case_id, case.newest)

    def get(self, case_id: str) -> CaseRow | None:
        """Return a case, or None."""
        row = self._connection.execute(_NEWEST.where(_CASE.c.case_id == case_id)).first()
        return None if row is None else _case(row)

    def list(self, project_id: str | None) -> tuple[CaseRow, ...]:
        """Return the cases of a Project, or all, in the order of their creation."""
        statement = _NEWEST.order_by(_CASE.c.created_at, _CASE.c.case_id)
        if project_id is not None:
            statement = statement.where(_CASE.c.project_id == project_id)
        return tuple(_case(row) for row in self._connection.execute(statement))

    def versions(self, case_id: str) -> tuple[CaseVersion, ...]:
        """Return every version of a case, the oldest first."""
        statement = (
            select(_VERSION, _CORPUS.c.memory_hash)
            .join(_CORPUS, _CORPUS.c.seq == _VERSION.c.corpus)
            .where(_VERSION.c.case_id == case_id)
            .order_by(_VERSION.c.version)
        )
        return tuple(_version(row) for row in self._connection.execute(statement))

    def of_run(self, run_id: str) -> str | None:
        """Return the case that a version names this run for, or None."""
        statement = select(_VERSION.c.case_id).where(_VERSION.c.run_id == run_id).limit(1)
        return self._connection.execute(statement).scalar()

    def put(self, case_id: str, expected: int, newest: CaseVersion) -> bool:
        """Add a version in the place of ``expected``; return whether that was still the newest one."""
        moved = self._connection.execute(
            update(_CASE)
            .where(_CASE.c.case_id == case_id, _CASE.c.version == expected)
            .values(version=newest.version)
        )
        if moved.rowcount != 1:
            return False
        self._add_version(case_id, newest)
        return True

    def delete(self, case_id: str) -> None:
        """Delete a case with all its versions; their corpora go with `CorpusRepository.collect`."""
        self._connection.execute(delete(_VERSION).where(_VERSION.c.case_id == case_id))
        self._connection.execute(delete(_CASE).where(_CASE.c.case_id == case_id))

    def delete_project(self, project_id: str) -> None:
        """Delete every case of a Project, as `delete` does."""
        own = select(_CASE.c.case_id).where(_CASE.c.project_id == project_id)
        self._connection.execute(delete(_VERSION).where(_VERSION.c.case_id.in_(own)))
        self._connection.execute(delete(_CASE).where(_CASE.c.project_id == project_id))

    def _add_version(self, case_id: str, version: CaseVersion) -> None:
        corpus = select(_CORPUS.c.seq).where(_CORPUS.c.memory_hash == version.memory_hash)
        self._connection.execute(
            insert(_VERSION).values(
                case_id=case_id,
                version=version.version,
                corpus=corpus.scalar_subquery(),
                run_id=version.run_id,
                run_pinned=version.run_pinned,
                judgment=_written(version.judgment),
                note=version.note,
                created_at=version.created_at,
            )
        )


_NEWEST = (
    select(
        _CASE.c.case_id,
        _CASE.c.project_id,
        _CASE.c.query,
        _CASE.c.created_at.label("case_created_at"),
        _VERSION,
        _CORPUS.c.memory_hash,
    )
    .join(_VERSION, (_VERSION.c.case_id == _CASE.c.case_id) & (_VERSION.c.version == _CASE.c.version))
    .join(_CORPUS, _CORPUS.c.seq == _VERSION.c.corpus)
)


def _case(row: Any) -> CaseRow:
    return CaseRow(row.case_id, row.project_id, row.query, row.case_created_at, _version(row))


def _version(row: Any) -> CaseVersion:
    return CaseVersion(
        row.version,
        row.created_at,
        row.run_id,
        row.run_pinned,
        row.memory_hash,
        _read(row.judgment),
        row.note,
    )


def _written(judgment: Judgment) -> str:
    value = {
        "evidence": [[each.resource_id, each.unit_key, each.grade] for each in judgment.evidence],
        "forbidden": list(judgment.forbidden),
        "none_matched": judgment.none_matched,
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _read(text: str) -> Judgment:
    value = json.loads(text)
    return Judgment(
        tuple(Evidence(*each) for each in value["evidence"]),
        tuple(value["forbidden"]),
        value["none_matched"],
    )
