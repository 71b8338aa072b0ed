"""Org merges in the Projects that select what they touch, and adaptations of Org resources."""

from __future__ import annotations

from typing import Any

import pytest

from tests.org_server.harness import Server
from tests.org_server.people import DraftHandle, Team, refused, succeeded


class OrgTeam(Team):
    """With a second Project ``Api`` and two published Org resources, neither selected anywhere."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.api = server.project(server.ada, "Api", member=self.mia.caller)
        one, two = self.org("one.md", "one\n"), self.org("two.md", "two\n")
        self.ada.publish(one, two)
        self.one, self.two = one.resource_id, two.resource_id
        self.ada.select(self.project)

    def org(self, path: str, body: str = "text\n") -> DraftHandle:
        return self.ada.create(self.project, path, body, scope="org")

    def commits(self, project_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ada.get(f"/projects/{project_id}/commits")["commits"]
        return found

    def adapt(self, source_id: str, path: str, body: str = "ours\n") -> DraftHandle:
        """Upload mia's adaptation of the Org resource as the Organization has it now."""
        source = {"resource_id": source_id, "commit_id": str(self.mia.org_ref())}
        return self.mia.create(self.project, path, body, org_source=source)


@pytest.fixture
def team(server: Server) -> OrgTeam:
    return OrgTeam(server)


@pytest.mark.requirement("org.created_is_selected")
def test_a_resource_made_by_an_org_review_is_selected_for_the_carrying_project_only(team: OrgTeam) -> None:
    before = team.ada.get(f"/projects/{team.project}/org-selections")
    cursor = team.mia.cursor()
    made = team.org("three.md")
    merged = team.ada.publish(made)
    assert merged["ref"]["owner"] == team.server.org_id
    after = team.ada.get(f"/projects/{team.project}/org-selections")
    assert after["revision"] == before["revision"] + 1
    assert [item["resource_id"] for item in after["resources"]] == [made.resource_id]
    assert team.mia.view(team.project) == {"three.md": made.resource_id}
    assert team.mia.view(team.api) == {}
    change = team.commits(team.project)[-1]["changes"][0]
    assert change["scope"] == "org"
    assert change["org_source"] == {"resource_id": made.resource_id, "commit_id": merged["commit_id"]}
    events = team.mia.events(cursor)
    assert events.count("ref.moved") == 2
    assert "selection.changed" in events


@pytest.mark.requirement("org.fan_out")
def test_an_org_merge_appends_one_commit_to_every_project_that_selects_what_it_touches(
    team: OrgTeam,
) -> None:
    team.ada.select(team.project, team.one, team.two)
    team.ada.select(team.api, team.one)
    third = team.server.project(team.server.ada, "Third")
    before = {each: len(team.commits(each)) for each in (team.project, team.api, third)}
    merged = team.ada.publish(
        team.ada.edit(team.project, team.one, "ONE\n", scope="org"),
        team.ada.edit(team.project, team.two, "TWO\n", scope="org"),
    )
    after = {each: len(team.commits(each)) for each in before}
    assert {each: after[each] - before[each] for each in before} == {team.project: 1, team.api: 1, third: 0}
    last = team.commits(team.api)[-1]
    assert last["review_id"] == merged["review_id"]
    assert [(item["resource_id"], item["body"]) for item in last["changes"]] == [(team.one, "ONE\n")]
    assert len(team.commits(team.project)[-1]["changes"]) == 2
    source = last["changes"][0]["org_source"]
    assert source == {"resource_id": team.one, "commit_id": merged["commit_id"]}


@pytest.mark.requirement("org.deleted_leaves_selections")
def test_a_deleted_org_resource_leaves_the_selections_and_the_views(team: OrgTeam) -> None:
    team.ada.select(team.project, team.one, team.two)
    revision = team.ada.get(f"/projects/{team.project}/org-selections")["revision"]
    team.ada.publish(team.ada.remove(team.project, team.one, scope="org"))
    selections = team.ada.get(f"/projects/{team.project}/org-selections")
    assert selections["revision"] == revision + 1
    assert [item["resource_id"] for item in selections["resources"]] == [team.two]
    assert team.mia.view(team.project) == {"two.md": team.two}
    change = team.commits(team.project)[-1]["changes"][0]
    assert (change["removed"], change["path"], change["body"]) == (True, "one.md", None)


