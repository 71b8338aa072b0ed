"""Cases outside of the store: as one document, and as sets that are measured like any other."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from client.services.evaluation import export_files
from client.services.evaluation.export import document_of, sets_of
from client.services.evaluation.export_files import check_free, write_export, write_sets
from client.services.evaluation.run_set import run_set
from client.services.evaluation.sets import read_set
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import ExportCall, ExportedDocument, ExportPageCall
from shared_schema.rules.hashing import content_hash
from tests.client.local_world import PROJECT
from tests.client.services.evaluation.case_world import DOCUMENTS, QUERY, CaseWorld


def documents(world: CaseWorld) -> dict[str, ExportedDocument]:
    found: dict[str, ExportedDocument] = {}
    after = ""
    while page := world.export.page(ExportPageCall(project=PROJECT, after=after)).documents:
        found |= {each.digest: each for each in page}
        after = page[-1].digest
    return found


def whole(world: CaseWorld) -> dict[str, Any]:
    exported = world.export.cases(ExportCall(project=PROJECT))
    return document_of(exported, documents(world), world.report(), 5)


def sets(world: CaseWorld) -> dict[str, dict[str, list[Any]]]:
    return sets_of(world.export.cases(ExportCall(project=PROJECT)), documents(world))


@pytest.mark.requirement("eval.export.document")
def test_an_export_holds_cases_versions_corpora_texts_and_the_report(
    world: CaseWorld, tmp_path: Path
) -> None:
    case = world.judged(QUERY, "guides/release.md#Tag=3", forbid=["guides/old-release.md"])
    world.create("notes/mine.md", "# Mine\n\nNot published.\n")
    world.build()
    world.judged("hot water", none_matched=True)
    path = tmp_path / "cases.json"
    written = write_export(whole(world), path, force=False)
    assert (written["cases"], written["corpora"], written["documents"]) == (2, 2, 6)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert (found["format"], found["version"], found["exported_at"]) == ("interleaf-evaluation", 1, 5)
    assert found["project"] == {"project_id": PROJECT, "name": "Alpha"}
    first = next(each for each in found["cases"] if each["case"]["case_id"] == case)
    assert [each["version"] for each in first["versions"]] == [2, 1]
    assert first["versions"][0]["evidence"][0]["unit_key"] == "mem_rel/release/tag/0/0"
    corpora = {each["memory_hash"]: each["documents"] for each in found["corpora"]}
    held = [found["documents"][digest] for digest in corpora[first["case"]["corpus"]]]
    assert sorted(each["path"] for each in held) == sorted(each.path for each in DOCUMENTS)
    assert {digest for each in corpora.values() for digest in each} == found["documents"].keys()
    for each in found["documents"].values():
        assert each["content_hash"] == content_hash(each["body"])
    drafts = [each for each in found["documents"].values() if each["provenance"] == "draft"]
    assert [each["path"] for each in drafts] == ["notes/mine.md"]
    assert drafts[0]["draft"]["draft_id"].startswith("drf_")
    assert found["report"]["judged"] == 2


@pytest.mark.requirement("eval.export.set")
def test_a_set_of_an_export_is_measured_like_any_other(world: CaseWorld, tmp_path: Path) -> None:
    graded = world.judged(
        QUERY, "guides/release.md#Tag=3", "guides/release.md=1", forbid=["guides/old-release.md"]
    )
    empty = world.judged("quantum entanglement", none_matched=True)
    forbidden = world.judged("hot water", forbid=["tea.md"])
    world.case("not judged")
    written = write_sets(sets(world), tmp_path / "set", force=False)
    assert [(each["folder"], each["queries"], each["documents"]) for each in written["sets"]] == [
        (str(tmp_path / "set"), 3, 5)
    ]
    found = read_set(tmp_path / "set")
    assert found.judgments == {
        graded: {"mem_rel": 3, "mem_old": -1}, empty: {"mem_old": 0}, forbidden: {"mem_tea": -1},
    }  # fmt: skip
    result = run_set(found, world.embedder, world.cache, tmp_path / "index")
    assert [query.query_id for query in result.answerable] == [graded]
    assert result.queries[2].forbidden_hits == ("mem_tea",)
    assert result.queries[1].answer == []


@pytest.mark.requirement("eval.export.set")
def test_cases_of_several_corpora_are_several_sets(world: CaseWorld, tmp_path: Path) -> None:
    world.judged(QUERY, "guides/release.md=3")
    world.change(*DOCUMENTS[1:], commit="c2", seq=2)
    world.judged("hot water", "tea.md=3", forbid=["guides/old-release.md"])
    written = write_sets(sets(world), tmp_path / "sets", force=False)
    assert [each["documents"] for each in written["sets"]] == [5, 4]
    names = [path.name for path in sorted((tmp_path / "sets").iterdir())]
    assert names == sorted(each["corpus"][7:19] for each in written["sets"])
    assert [len(read_set(Path(each["folder"])).queries) for each in written["sets"]] == [1, 1]


@pytest.mark.requirement("eval.export.set")
def test_a_forbidden_document_that_the_corpus_lost_is_in_no_set(world: CaseWorld) -> None:
    case = world.judged(QUERY, "guides/release.md=3", forbid=["tea.md"])
    world.change(*(each for each in DOCUMENTS if each.resource_id != "mem_tea"))
    world.freeze(case, world.run())
    (only,) = sets(world).values()
    assert only["judgments"] == [(case, "mem_rel", 3)]


@pytest.mark.requirement("eval.export.private")
def test_files_belong_to_their_owner_and_overwrite_nothing_unasked(tmp_path: Path) -> None:
    content = {"cases": [], "corpora": [], "documents": {}}
    path, folder = tmp_path / "cases.json", tmp_path / "set"
    one = {"sha256:0123456789abcdef": {"corpus": [{"id": "a"}], "queries": [], "judgments": [("q", "a", 1)]}}
    for force in (False, True):
        check_free(str(path), folder, force=force)
        write_export(content, path, force=force)
        write_sets(one, folder, force=force)
        files = [path, *folder.iterdir()]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert sorted(tmp_path.iterdir()) == [path, folder], "no temporary file is left"
        path.write_text("mine", encoding="utf-8")
        for refuses in (
            lambda: check_free(str(path), None, force=False),
            lambda: check_free(None, folder, force=False),
            lambda: write_export(content, path, force=False),
            lambda: write_sets(one, folder, force=False),
        ):
            with pytest.raises(InterleafError) as refused:
                refuses()
            assert refused.value.code is ErrorCode.ALREADY_EXISTS
        assert path.read_text(encoding="utf-8") == "mine"
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InterleafError):
        check_free(str(tmp_path / "dangling"), None, force=False)


@pytest.mark.requirement("eval.export.private")
def test_what_cannot_be_written_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InterleafError) as nowhere:
        write_export({}, tmp_path / "no" / "where.json", force=False)
    assert nowhere.value.code is ErrorCode.INVALID_ARGUMENTS

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export_files.os, "fsync", full)
    with pytest.raises(InterleafError) as refused:
        write_export({}, tmp_path / "cases.json", force=False)
    assert refused.value.code is ErrorCode.STORAGE_FULL
    assert list(tmp_path.iterdir()) == []
