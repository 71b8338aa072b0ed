"""Batches of documents as Drafts, and memory page by page, on a real store."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest

from client.services import import_drafts
from client.services.export_memory import PAGE
from shared_schema import limits
from shared_schema.drafts import DraftStatus, Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Scope
from shared_schema.transfer.documents import Outcome
from shared_schema.transfer_contract import (
    ExportCall,
    ExportedMemory,
    ImportCall,
    ImportDocument,
    ImportedDocument,
)
from tests.client.local_world import OWN, PROJECT, REFERENCE, LocalWorld, published


def document(path: str, body: str = "# Text\n", **more: str) -> ImportDocument:
    return ImportDocument(path=path, body=body, **more)


def imported(
    world: LocalWorld, *documents: ImportDocument, scope: Scope = Scope.PROJECT, dry_run: bool = False
) -> list[ImportedDocument]:
    call = ImportCall(project="Alpha", scope=scope, documents=list(documents), dry_run=dry_run)
    return world.imports(call).documents


def outcomes(found: list[ImportedDocument]) -> list[str]:
    return [each.code or each.outcome.value for each in found]


@pytest.mark.requirement("transfer.import.local")
def test_new_documents_become_create_drafts_in_one_transaction(world: LocalWorld) -> None:
    before = world.shown()
    found = imported(world, document("a/b.md", "\ufeffcrlf\r\n", description="d"), document("c.md"))
    assert outcomes(found) == ["imported", "imported"]
    shown = world.shown().by_path
    assert shown["a/b.md"].body == "\ufeffcrlf\r\n"
    assert shown["a/b.md"].description == "d"
    assert len(world.shown().by_id) == len(before.by_id) + 2
    assert [each.draft_id for each in found] == [
        item.draft.draft_id for path in ("a/b.md", "c.md") if (item := shown[path]).draft
    ]
    assert all(each.submittable for each in found)
    assert world.woken == [PROJECT]
    assert len(world.outbox()) == 2
    assert world.shown() == world.projected_anew()


@pytest.mark.requirement("transfer.import.again")
def test_the_same_batch_again_changes_nothing(world: LocalWorld) -> None:
    batch = [document("new.md"), document("own.md", OWN.body), document("ref.md", "# Other\n")]
    first = imported(world, *batch)
    assert outcomes(first) == ["imported", "unchanged", "changed"]
    rows = world.dump()
    again = imported(world, *batch)
    assert outcomes(again) == ["unchanged"] * 3
    assert world.dump() == rows
    # What a run that was cut off had left can be submitted by the next one.
    assert [(each.draft_id, each.submittable) for each in again] == [
        (first[0].draft_id, True),
        (None, False),
        (first[2].draft_id, True),
    ]


@pytest.mark.requirement("transfer.import.local")
def test_other_text_becomes_an_update_of_what_is_meant(world: LocalWorld) -> None:
    found = imported(
        world,
        document("own.md", "# Newer\n"),
        document("elsewhere.md", "# Adapted\n", resource_id="mem_ref"),
    )
    assert outcomes(found) == ["changed", "changed"]
    own = world.item("mem_own")
    assert (own.body, own.path, own.description) == ("# Newer\n", "own.md", "ours")
    # By id, whatever the file is called; of an Org reference it is an adaptation, at its path.
    adaptation = world.shown().adapted_by["mem_ref"]
    assert (world.item(adaptation).path, world.item(adaptation).body) == ("ref.md", "# Adapted\n")


@pytest.mark.requirement("transfer.import.local")
def test_a_draft_takes_further_text_and_is_not_doubled(world: LocalWorld) -> None:
    (first,) = imported(world, document("new.md", "one\n"))
    (second,) = imported(world, document("new.md", "two\n", description="given"))
    assert (second.outcome, second.draft_id) == (Outcome.CHANGED, first.draft_id)
    assert world.shown().by_path["new.md"].description == "given"
    (third,) = imported(world, document("new.md", "three\n"))
    assert third.draft_id == first.draft_id
    assert world.shown().by_path["new.md"].description == "given"


@pytest.mark.requirement("transfer.import.org")
def test_documents_for_the_organization_become_org_drafts(world: LocalWorld) -> None:
    found = imported(
        world,
        document("team.md"),
        document("ref.md", "# For all\n"),
        document("own.md", "# No\n"),
        scope=Scope.ORG,
    )
    assert outcomes(found) == ["imported", "changed", "invalid_arguments"]
    assert [each.scope for each in found] == [Scope.ORG, Scope.ORG, None]
    assert world.item("mem_ref").body == "# For all\n"
    assert outcomes(imported(world, document("team.md"), scope=Scope.ORG)) == ["unchanged"]


@pytest.mark.requirement("transfer.import.refusals")
@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("../up.md", "x", "invalid_path"),
        ("mem_1", "x", "invalid_path"),
        ("own.md/below.md", "x", "path_occupied"),
        ("OWN.md", "x", "path_occupied"),
        ("good.md", " \n", "invalid_arguments"),
        ("good.md", "a\0b", "invalid_arguments"),
        ("good.md", "x" * (limits.BODY_BYTES + 1), "invalid_arguments"),
    ],
)
def test_a_document_that_is_refused_holds_no_other_one_up(
    world: LocalWorld, path: str, body: str, code: str
) -> None:
    found = imported(world, document("first.md"), document(path, body), document("last.md"))
    assert outcomes(found) == ["imported", code, "imported"]
    assert found[1].reason
    assert {"first.md", "last.md"} < set(world.shown().by_path)
    assert world.shown() == world.projected_anew()


@pytest.mark.requirement("transfer.import.refusals")
def test_two_documents_of_one_batch_never_mean_the_same(world: LocalWorld) -> None:
    found = imported(
        world,
        document("a.md"),
        document("A.md"),
        document("a.md/b.md"),
        document(unicodedata.normalize("NFD", "é.md")),
        document("é.md"),
        document("own.md", "# One\n"),
        document("else.md", "# Two\n", resource_id="mem_own"),
    )
    assert outcomes(found) == [
        "imported",
        "path_occupied",
        "path_occupied",
        "imported",
        "path_occupied",
        "changed",
        "already_exists",
    ]


@pytest.mark.requirement("transfer.import.refusals")
def test_a_conflict_is_for_its_author_to_resolve(world: LocalWorld) -> None:
    (found,) = imported(world, document("own.md", "# Mine\n"))
    assert found.draft_id is not None
    draft = world.draft(found.draft_id)
    world.set_draft(replace(draft, reconciliation=Reconciliation.CONFLICTS))
    assert outcomes(imported(world, document("own.md", "# Other\n"))) == ["reconciliation_required"]


def test_text_goes_to_a_submitted_draft_and_that_is_not_submitted_again(world: LocalWorld) -> None:
    (found,) = imported(world, document("new.md", "one\n"))
    assert found.draft_id is not None
    draft = world.draft(found.draft_id)
    world.set_draft(replace(draft, status=DraftStatus.SUBMITTED, review_id="rev_1"))
    (unchanged,) = imported(world, document("new.md", "one\n"))
    (changed,) = imported(world, document("new.md", "two\n"))
    assert (unchanged.outcome, unchanged.submittable) == (Outcome.UNCHANGED, False)
    assert (changed.outcome, changed.submittable, changed.draft_id) == (
        Outcome.CHANGED,
        False,
        found.draft_id,
    )


def test_text_that_goes_back_to_what_is_published_is_nothing_to_submit(world: LocalWorld) -> None:
    imported(world, document("own.md", "# Other\n"))
    (back,) = imported(world, document("own.md", OWN.body))
    assert (back.outcome, back.submittable) == (Outcome.CHANGED, False)
    (same,) = imported(world, document("own.md", OWN.body))
    assert (same.outcome, same.submittable) == (Outcome.UNCHANGED, False)


@pytest.mark.requirement("transfer.import.dry-run")
def test_a_dry_run_tells_the_same_and_changes_nothing(world: LocalWorld) -> None:
    batch = [
        document("a.md"),
        document("own.md", "# Other\n"),
        document("ref.md", REFERENCE.body),
        document("../x"),
    ]
    rows = world.dump()
    dry = imported(world, *batch, dry_run=True)
    assert world.dump() == rows
    assert world.woken == []
    assert outcomes(dry) == outcomes(imported(world, *batch))


def test_a_failure_of_the_disk_ends_the_batch_without_a_trace(
    world: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = world.dump()
    original = import_drafts.record

    def full(uow: object, decision: object) -> None:
        if getattr(decision, "state").path == "b.md":  # noqa: B009 - any decision
            raise InterleafError(ErrorCode.STORAGE_FULL)
        original(uow, decision)  # type: ignore[arg-type]

    monkeypatch.setattr(import_drafts, "record", full)
    with pytest.raises(InterleafError, match="storage_full"):
        imported(world, document("a.md"), document("b.md"))
    assert world.dump() == rows
    assert world.woken == []


def pages(world: LocalWorld, *, drafts: bool = False) -> list[ExportedMemory]:
    found = [world.exports(ExportCall(project=PROJECT, drafts=drafts))]
    while not found[-1].complete:
        after = found[-1].documents[-1].resource.resource_id
        call = ExportCall(project=PROJECT, drafts=drafts, after=after, state=found[-1].state)
        found.append(world.exports(call))
    return found


@pytest.mark.requirement("transfer.export.memory")
def test_an_export_is_what_is_published_and_with_drafts_what_agents_see(world: LocalWorld) -> None:
    (new,) = imported(world, document("new.md"))
    world.update("mem_own", "alpha", "beta")
    (plain,) = pages(world)
    assert {each.resource.path: each.body for each in plain.documents} == {
        "own.md": OWN.body,
        "ref.md": REFERENCE.body,
    }
    assert (plain.name, plain.commit_id, plain.total) == ("Alpha", "c1", 2)
    assert [each.resource.draft_id for each in plain.documents] == [None, None]
    reference = next(each.resource for each in plain.documents if each.resource.path == "ref.md")
    assert (reference.scope, reference.org_source) == (Scope.ORG, REFERENCE.org_source)
    (seen,) = pages(world, drafts=True)
    assert {each.resource.path: each.body for each in seen.documents} == {
        item.path: item.body for item in world.shown().resources
    }
    assert {each.resource.path: each.resource.draft_id for each in seen.documents}["new.md"] == new.draft_id


def test_pages_hold_every_document_once_and_are_of_one_state(world: LocalWorld) -> None:
    many = [published(f"mem_{number:04}", f"d/{number}.md") for number in range(2 * PAGE + 1)]
    large = [published(f"mem_x{number}", f"x/{number}.md", "x" * limits.BODY_BYTES) for number in range(5)]
    world.publish([*many, *large], commit="c2", seq=2)
    found = pages(world)
    assert [each.resource.resource_id for page in found for each in page.documents] == sorted(
        item.resource_id for item in [*many, *large]
    )
    assert len(found) == 4
    world.publish(many, commit="c3", seq=3)
    with pytest.raises(InterleafError, match="version_conflict"):
        world.exports(ExportCall(project=PROJECT, after="mem_0001", state=found[0].state))
