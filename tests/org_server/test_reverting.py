"""Taking merged Reviews back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.org_server.harness import Server
from tests.org_server.people import Person, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


def revert(person: Person, review_id: str) -> dict[str, Any]:
    found: dict[str, Any] = succeeded(person.post(f"/reviews/{review_id}/revert", {})).json()
    return found


def body_of(person: Person, project: str, resource: str) -> str:
    return str(person.get(f"/projects/{project}/memories/{resource}")["resource"]["body"])


@pytest.mark.requirement("revert.inverse")
def test_every_kind_of_change_is_taken_back_by_an_ordinary_review(team: Team) -> None:
    gone, moved, edited = (team.rob.create(team.project, f"{name}.md", "old\n") for name in ("g", "m", "e"))
    team.rob.publish(gone, moved, edited)
    before = team.mia.view(team.project)
    moving = team.rob.new_draft(team.project, resource_id=moved.resource_id)
    merged = team.rob.publish(
        team.rob.create(team.project, "new.md"),
        team.rob.remove(team.project, gone.resource_id),
        team.rob.append(moving, "rename", path="elsewhere.md"),
        team.rob.edit(team.project, edited.resource_id, "new\n"),
    )
    opened = revert(team.mia, merged["review_id"])
    assert (opened["review"]["status"], opened["review"]["title"]) == ("open", "Revert: Change")
    assert opened["review"]["author_id"] == team.mia.user_id
    assert opened["reverts"] == merged["review_id"]
    assert team.mia.view(team.project) != before
    refused(team.mia.merge(opened), "forbidden", 403)
    again = succeeded(team.rob.merge(opened)).json()
    assert team.mia.view(team.project) == before
    assert body_of(team.mia, team.project, edited.resource_id) == "old\n"
    refused(team.mia.post(f"/reviews/{merged['review_id']}/revert", {}), "draft_empty", 409)
    succeeded(team.rob.merge(revert(team.mia, again["review_id"])))
    assert "elsewhere.md" in team.mia.view(team.project)


@pytest.mark.requirement("revert.conflict")
def test_a_later_edit_is_kept_or_in_conflict_and_never_lost(team: Team) -> None:
    draft = team.rob.create(team.project, "a.md", "1\n2\n3\n4\n5\n")
    team.rob.publish(draft)
    resource = draft.resource_id
    merged = team.rob.publish(team.rob.edit(team.project, resource, "one\n2\n3\n4\n5\n"))
    team.rob.publish(team.rob.edit(team.project, resource, "one\n2\n3\n4\nfive\n"))
    clean = revert(team.mia, merged["review_id"])
    assert clean["entries"][0]["after"]["body"] == "1\n2\n3\n4\nfive\n"
    team.rob.publish(team.rob.edit(team.project, resource, "ONE\n2\n3\n4\nfive\n"))
    torn = revert(team.mia, merged["review_id"])
    assert torn["entries"][0]["reconciliation"] == "conflicts"
    refused(team.rob.merge(torn), "reconciliation_required", 409)
    assert body_of(team.mia, team.project, resource) == "ONE\n2\n3\n4\nfive\n"


def test_only_what_was_merged_can_be_taken_back(team: Team) -> None:
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    path = f"/reviews/{review['review']['review_id']}/revert"
    refused(team.mia.post(path, {}), "review_not_approved", 409)
    succeeded(team.rob.decide(review, "rejected"))
    refused(team.mia.post(path, {}), "review_closed", 409)
    refused(team.person("eve").post(path, {}), "not_found", 404)