@pytest.mark.requirement("org.fan_out_paths")
def test_an_org_merge_that_clashes_in_a_selecting_project_changes_nothing_anywhere(team: OrgTeam) -> None:
    team.ada.select(team.api, team.one)
    local = team.mia.create(team.api, "taken.md")
    team.ada.publish(team.ada.create(team.api, "other.md"))
    review = team.mia.submit(local)
    succeeded(team.ada.merge(team.ada.review(review["review"]["review_id"])))
    rename = team.ada.new_draft(team.project, resource_id=team.one, scope="org")
    team.ada.append(rename, "rename", path="Taken.md")
    org_review = team.ada.submit(rename)
    heads = team.ada.org_ref(), team.ada.ref(team.api)
    details = refused(team.ada.merge(org_review), "path_occupied", 409)
    assert details["drafts"] == [
        {
            "draft_id": rename.draft_id,
            "path": "Taken.md",
            "resource_id": local.resource_id,
            "project_id": team.api,
        }
    ]
    assert (team.ada.org_ref(), team.ada.ref(team.api)) == heads
    assert team.ada.review(org_review["review"]["review_id"])["review"]["status"] == "open"


@pytest.mark.requirement("adaptation.hides_source")
def test_merging_an_adaptation_hides_its_source_and_deleting_it_brings_the_source_back(
    team: OrgTeam,
) -> None:
    team.ada.select(team.project, team.one)
    draft = team.adapt(team.one, "one.md")
    succeeded(team.rob.merge(team.mia.submit(draft)))
    assert team.mia.view(team.project) == {"one.md": draft.resource_id}
    hidden = {item["resource_id"]: item for item in team.commits(team.project)[-1]["changes"]}
    assert hidden[team.one]["removed"] is True
    assert hidden[team.one]["scope"] == "org"
    assert hidden[draft.resource_id]["org_source"]["resource_id"] == team.one
    path = f"/projects/{team.project}/memories/{team.one}"
    details = refused(team.mia.http.get(path), "memory_resource_not_found", 404)
    assert details["adapted_by"] == draft.resource_id
    team.rob.publish(team.rob.remove(team.project, draft.resource_id))
    assert team.mia.view(team.project) == {"one.md": team.one}
    back = {item["resource_id"]: item for item in team.commits(team.project)[-1]["changes"]}
    assert back[team.one]["removed"] is False
    assert back[draft.resource_id]["removed"] is True


def test_a_source_whose_selection_went_meanwhile_does_not_come_back(team: OrgTeam) -> None:
    team.ada.select(team.project, team.one)
    draft = team.adapt(team.one, "one.md")
    succeeded(team.rob.merge(team.mia.submit(draft)))
    team.ada.select(team.project)
    assert team.mia.view(team.project) == {"one.md": draft.resource_id}
    team.rob.publish(team.rob.remove(team.project, draft.resource_id))
    assert team.mia.view(team.project) == {}


def test_a_source_that_cannot_have_its_path_back_stops_the_end_of_its_adaptation(team: OrgTeam) -> None:
    team.ada.select(team.project, team.one)
    draft = team.adapt(team.one, "ours.md")
    succeeded(team.rob.merge(team.mia.submit(draft)))
    other = team.rob.create(team.project, "one.md")
    team.rob.publish(other)
    removal = team.rob.remove(team.project, draft.resource_id)
    details = refused(team.rob.merge(team.rob.submit(removal)), "path_occupied", 409)
    assert details["drafts"][0]["draft_id"] == removal.draft_id
    assert details["drafts"][0]["resource_id"] == other.resource_id


