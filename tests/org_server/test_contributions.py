"""Org contributions from submission over the Project's merge to the Organization's own Review."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from org_server.services import contribute, merge_review
from shared_schema.org_contract import Role
from tests.org_server.harness import Server
from tests.org_server.people import DraftHandle, Person, Team, refused, succeeded
from tests.org_server.test_merging import at_once


class Contributors(Team):
    """``mia`` writes with contributions, ``rob`` merges for the Project, ``ada`` for the Organization."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        one = self.ada.create(self.project, "org/one.md", "one\n", scope="org")
        self.ada.publish(one)
        self.one = one.resource_id
        self.ada.select(self.project)

    def merged(self, *drafts: DraftHandle, wish: list[dict[str, Any]]) -> dict[str, Any]:
        """Submit as mia, merge as rob, and return the Project Review then."""
        review = self.mia.submit(*drafts, org_contribution=wish)
        answer = succeeded(self.rob.merge(review))
        assert answer.status_code == 200
        return self.mia.review(answer.json()["review_id"])

    def retry(self, person: Person, review: dict[str, Any]) -> Any:
        return person.http.post(f"/reviews/{review['review']['review_id']}/org-contribution")

    def adapt(self, path: str, body: str) -> DraftHandle:
        source = {"resource_id": self.one, "commit_id": str(self.mia.org_ref())}
        return self.mia.create(self.project, path, body, org_source=source)

    def org_reviews(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ada.get("/reviews", params={"scope": "org"})["reviews"]
        return [review for review in found if review["author_id"] == self.mia.user_id]

    def org_paths(self) -> set[str]:
        return {row["path"] for row in self.ada.get("/org/memories")["resources"]}


@pytest.fixture
def team(server: Server) -> Contributors:
    return Contributors(server)


@pytest.mark.requirement("contribution.published", "contribution.not_selected")
def test_what_a_merge_published_is_offered_and_selected_only_by_choice(team: Contributors) -> None:
    new = team.mia.create(team.project, "a.md", "shared\n", description="for all")
    other = team.mia.create(team.project, "b.md", "ours alone\n")
    cursor = team.mia.cursor()
    review = team.merged(new, other, wish=[{"draft_id": new.draft_id, "path": "guides/a.md"}])
    assert review["org_contribution"] == [
        {"draft_id": new.draft_id, "path": "guides/a.md", "target_id": None}
    ]
    assert review["contribution_error"] is None
    offered = team.ada.review(review["contribution_review_id"])
    assert offered["contribution_of"] == review["review"]["review_id"]
    assert (offered["review"]["scope"], offered["review"]["status"]) == ("org", "open")
    assert offered["review"]["author_id"] == team.mia.user_id
    assert offered["review"]["title"] == review["review"]["title"]
    [entry] = offered["entries"]
    assert entry["before"]["exists"] is False
    assert (entry["after"]["path"], entry["after"]["body"]) == ("guides/a.md", "shared\n")
    assert entry["after"]["description"] == "for all"
    assert entry["resource_id"] not in {new.resource_id, other.resource_id}
    expected = ["review.merged", "draft.created", "draft.submitted", "review.opened"]
    assert team.mia.events(cursor)[-4:] == expected
    before = team.ada.get(f"/projects/{team.project}/org-selections")
    succeeded(team.ada.merge(offered))
    assert "guides/a.md" in team.org_paths()
    assert team.ada.get(f"/projects/{team.project}/org-selections") == before
    assert sorted(team.mia.view(team.project)) == ["a.md", "b.md"]


@pytest.mark.requirement("contribution.published")
def test_an_adaptation_is_offered_to_its_source_on_the_newest_org_commit(team: Contributors) -> None:
    draft = team.adapt("ours.md", "better\n")
    review = team.mia.submit(draft, org_contribution=[{"draft_id": draft.draft_id}])
    assert review["org_contribution"][0]["target_id"] == team.one
    team.ada.publish(team.ada.create(team.project, "org/two.md", scope="org"))
    succeeded(team.rob.merge(team.rob.review(review["review"]["review_id"])))
    offered = team.ada.review(team.mia.review(review["review"]["review_id"])["contribution_review_id"])
    [entry] = offered["entries"]
    assert (entry["resource_id"], entry["freshness"]) == (team.one, "current")
    assert (entry["before"]["body"], entry["after"]["body"]) == ("one\n", "better\n")
    assert entry["after"]["path"] == "org/one.md"
    succeeded(team.ada.merge(offered))
    assert team.ada.get(f"/org/memories/{team.one}")["resource"]["body"] == "better\n"


@pytest.mark.requirement("contribution.published")
def test_the_published_content_is_offered_whatever_is_published_next(
    team: Contributors, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = team.mia.create(team.project, "a.md", "first\n")
    monkeypatch.setattr(merge_review, "contribute_after_merge", lambda *_: None)
    review = team.merged(draft, wish=[{"draft_id": draft.draft_id}])
    team.rob.publish(team.rob.edit(team.project, draft.resource_id, "second\n"))
    offered = succeeded(team.retry(team.mia, review)).json()
    assert offered["entries"][0]["after"]["body"] == "first\n"


@pytest.mark.requirement("contribution.checked")
def test_a_wish_is_checked_when_it_is_submitted(team: Contributors) -> None:
    draft = team.mia.create(team.project, "a.md")
    gone = team.rob.create(team.project, "gone.md")
    team.rob.publish(gone)
    removal = team.mia.remove(team.project, gone.resource_id)
    org = team.mia.create(team.project, "o.md", scope="org")

    def attempt(name: DraftHandle, scope: str = "project", *drafts: DraftHandle, **wish: str) -> Any:
        body = {
            "project_id": team.project,
            "scope": scope,
            "draft_ids": [each.draft_id for each in drafts or (name,)],
            "title": "t",
            "org_contribution": [{"draft_id": name.draft_id, **wish}],
        }
        return team.mia.post("/reviews", body)

    refused(attempt(org, "org"), "invalid_arguments", 400)
    refused(attempt(org, "project", draft), "invalid_arguments", 400)
    refused(attempt(removal), "invalid_arguments", 400)
    refused(attempt(draft, target_id="mem_unknown"), "invalid_arguments", 400)
    refused(attempt(draft, target_id=gone.resource_id), "invalid_arguments", 400)
    refused(attempt(draft, path="a//b"), "invalid_path", 400)
    adapted = team.adapt("ours.md", "better\n")
    team.ada.publish(team.ada.remove(team.project, team.one, scope="org"))
    refused(attempt(adapted), "invalid_arguments", 400)
    assert team.mia.get("/reviews", params={"status": "open"})["reviews"] == []
    succeeded(attempt(adapted, path="now/new.md"))


def test_a_draft_that_leaves_the_review_leaves_the_contribution(team: Contributors) -> None:
    first, second = team.mia.create(team.project, "a.md"), team.mia.create(team.project, "b.md")
    wish = [{"draft_id": first.draft_id}]
    review = team.mia.submit(first, second, org_contribution=wish)
    succeeded(team.mia.http.delete(f"/drafts/{first.draft_id}"))
    left = team.rob.review(review["review"]["review_id"])
    assert left["org_contribution"] == []
    succeeded(team.rob.merge(left))
    assert team.org_reviews() == []
    refused(team.retry(team.mia, left), "not_found", 404)


@pytest.mark.requirement("contribution.failure", "contribution.retry")
def test_a_path_that_the_organization_has_taken_stops_the_contribution_until_it_is_free(
    team: Contributors,
) -> None:
    draft = team.mia.create(team.project, "org/ONE.md", "mine\n")
    review = team.merged(draft, wish=[{"draft_id": draft.draft_id}])
    assert review["review"]["status"] == "merged"
    assert review["contribution_review_id"] is None
    assert review["contribution_error_code"] == "path_occupied"
    assert "org/ONE.md" in review["contribution_error"]
    assert "contribution.failed" in team.server.audit()
    assert sorted(team.mia.view(team.project)) == ["org/ONE.md"]
    details = refused(team.retry(team.mia, review), "path_occupied", 409)
    assert details == {"path": "org/ONE.md", "resource_id": team.one}
    assert team.org_reviews() == []
    team.ada.publish(team.ada.remove(team.project, team.one, scope="org"))
    offered = succeeded(team.retry(team.mia, review)).json()
    assert offered["entries"][0]["after"]["body"] == "mine\n"
    after = team.mia.review(review["review"]["review_id"])
    assert after["contribution_review_id"] == offered["review"]["review_id"]
    assert (after["contribution_error"], after["contribution_error_code"]) == (None, None)
    again = succeeded(team.retry(team.rob, review)).json()
    assert again["review"]["review_id"] == offered["review"]["review_id"]
    assert len(team.org_reviews()) == 1


@pytest.mark.requirement("contribution.failure")
def test_two_contributions_for_one_path_and_a_deleted_target_are_told_apart(team: Contributors) -> None:
    one, two = team.mia.create(team.project, "a.md"), team.mia.create(team.project, "b.md")
    wish = [{"draft_id": each.draft_id, "path": "same.md"} for each in (one, two)]
    assert team.merged(one, two, wish=wish)["contribution_error_code"] == "path_occupied"
    three = team.mia.create(team.project, "c.md")
    review = team.mia.submit(three, org_contribution=[{"draft_id": three.draft_id, "target_id": team.one}])
    team.ada.publish(team.ada.remove(team.project, team.one, scope="org"))
    succeeded(team.rob.merge(review))
    after = team.mia.review(review["review"]["review_id"])
    assert after["contribution_error_code"] == "memory_resource_not_found"


@pytest.mark.requirement("contribution.failure")
@pytest.mark.parametrize("lost", ["membership", "account"])
def test_an_author_who_lost_access_keeps_the_merge_and_may_be_helped_by_an_admin(
    team: Contributors, lost: str
) -> None:
    draft = team.mia.create(team.project, "a.md")
    review = team.mia.submit(draft, org_contribution=[{"draft_id": draft.draft_id}])
    member = f"/projects/{team.project}/members/{team.mia.user_id}"
    user = f"/admin/users/{team.mia.user_id}"

    def disabled(value: bool) -> None:
        version = team.ada.get(user)["version"]
        team.ada.caller.ok("PATCH", user, json={"disabled": value}, headers={"If-Match": f'"{version}"'})

    if lost == "membership":
        succeeded(team.ada.http.delete(member))
    else:
        disabled(True)
    succeeded(team.rob.merge(review))
    after = team.rob.review(review["review"]["review_id"])
    assert (after["review"]["status"], after["contribution_error_code"]) == ("merged", "forbidden")
    refused(team.retry(team.rob, after), "forbidden", 403)
    if lost == "membership":
        email = team.mia.caller.email
        succeeded(team.ada.post(f"/projects/{team.project}/members", {"email": email, "role": "member"}))
    else:
        disabled(False)
    offered = succeeded(team.retry(team.rob, after)).json()
    assert offered["review"]["author_id"] == team.mia.user_id


@pytest.mark.requirement("contribution.retry")
def test_only_the_author_and_who_may_decide_tries_again_and_only_after_the_merge(team: Contributors) -> None:
    draft = team.mia.create(team.project, "org/one.md")
    review = team.mia.submit(draft, org_contribution=[{"draft_id": draft.draft_id}])
    refused(team.retry(team.mia, review), "review_not_approved", 409)
    second = team.mia.create(team.project, "b.md")
    other = team.mia.submit(second, org_contribution=[{"draft_id": second.draft_id}])
    succeeded(team.rob.decide(other, "rejected"))
    assert refused(team.retry(team.mia, other), "review_closed", 409) == {"status": "rejected"}
    succeeded(team.rob.merge(review))
    member, stranger = team.person("max"), team.person("eve")
    body = {"email": member.caller.email, "role": "member"}
    succeeded(team.ada.post(f"/projects/{team.project}/members", body))
    refused(team.retry(member, review), "forbidden", 403)
    refused(team.retry(stranger, review), "not_found", 404)
    boss = Person(team.server, team.server.user("boss", role=Role.ADMIN))
    reader = Person(
        team.server, team.server.token_for(team.mia.caller.email, team.mia.user_id, read_only=True)
    )
    refused(team.retry(reader, review), "forbidden", 403)
    for person in (team.mia, team.rob, boss):
        refused(team.retry(person, review), "path_occupied", 409)
    plain = team.rob.create(team.project, "plain.md")
    merged = team.rob.publish(plain)
    refused(team.retry(team.rob, team.rob.review(merged["review_id"])), "not_found", 404)


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.requirement("contribution.failure", "contribution.retry")
def test_a_crash_between_the_two_transactions_leaves_it_to_be_tried_again(
    team: Contributors, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = team.mia.create(team.project, "a.md")
    review = team.mia.submit(draft, org_contribution=[{"draft_id": draft.draft_id}])

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(merge_review, "contribute_after_merge", crash)
        with pytest.raises(Crash):
            team.rob.merge(review)
    after = team.mia.review(review["review"]["review_id"])
    assert after["review"]["status"] == "merged"
    assert (after["contribution_review_id"], after["contribution_error"]) == (None, None)
    offered = succeeded(team.retry(team.mia, after)).json()
    assert offered["contribution_of"] == review["review"]["review_id"]


@pytest.mark.requirement("contribution.failure")
def test_a_fault_in_the_contribution_never_reaches_the_merge(
    team: Contributors, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = team.mia.create(team.project, "a.md")
    review = team.mia.submit(draft, org_contribution=[{"draft_id": draft.draft_id}])

    def fault(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(contribute, "begin", fault)
        merged = succeeded(team.rob.merge(review)).json()
    after = team.mia.review(review["review"]["review_id"])
    assert (after["review"]["status"], after["commit_id"]) == ("merged", merged["commit_id"])
    assert after["contribution_review_id"] is None
    assert team.org_reviews() == [], "nothing is half done"
    with team.server.units.engine.connect() as connection:
        drafts = connection.execute(text("SELECT count(*) FROM draft WHERE installation_id = 'ins_server'"))
        assert drafts.scalar_one() == 0
    succeeded(team.retry(team.mia, after))


@pytest.mark.requirement("contribution.once")
def test_many_tries_at_once_open_one_org_review(team: Contributors, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts = [team.mia.create(team.project, f"{number}.md") for number in range(3)]
    monkeypatch.setattr(merge_review, "contribute_after_merge", lambda *_: None)
    for draft in drafts:
        review = team.merged(draft, wish=[{"draft_id": draft.draft_id}])
        calls = [partial(team.retry, person, review) for person in (team.mia, team.rob, team.ada)]
        answers = at_once(calls * 2)
        opened = {succeeded(answer).json()["review"]["review_id"] for answer in answers}
        assert len(opened) == 1
        assert team.mia.review(review["review"]["review_id"])["contribution_review_id"] in opened
    assert len(team.org_reviews()) == len(drafts)
