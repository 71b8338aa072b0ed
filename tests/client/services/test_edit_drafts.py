"""What people do to Drafts, beyond what an agent may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared_schema.daemon_contract import DraftCall, DraftCreateCall, DraftEditCall
from shared_schema.drafts import DraftStatus, OperationKind, Reconciliation
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import ABSENT, Scope
from shared_schema.rules.hashing import content_hash
from tests.client.local_world import COMMIT, ORG_COMMIT, OWN, PROJECT, REFERENCE, LocalWorld, published


def conflicting(world: LocalWorld) -> str:
    """A Draft on mem_own whose resource was published in another form meanwhile."""
    edited = world.update("mem_own", "beta", "mine")
    moved = published("mem_own", "own.md", "# Own\n\nalpha theirs gamma\n", description="theirs")
    world.publish([moved, REFERENCE], commit="c2", seq=2)
    draft = world.draft(edited.draft_id)
    world.set_draft(replace(draft, reconciliation=Reconciliation.CONFLICTS, conflicts=("content",)))
    return edited.draft_id


@pytest.mark.requirement("drafts.create.org")
def test_an_org_scope_create_draft_has_no_base_and_is_shown_in_its_project(world: LocalWorld) -> None:
    made = world.edit.create(DraftCreateCall(project="Alpha", scope=Scope.ORG, path="all.md", body="# All\n"))

    draft = world.draft(made.draft_id)
    assert (draft.scope, draft.base_commit, draft.base, draft.project_id) == (
        Scope.ORG,
        None,
        ABSENT,
        PROJECT,
    )
    item = world.item(made.resource_id)
    assert (item.scope, item.path, item.org_source) == (Scope.ORG, "all.md", None)
    assert world.woken == [PROJECT]


def test_a_project_scope_create_draft_starts_at_the_installed_commit(world: LocalWorld) -> None:
    made = world.edit.create(
        DraftCreateCall(project=PROJECT, scope=Scope.PROJECT, path="a.md", body="# A\n", description="d")
    )
    assert (world.draft(made.draft_id).base_commit, made.content_hash) == (COMMIT, content_hash("# A\n"))


@pytest.mark.requirement("drafts.edit.org")
def test_an_org_scope_edit_of_a_reference_proposes_to_the_organization(world: LocalWorld) -> None:
    made = world.edit.edit(
        DraftEditCall(project=PROJECT, resource="ref.md", scope=Scope.ORG, body="# Reference\n\nbetter\n")
    )

    draft = world.draft(made.draft_id)
    assert (made.resource_id, made.adapts) == ("mem_ref", None)
    assert (draft.scope, draft.base_commit, draft.base) == (Scope.ORG, ORG_COMMIT, REFERENCE.state())
    item = world.item("mem_ref")
    assert (item.scope, item.body, item.org_source) == (
        Scope.ORG,
        "# Reference\n\nbetter\n",
        REFERENCE.org_source,
    )


@pytest.mark.requirement("drafts.edit.org")
def test_an_org_reference_may_be_proposed_for_deletion(world: LocalWorld) -> None:
    made = world.edit.edit(DraftEditCall(project=PROJECT, resource="mem_ref", scope=Scope.ORG, delete=True))

    assert world.draft(made.draft_id).scope is Scope.ORG
    assert "mem_ref" not in world.shown().by_id


@pytest.mark.requirement("store.adaptation")
def test_an_edit_of_a_reference_without_a_scope_becomes_an_adaptation(world: LocalWorld) -> None:
    made = world.edit.edit(
        DraftEditCall(project=PROJECT, resource="mem_ref", body="# Ours\n", path="ours.md", description="x")
    )

    item = world.item(made.resource_id)
    assert made.adapts == "mem_ref"
    assert (item.path, item.body, item.description) == ("ours.md", "# Ours\n", "x")


def test_an_edit_of_text_and_path_is_two_operations_of_one_draft(world: LocalWorld) -> None:
    made = world.edit.edit(
        DraftEditCall(project=PROJECT, resource="own.md", body="# Else\n", path="else.md", description="d")
    )

    operations = world.draft(made.draft_id).operations
    assert [(item.ordinal, item.kind.value) for item in operations] == [(1, "update"), (2, "rename")]
    assert made.local_operation_id == operations[-1].operation_id
    assert len(world.outbox()) == 2
    assert (made.path, world.item("mem_own").description) == ("else.md", "d")


def test_only_the_description_may_be_edited_and_cleared(world: LocalWorld) -> None:
    made = world.edit.edit(DraftEditCall(project=PROJECT, resource="mem_own", description=""))

    [operation] = world.draft(made.draft_id).operations
    assert (operation.kind, operation.body, operation.description) == (OperationKind.UPDATE, None, "")
    assert (world.item("mem_own").description, world.item("mem_own").body) == ("", OWN.body)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (DraftEditCall(project=PROJECT, resource="mem_own"), ErrorCode.INVALID_ARGUMENTS),
        (
            DraftEditCall(project=PROJECT, resource="mem_own", delete=True, path="a.md"),
            ErrorCode.INVALID_ARGUMENTS,
        ),
        (
            DraftEditCall(project=PROJECT, resource="mem_own", scope=Scope.ORG, body="# x"),
            ErrorCode.INVALID_ARGUMENTS,
        ),
        (
            DraftEditCall(project=PROJECT, resource="mem_own", body=OWN.body),
            ErrorCode.TEXT_REPLACEMENT_NO_CHANGE,
        ),
        (DraftEditCall(project=PROJECT, resource="mem_own", path="ref.md"), ErrorCode.PATH_OCCUPIED),
        (DraftEditCall(project=PROJECT, resource="none.md", body="x"), ErrorCode.MEMORY_RESOURCE_NOT_FOUND),
        (DraftEditCall(project=PROJECT, resource="drf_none", body="x"), ErrorCode.DRAFT_NOT_FOUND),
        (DraftEditCall(project="Nowhere", resource="mem_own", body="x"), ErrorCode.NOT_FOUND),
        (
            DraftEditCall(project=PROJECT, resource="mem_own", body="x", expected_hash=content_hash("older")),
            ErrorCode.MEMORY_CONTENT_CHANGED,
        ),
        (
            DraftEditCall(project=PROJECT, resource="mem_ref", delete=True),
            ErrorCode.ORG_REFERENCE_NOT_DELETABLE,
        ),
    ],
)
@pytest.mark.requirement("store.refused.no_trace")
def test_a_refused_edit_leaves_no_trace(world: LocalWorld, call: DraftEditCall, code: ErrorCode) -> None:
    before = world.dump()
    with pytest.raises(InterleafError) as refused:
        world.edit.edit(call)
    assert refused.value.code is code
    assert world.dump() == before


def test_the_scope_of_an_open_draft_is_not_changed_by_an_edit(world: LocalWorld) -> None:
    world.edit.edit(DraftEditCall(project=PROJECT, resource="mem_ref", scope=Scope.ORG, body="# x\n"))

    with pytest.raises(InterleafError) as refused:
        world.edit.edit(DraftEditCall(project=PROJECT, resource="mem_ref", scope=Scope.PROJECT, body="# y\n"))
    assert refused.value.code is ErrorCode.ALREADY_EXISTS


@pytest.mark.requirement("drafts.resolve")
@pytest.mark.parametrize("by_draft", [True, False])
def test_an_edit_of_a_conflicting_draft_is_recorded_on_the_newest_published_state(
    world: LocalWorld, by_draft: bool
) -> None:
    draft_id = conflicting(world)

    made = world.edit.edit(
        DraftEditCall(
            project=PROJECT, resource=draft_id if by_draft else "mem_own", body="# Own\n\nalpha both gamma\n"
        )
    )

    draft = world.draft(draft_id)
    rebase = draft.operations[-1]
    assert made.draft_id == draft_id
    assert (rebase.kind, rebase.base_commit) == (OperationKind.REBASE, "c2")
    assert (draft.base_commit, draft.base.description) == ("c2", "theirs")
    assert (draft.reconciliation, draft.conflicts) == (Reconciliation.UNKNOWN, ())
    assert world.item("mem_own").body == "# Own\n\nalpha both gamma\n"
    assert world.item("mem_own").draft is not None
    assert world.outbox()[-1].operation_id == made.local_operation_id


@pytest.mark.requirement("drafts.resolve")
def test_a_conflict_with_a_deletion_is_answered_by_keeping_or_by_deleting(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "mine")
    world.publish([REFERENCE], commit="c2", seq=2)
    draft = replace(
        world.draft(edited.draft_id), reconciliation=Reconciliation.CONFLICTS, conflicts=("existence",)
    )
    world.set_draft(draft)

    world.edit.edit(DraftEditCall(project=PROJECT, resource="mem_own", body="# Kept\n"))
    assert world.item("mem_own").body == "# Kept\n"
    assert world.draft(edited.draft_id).base == ABSENT
    world.set_draft(replace(world.draft(edited.draft_id), reconciliation=Reconciliation.CONFLICTS))
    world.edit.edit(DraftEditCall(project=PROJECT, resource=edited.draft_id, delete=True))
    assert "mem_own" not in world.shown().by_id
    assert world.draft(edited.draft_id).operations[-1].state == ABSENT


def test_a_draft_that_deletes_its_resource_cannot_be_edited_but_discarded_by_path(world: LocalWorld) -> None:
    deleted = world.delete("mem_own")

    with pytest.raises(InterleafError) as refused:
        world.edit.edit(DraftEditCall(project=PROJECT, resource="mem_own", body="# x"))
    assert refused.value.code is ErrorCode.DRAFT_NOT_FOUND
    discarded = world.edit.discard(DraftCall(draft="own.md", project=PROJECT))
    assert discarded.draft_id == deleted.draft_id
    assert world.item("mem_own").body == OWN.body


@pytest.mark.requirement("drafts.discard.lost")
def test_a_draft_may_be_discarded_after_access_to_its_project_was_lost(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    with world.store.write() as uow:
        row = uow.projects.get(PROJECT)
        assert row is not None
        uow.projects.put(replace(row, access=False))
        uow.published.delete_project(PROJECT)
        uow.touch(PROJECT)

    world.edit.discard(DraftCall(draft=edited.draft_id))

    assert world.draft(edited.draft_id).status is DraftStatus.DISCARDED


def test_a_finished_draft_is_neither_edited_nor_discarded(world: LocalWorld) -> None:
    edited = world.update("mem_own", "beta", "BETA")
    world.edit.discard(DraftCall(draft="mem_own"))

    for attempt in (
        lambda: world.edit.edit(DraftEditCall(project=PROJECT, resource=edited.draft_id, body="# x")),
        lambda: world.edit.discard(DraftCall(draft=edited.draft_id)),
    ):
        with pytest.raises(InterleafError) as refused:
            attempt()
        assert refused.value.code is ErrorCode.DRAFT_NOT_OPEN


def test_a_path_that_means_drafts_of_two_projects_needs_the_project(world: LocalWorld) -> None:
    world.publish([], commit="x", seq=1, project_id="prj_2")
    for project in (PROJECT, "prj_2"):
        world.edit.create(DraftCreateCall(project=project, scope=Scope.PROJECT, path="a.md", body="# A"))

    with pytest.raises(InterleafError) as refused:
        world.edit.discard(DraftCall(draft="a.md"))
    assert refused.value.code is ErrorCode.INVALID_ARGUMENTS
    assert len(refused.value.details["drafts"]) == 2
    world.edit.discard(DraftCall(draft="a.md", project="prj_2"))
    world.edit.discard(DraftCall(draft="a.md"))


@pytest.mark.requirement("reconcile.no_markers")
def test_a_resolution_with_fresh_marker_lines_is_refused_before_it_is_stored(world: LocalWorld) -> None:
    draft_id = conflicting(world)
    before = world.dump()
    marked = "<<<<<<< mine\nmine\n=======\ntheirs\n>>>>>>> theirs\n"
    with pytest.raises(InterleafError) as refused:
        world.edit.edit(DraftEditCall(project=PROJECT, resource=draft_id, body=marked))
    assert (refused.value.code, refused.value.details) == (ErrorCode.CONFLICT_MARKERS, {"lines": [1, 3, 5]})
    assert world.dump() == before