@pytest.mark.requirement("adaptation.one_per_source")
def test_a_source_is_adapted_once_in_a_project(team: OrgTeam) -> None:
    team.ada.select(team.project, team.one)
    first, second = team.adapt(team.one, "a.md"), team.adapt(team.one, "b.md")
    review = team.mia.submit(second)
    succeeded(team.rob.merge(team.mia.submit(first)))
    details = refused(
        team.rob.merge(team.rob.review(review["review"]["review_id"])), "adaptation_exists", 409
    )
    assert details["drafts"] == [{"draft_id": second.draft_id, "adapted_by": first.resource_id}]
    both = team.adapt(team.two, "c.md"), team.adapt(team.two, "d.md")
    refused(team.rob.merge(team.mia.submit(*both)), "adaptation_exists", 409)


@pytest.mark.requirement("adaptation.source_updated")
def test_a_new_version_of_a_hidden_source_is_told_and_leaves_the_view_alone(team: OrgTeam) -> None:
    team.ada.select(team.project, team.one)
    draft = team.adapt(team.one, "one.md")
    succeeded(team.rob.merge(team.mia.submit(draft)))
    head = team.mia.ref(team.project)
    cursor = team.mia.cursor()
    team.ada.publish(team.ada.edit(team.project, team.one, "newer\n", scope="org"))
    assert team.mia.ref(team.project) == head
    assert "adaptation.source_updated" in team.mia.events(cursor)
    listed = team.mia.get(f"/projects/{team.project}/adaptations")["adaptations"]
    assert [(item["resource_id"], item["outdated"]) for item in listed] == [(draft.resource_id, True)]
    team.ada.publish(team.ada.remove(team.project, team.one, scope="org"))
    assert team.mia.ref(team.project) == head, "the adaptation stays"
    assert team.ada.get(f"/projects/{team.project}/org-selections")["resources"] == []


def test_a_rebase_may_bring_an_adaptation_onto_a_newer_version_of_its_source(team: OrgTeam) -> None:
    team.ada.select(team.project, team.one)
    draft = team.adapt(team.one, "one.md")
    team.ada.publish(team.ada.edit(team.project, team.one, "newer\n", scope="org"))
    newest = {"resource_id": team.one, "commit_id": team.mia.org_ref()}
    state = {"exists": True, "path": "one.md", "body": "ours, newer\n", "org_source": newest}
    team.mia.append(draft, "rebase", base_commit=team.mia.ref(team.project), state=state)
    succeeded(team.rob.merge(team.mia.submit(draft)))
    listed = team.mia.get(f"/projects/{team.project}/adaptations")["adaptations"]
    assert [item["outdated"] for item in listed] == [False]


@pytest.mark.parametrize(
    ("source", "header", "code", "status"),
    [
        ({"commit_id": "0" * 64}, {}, "commit_unknown", 409),
        ({"resource_id": "mem_unknown"}, {}, "invalid_arguments", 400),
        ({}, {"scope": "org"}, "invalid_arguments", 400),
    ],
)
def test_an_adaptation_names_a_version_that_the_organization_published(
    team: OrgTeam, source: dict[str, str], header: dict[str, Any], code: str, status: int
) -> None:
    org_source = {"resource_id": team.one, "commit_id": str(team.mia.org_ref())} | source
    draft = team.mia.new_draft(team.project, org_source=org_source, **header)
    refused(team.mia.upload(draft, draft.operation("create", path="a.md", body="x\n")), code, status)


def test_an_org_reference_is_no_resource_of_the_project_to_edit(team: OrgTeam) -> None:
    team.ada.select(team.project, team.one)
    draft = team.mia.new_draft(team.project, resource_id=team.one)
    refused(team.mia.upload(draft, draft.operation("update", body="x\n")), "invalid_arguments", 400)


def test_an_org_draft_is_behind_by_the_organizations_ref_not_the_projects(team: OrgTeam) -> None:
    draft = team.mia.edit(team.project, team.one, "mine\n", scope="org")
    team.rob.publish(team.rob.create(team.project, "local.md"))
    assert team.mia.draft(draft)["freshness"] == "current"
    team.ada.publish(team.ada.edit(team.project, team.two, "moved\n", scope="org"))
    assert team.mia.draft(draft)["freshness"] == "behind"
    assert team.mia.draft(draft)["reconciliation"] == "clean"
    review = team.mia.submit(draft)
    succeeded(team.ada.merge(review))
