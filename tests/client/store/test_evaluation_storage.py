"""Storing evaluation cases and their frozen corpora, and coming from the schema before them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from client.domain.case_judgment import Evidence, Judgment
from client.domain.effective_memory import DraftRef, EffectiveMemory, EffectiveResource
from client.store.activations import RunRow
from client.store.evaluation_cases import CaseRow, CaseVersion
from client.store.migrating import bundled_migrations, migrate, schema_version
from client.store.projects import ProjectRow
from client.store.revocation import forget_project
from client.store.tables import metadata
from client.store.unit_of_work import Store, UnitOfWork
from shared_schema.drafts import Freshness, Reconciliation
from shared_schema.memory import OrgSource, Provenance, Scope
from shared_schema.rules.hashing import content_hash

TABLES = ("case", "version", "corpus", "member", "document", "body")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "home" / "interleaf.db")
    yield made
    made.close()


def resource(resource_id: str, body: str = "# One\n", **more: object) -> EffectiveResource:
    plain = EffectiveResource(
        resource_id=resource_id,
        scope=Scope.PROJECT,
        path=f"{resource_id}.md",
        title="One",
        description="",
        body=body,
        content_hash=content_hash(body),
        provenance=Provenance.AUTHORITY,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def memory(*resources: EffectiveResource, project: str = "prj_1", commit: str = "c1") -> EffectiveMemory:
    return EffectiveMemory.of(project, commit, resources)


def version(number: int, of: EffectiveMemory, *evidence: Evidence) -> CaseVersion:
    return CaseVersion(
        number, 10 + number, "run_1", number == 1, of.hash, Judgment(evidence), f"note {number}"
    )


def add(uow: UnitOfWork, case_id: str, of: EffectiveMemory) -> None:
    if uow.corpora.get(of.hash) is None:
        uow.corpora.add(of, 7)
    uow.cases.add(CaseRow(case_id, of.project_id, "why?", 10, version(1, of)))


def counts(store: Store) -> dict[str, int]:
    with store.read() as uow:
        return {
            name: len(uow.connection.execute(metadata.tables[f"evaluation_{name}"].select()).all())
            for name in TABLES
        }


EVERYTHING = resource(
    "mem_all",
    "# 发布\r\n\ufeffbytes\u2028kept\n",
    scope=Scope.ORG,
    path="zh/发布.md",
    title="发布",
    description="d\n",
    provenance=Provenance.DRAFT,
    org_source=OrgSource(resource_id="mem_src", commit_id="o1"),
    draft=DraftRef("drf_1", Freshness.BEHIND, Reconciliation.CONFLICTS),
)


@pytest.mark.requirement("eval.case.frozen")
def test_a_corpus_comes_back_with_every_field_and_the_same_hash(store: Store) -> None:
    frozen = memory(resource("mem_a"), EVERYTHING)
    with store.write() as uow:
        uow.corpora.add(frozen, 7)
    with store.read() as uow:
        stored = uow.corpora.documents(frozen.hash)
        row = uow.corpora.get(frozen.hash)
    again = [each.document.with_text(each.body) for each in stored]
    assert sorted(again, key=lambda each: each.resource_id) == list(frozen.resources)
    assert EffectiveMemory.of("prj_1", "c1", again).hash == frozen.hash
    assert row is not None
    assert (row.project_id, row.commit_id, row.documents, row.created_at) == ("prj_1", "c1", 2, 7)


@pytest.mark.requirement("eval.case.shared")
def test_documents_and_texts_are_stored_once_whatever_corpora_hold_them(store: Store) -> None:
    first = memory(*(resource(f"mem_{number}", f"# {number % 3}\n") for number in range(1_200)))
    renamed = replace(first.resources[0], path="elsewhere.md")
    second = memory(renamed, *first.resources[1:], commit="c2")
    with store.write() as uow:
        uow.corpora.add(first, 7)
        uow.corpora.add(second, 8)
    assert counts(store) | {"case": 0} == {
        "case": 0, "version": 0, "corpus": 2, "member": 2_400, "document": 1_201, "body": 3,
    }  # fmt: skip
    with store.read() as uow:
        assert uow.corpora.paths(second.hash)["mem_0"] == "elsewhere.md"
        assert uow.corpora.paths(first.hash)["mem_0"] == "mem_0.md"
        assert len(uow.corpora.documents(first.hash)) == 1_200


@pytest.mark.requirement("eval.case.collected")
def test_what_no_version_needs_is_collected_and_nothing_else(store: Store) -> None:
    shared, old, new = resource("mem_a"), resource("mem_b", "# Old\n"), resource("mem_b", "# New\n")
    before, after = memory(shared, old), memory(shared, new)
    with store.write() as uow:
        add(uow, "evc_1", before)
        add(uow, "evc_2", before)
        uow.corpora.add(after, 8)
        assert uow.cases.put("evc_2", 1, version(2, after))
        uow.corpora.collect()
    assert counts(store) == {"case": 2, "version": 3, "corpus": 2, "member": 4, "document": 3, "body": 3}
    with store.write() as uow:
        uow.cases.delete("evc_1")
        uow.corpora.collect()
    assert counts(store)["corpus"] == 2, "an older version of the other case needs it"
    with store.write() as uow:
        add(uow, "evc_3", after)
        uow.cases.delete("evc_2")
        uow.corpora.collect()
    assert counts(store) == {"case": 1, "version": 1, "corpus": 1, "member": 2, "document": 2, "body": 2}
    with store.read() as uow:
        assert {each.body for each in uow.corpora.documents(after.hash)} == {"# One\n", "# New\n"}


@pytest.mark.requirement("eval.case.versions")
def test_a_version_is_added_only_in_the_place_of_the_expected_one(store: Store) -> None:
    frozen = memory(resource("mem_a"))
    graded = Evidence("mem_a", "mem_a/a/0/0", 3)
    with store.write() as uow:
        add(uow, "evc_1", frozen)
        assert uow.cases.put("evc_1", 1, version(2, frozen, graded))
        assert not uow.cases.put("evc_1", 1, version(2, frozen))
        assert not uow.cases.put("evc_9", 1, version(2, frozen))
    with store.read() as uow:
        case = uow.cases.get("evc_1")
        assert case is not None
        assert case.newest == version(2, frozen, graded)
        assert case.created_at == 10
        assert [each.note for each in uow.cases.versions("evc_1")] == ["note 1", "note 2"]
        assert uow.cases.of_run("run_1") == "evc_1"
        assert uow.cases.of_run("run_2") is None
        assert [each.case_id for each in uow.cases.list("prj_1")] == ["evc_1"]
        assert uow.cases.list("prj_2") == ()


@pytest.mark.requirement("eval.case.shared")
def test_pages_hold_every_document_of_the_project_once(store: Store) -> None:
    own = memory(*(resource(f"mem_{number}", f"# {number}\n") for number in range(20)))
    other = memory(resource("mem_0", "# 0\n"), resource("mem_x", "# X\n"), project="prj_2")
    with store.write() as uow:
        uow.corpora.add(own, 7)
        uow.corpora.add(memory(*own.resources[:5], commit="c2"), 8)
        uow.corpora.add(other, 9)
    found, after = [], ""
    with store.read() as uow:
        while page := uow.corpora.page("prj_1", after, 12):
            assert len(page) <= 3
            found += page
            after = page[-1].digest
    assert sorted(each.document.resource_id for each in found) == sorted(own.by_id)


@pytest.mark.requirement("eval.case.revocation")
def test_losing_access_takes_cases_manifests_and_texts_but_none_of_another_project(store: Store) -> None:
    with store.write() as uow:
        for project in ("prj_1", "prj_2"):
            uow.projects.put(ProjectRow(project, project, snapshot_at=1))
        add(uow, "evc_1", memory(resource("mem_a", "# Secret\n"), resource("mem_org")))
        add(uow, "evc_2", memory(resource("mem_org"), project="prj_2"))
    with store.write() as uow:
        row = uow.projects.get("prj_1")
        assert row is not None
        forget_project(uow, row)
    assert counts(store) == {"case": 1, "version": 1, "corpus": 1, "member": 1, "document": 1, "body": 1}
    with store.read() as uow:
        assert uow.cases.get("evc_1") is None
        assert uow.connection.execute(text("SELECT body FROM evaluation_body")).scalars().all() == ["# One\n"]


@pytest.mark.requirement("eval.case.migration", "local.migrations")
def test_a_database_of_the_first_schema_keeps_its_rows_and_takes_cases(tmp_path: Path) -> None:
    path = tmp_path / "home" / "interleaf.db"
    path.parent.mkdir()
    steps = bundled_migrations()
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, path, 1, steps[:1])
    assert schema_version(connection) == 1
    connection.execute(
        "INSERT INTO project (project_id, name, access, guide_path, installed_seq, head_seq, snapshot_at, "
        "projection_version) VALUES ('prj_1', 'Alpha', 1, 'guide.md', 1, 1, 1, 0)"
    )
    connection.execute("INSERT INTO blob VALUES ('sha256:1', '# One')")
    connection.execute(
        "INSERT INTO published VALUES ('prj_1', 'mem_a', 'project', 'a.md', '', 'sha256:1', NULL, NULL)"
    )
    connection.close()

    store = Store(path, clock=lambda: 77)

    with store.write() as uow:
        assert [row.name for row in uow.projects.all()] == ["Alpha"]
        assert [row.body for row in uow.published.all("prj_1")] == ["# One"]
        uow.runs.add(RunRow("run_1", "prj_1", 1, "why?", "search_1", 0, 1.0, False, {}))
        add(uow, "evc_1", memory(resource("mem_a")))
    assert counts(store)["case"] == 1
    store.close()
    copy = path.with_name(f"interleaf.db.before-schema-{len(steps)}-77")
    kept = sqlite3.connect(copy)
    assert schema_version(kept) == 1
    kept.close()
