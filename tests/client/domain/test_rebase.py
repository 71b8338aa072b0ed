from __future__ import annotations

import pytest

from client.domain.rebase import (
    AdvanceBase,
    DraftView,
    Keep,
    RecordRebase,
    ReportConflicts,
    current_of,
    decide_rebase,
)
from shared_schema.memory import ABSENT, OrgSource, PublishedResource, ResourceState, Scope
from shared_schema.rules.hashing import content_hash

BODY = "one\ntwo\nthree\nfour\nfive\n"


def state(body: str = BODY, path: str = "a.md") -> ResourceState:
    return ResourceState(exists=True, path=path, body=body)


def draft(base: ResourceState, result: ResourceState, *, conflicting: bool = False) -> DraftView:
    return DraftView(Scope.PROJECT, "c1", base, result, conflicting)


def free(path: str) -> str | None:
    return None


EDITED = state(BODY.replace("one", "ONE"))


def test_an_authority_that_stands_still_leaves_the_draft_alone() -> None:
    assert decide_rebase(draft(state(), EDITED), state(), "c1", free) == Keep()


@pytest.mark.requirement("sync.rebase.others")
def test_other_resources_moving_advance_the_base_and_upload_nothing() -> None:
    assert decide_rebase(draft(state(), EDITED), state(), "c2", free) == AdvanceBase("c2")


@pytest.mark.requirement("sync.rebase.clean")
def test_changes_in_different_lines_are_recorded_together_on_the_new_base() -> None:
    current = state(BODY.replace("five", "FIVE"))
    both = state(BODY.replace("one", "ONE").replace("five", "FIVE"))
    assert decide_rebase(draft(state(), EDITED), current, "c2", free) == RecordRebase("c2", current, both)


@pytest.mark.requirement("sync.rebase.conflicts")
def test_changes_of_the_same_line_are_reported_with_their_texts() -> None:
    decision = decide_rebase(draft(state(), EDITED), state(BODY.replace("one", "uno")), "c2", free)
    assert isinstance(decision, ReportConflicts)
    assert [(each.kind, each.current, each.draft) for each in decision.conflicts] == [
        ("content", "uno\n", "ONE\n")
    ]


def test_a_deletion_against_an_edit_is_a_conflict() -> None:
    decision = decide_rebase(draft(state(), EDITED), ABSENT, "c2", free)
    assert isinstance(decision, ReportConflicts)
    assert decision.conflicts[0].kind == "existence"


def test_a_path_that_somebody_took_meanwhile_is_a_conflict_though_the_own_resource_stood_still() -> None:
    created = draft(ABSENT, state(path="new.md"))
    decision = decide_rebase(created, ABSENT, "c2", lambda path: "mem_other" if path == "new.md" else None)
    assert isinstance(decision, ReportConflicts)
    assert decision.conflicts[0].current == "mem_other"


def test_a_conflict_that_went_away_is_forgotten_without_an_upload() -> None:
    created = draft(ABSENT, state(path="new.md"), conflicting=True)
    assert decide_rebase(created, ABSENT, "c1", free) == AdvanceBase("c1")


def test_a_draft_that_the_publication_equals_is_moved_onto_it() -> None:
    assert decide_rebase(draft(state(), EDITED), EDITED, "c2", free) == RecordRebase("c2", EDITED, EDITED)


def test_a_draft_of_org_scope_stands_at_the_commit_that_published_its_reference() -> None:
    reference = PublishedResource(
        resource_id="mem_o",
        scope=Scope.ORG,
        path="a.md",
        description="",
        body=BODY,
        content_hash=content_hash(BODY),
        org_source=OrgSource(resource_id="mem_o", commit_id="o7"),
    )
    assert current_of(Scope.ORG, reference, "c9", "o1") == (state(), "o7")
    assert current_of(Scope.ORG, None, "c9", "o1") == (ABSENT, "o1")
    assert current_of(Scope.PROJECT, None, "c9", "c1") == (ABSENT, "c9")
