"""Evaluation cases on the real store: made from runs, judged, frozen anew, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from client.store.activations import RunRow
from client.store.tables import metadata
from shared_schema.errors import ErrorCode
from shared_schema.evaluation_contract import CaseCreateCall, CaseListCall
from tests.client.local_world import PROJECT, published
from tests.client.services.evaluation.case_world import DOCUMENTS, QUERY, CaseWorld, refused


def rows(world: CaseWorld, name: str) -> int:
    with world.store.read() as uow:
        return len(uow.connection.execute(metadata.tables[f"evaluation_{name}"].select()).all())


@pytest.mark.requirement("eval.case.created")
def test_a_case_is_made_of_a_run_which_is_pinned_and_whose_corpus_is_frozen(world: CaseWorld) -> None:
    run = world.run()
    made = world.cases.create(CaseCreateCall(run_id=run, note="first"))
    assert (made.case.query, made.case.run_id, made.case.version) == (QUERY, run, 1)
    assert (made.case.kind, made.case.documents) == ("unjudged", 5)
    assert made.case.corpus == world.shown().hash
    assert made.versions[0].note == "first"
    assert world.pinned(run)
    assert world.cases.list(CaseListCall(project=PROJECT)).cases == [made.case]
    assert world.cases.list(CaseListCall()).cases == [made.case]
    assert world.show(made.case.case_id) == made


@pytest.mark.requirement("eval.case.created")
def test_a_run_has_one_case(world: CaseWorld) -> None:
    run = world.run()
    made = world.cases.create(CaseCreateCall(run_id=run))
    error = refused(ErrorCode.ALREADY_EXISTS, lambda: world.cases.create(CaseCreateCall(run_id=run)))
    assert error.details["case_id"] == made.case.case_id
    refused(ErrorCode.RUN_NOT_FOUND, lambda: world.cases.create(CaseCreateCall(run_id="run_nothing")))
    refused(ErrorCode.ALREADY_EXISTS, lambda: world.freeze(made.case.case_id, run))


@pytest.mark.requirement("eval.case.outdated")
def test_a_run_of_another_memory_is_refused_with_the_next_step(world: CaseWorld) -> None:
    run = world.run()
    world.create("new.md", "# New\n\nSomething newer.\n")
    before = world.dump()
    error = refused(ErrorCode.RUN_OUTDATED, lambda: world.cases.create(CaseCreateCall(run_id=run)))
    assert "interleaf runs list" in error.message
    assert error.details["present"] == world.shown().hash != error.details["searched"]
    assert world.dump() == before, "a refused case leaves nothing"
    assert not world.pinned(run)


@pytest.mark.requirement("eval.case.outdated")
def test_a_run_of_another_release_without_a_memory_hash_is_outdated(world: CaseWorld) -> None:
    with world.store.write() as uow:
        uow.runs.add(RunRow("run_old", PROJECT, 1, "why?", "search_1", 0, 1.0, False, {}))
    refused(ErrorCode.RUN_OUTDATED, lambda: world.cases.create(CaseCreateCall(run_id="run_old")))


@pytest.mark.requirement("eval.case.outdated")
def test_a_corpus_that_another_case_froze_serves_later_runs_over_it(world: CaseWorld) -> None:
    early, late = world.run(), world.run("hot water")
    world.cases.create(CaseCreateCall(run_id=early))
    world.change(*DOCUMENTS[:2])
    made = world.cases.create(CaseCreateCall(run_id=late))
    assert made.case.documents == 5
    assert rows(world, "corpus") == 1


@pytest.mark.requirement("eval.case.judged")
@pytest.mark.parametrize(
    ("target", "resource_id", "unit_key"),
    [
        ("guides/release.md", "mem_rel", None),
        ("mem_rel", "mem_rel", None),
        ("guides/release.md#Tag", "mem_rel", "mem_rel/release/tag/0/0"),
        ("guides/release.md#Release > Tag", "mem_rel", "mem_rel/release/tag/0/0"),
        ("mem_rel#release/tag", "mem_rel", "mem_rel/release/tag/0/0"),
        ("guides/release.md#release/tag/0/0", "mem_rel", "mem_rel/release/tag/0/0"),
        ("guides/release.md#@description/0/0", "mem_rel", "mem_rel/@description/0/0"),
        ("mem_rel/release/sign/0/0", "mem_rel", "mem_rel/release/sign/0/0"),
        ("zh/发布流程.md#发布流程", "mem_zh", "mem_zh/发布流程/0/0"),
        ("c#/notes.md", "mem_sharp", None),
        ("c#/notes.md#Sharp", "mem_sharp", "mem_sharp/sharp/0/0"),
        ("cafe\u0301.md", "mem_cafe", None),
    ],
)
def test_what_a_judgment_names_is_found_in_the_corpus(
    world: CaseWorld, target: str, resource_id: str, unit_key: str | None
) -> None:
    more = published("mem_sharp", "c#/notes.md", "# Sharp\n\nNotes.\n"), published("mem_cafe", "caf\u00e9.md")
    world.change(*DOCUMENTS, *more)
    found = world.judge(world.case(), f"{target}=3").versions[0].evidence
    assert [(each.resource_id, each.unit_key, each.grade) for each in found] == [(resource_id, unit_key, 3)]


@pytest.mark.requirement("eval.case.judged")
def test_what_names_nothing_or_several_things_is_refused_and_helped(world: CaseWorld) -> None:
    case = world.case()
    unknown = refused(ErrorCode.MEMORY_RESOURCE_NOT_FOUND, lambda: world.judge(case, "guides/releases.md=1"))
    assert unknown.details["suggestions"] == {
        "guides/releases.md": ["guides/release.md", "guides/old-release.md"]
    }
    nowhere = refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.judge(case, "guides/release.md#Ship=1"))
    assert "#release/tag/0/0, #release/sign/0/0" in nowhere.message
    refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.judge(case, "tea.md#=1"))
    refused(ErrorCode.MEMORY_RESOURCE_NOT_FOUND, lambda: world.judge(case, forbid=["guides/release.md#Tag"]))
    refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.judge(case, "tea.md=1", "mem_tea=2"))
    refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.judge(case, "tea.md=1", forbid=["mem_tea"]))
    refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.judge(case))
    refused(ErrorCode.NOT_FOUND, lambda: world.judge("evc_nothing", "tea.md=1"))
    assert world.show(case).case.version == 1


@pytest.mark.requirement("eval.case.judged")
def test_parts_of_a_long_section_are_told_apart(world: CaseWorld) -> None:
    world.change(published("mem_long", "long.md", "# Long\n\n" + "A sentence that goes on. " * 300))
    case = world.case()
    several = refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.judge(case, "long.md#Long=2"))
    assert "#long/0/0, #long/0/1" in several.message
    found = world.judge(case, "long.md#long/0/1=2")
    assert found.versions[0].evidence[0].unit_key == "mem_long/long/0/1"


@pytest.mark.requirement("eval.case.judged")
def test_a_path_of_several_documents_has_to_be_an_id(world: CaseWorld) -> None:
    own = world.create("twin.md", "# Own\n\nMine.\n")
    world.publish([*DOCUMENTS, published("mem_twin", "twin.md", "# Theirs\n\nTheirs.\n")], commit="c2", seq=2)
    world.build()
    case = world.case()
    twins = refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.judge(case, "twin.md=3"))
    assert "mem_twin" in twins.message
    assert own.resource_id in twins.message
    assert world.judge(case, "mem_twin=3").versions[0].evidence[0].resource_id == "mem_twin"


@pytest.mark.requirement("eval.case.frozen")
def test_a_case_moves_onto_the_corpus_of_a_newer_run_of_its_query(world: CaseWorld) -> None:
    case = world.judged(QUERY, "guides/release.md=3", forbid=["tea.md"])
    first = world.show(case).case
    moved = tuple(
        replace_path(each, "guides/shipping.md") if each.resource_id == "mem_rel" else each
        for each in DOCUMENTS
    )
    world.change(*(each for each in moved if each.resource_id != "mem_tea"))
    run = world.run()
    found = world.freeze(case, run, expect_version=2)
    assert (found.case.version, found.case.run_id, found.case.documents) == (3, run, 4)
    assert found.case.corpus == world.shown().hash != first.corpus
    assert found.versions[0].evidence[0].path == "guides/shipping.md"
    assert found.versions[0].forbidden[0].path is None, "it is not there any more"
    assert found.versions[1].evidence[0].path == "guides/release.md"
    assert world.pinned(run)
    assert world.pinned(first.run_id)


def replace_path(resource: Any, path: str) -> Any:
    return resource.model_copy(update={"path": path})


@pytest.mark.requirement("eval.case.frozen")
def test_a_case_is_not_moved_onto_another_query_or_away_from_its_evidence(world: CaseWorld) -> None:
    case = world.judged(QUERY, "guides/release.md=3")
    refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.freeze(case, world.run("hot water")))
    world.change(*DOCUMENTS[1:])
    run = world.run()
    gone = refused(ErrorCode.INVALID_ARGUMENTS, lambda: world.freeze(case, run))
    assert "mem_rel" in gone.message
    assert world.show(case).case.version == 2
    assert rows(world, "corpus") == 1
    assert not world.pinned(run)


@pytest.mark.requirement("eval.case.frozen")
def test_a_judgment_that_was_named_in_another_corpus_is_not_taken(
    world: CaseWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = world.case()
    world.change(*DOCUMENTS[:3])
    run = world.run()
    from client.services.evaluation import cases

    class Slow(cases.CorpusNames):
        def resources(self, targets: Any) -> tuple[str, ...]:
            world.freeze(case, run)  # Between what was named and its being written down.
            return super().resources(targets)

    monkeypatch.setattr(cases, "CorpusNames", Slow)
    refused(ErrorCode.VERSION_CONFLICT, lambda: world.judge(case, "zh/发布流程.md=3"))
    assert world.show(case).case.version == 2


@pytest.mark.requirement("eval.case.collected")
def test_a_deleted_case_takes_what_it_alone_needed_and_its_pin(world: CaseWorld) -> None:
    kept, mine = world.run(), world.run("hot water")
    with world.store.write() as uow:
        uow.runs.set_pinned(kept, True)  # A person's own pin.
    first = world.cases.create(CaseCreateCall(run_id=kept)).case.case_id
    world.change(*DOCUMENTS[:3])
    later = world.run("hot water")
    other = world.cases.create(CaseCreateCall(run_id=later)).case.case_id
    assert (rows(world, "corpus"), rows(world, "document"), rows(world, "body")) == (2, 5, 5)
    world.delete(first)
    assert (rows(world, "case"), rows(world, "version"), rows(world, "corpus")) == (1, 1, 1)
    assert (rows(world, "member"), rows(world, "document"), rows(world, "body")) == (3, 3, 3)
    assert world.pinned(kept)
    world.delete(other)
    assert not world.pinned(later)
    assert not world.pinned(mine)
    assert [rows(world, each) for each in ("case", "version", "corpus", "member", "document", "body")] == [
        0
    ] * 6
    refused(ErrorCode.NOT_FOUND, lambda: world.show(first))


@pytest.mark.requirement("eval.case.revocation")
def test_a_project_whose_access_was_lost_has_no_cases(world: CaseWorld) -> None:
    case = world.judged(QUERY, "guides/release.md=3")
    run = world.run()
    world.revoke()
    refused(ErrorCode.NOT_FOUND, lambda: world.show(case))
    refused(ErrorCode.NOT_FOUND, lambda: world.judge(case, "tea.md=1"))
    refused(ErrorCode.RUN_NOT_FOUND, lambda: world.cases.create(CaseCreateCall(run_id=run)))
    assert all(not found for name, found in world.dump().items() if name.startswith("evaluation_"))
