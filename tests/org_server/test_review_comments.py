"""Comments on Reviews: resolved by whom it concerns, and following the text that they are about."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from shared_schema import ids
from tests.org_server.harness import Server
from tests.org_server.people import DraftHandle, Person, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


def say(person: Person, review: dict[str, Any], **anchor: object) -> dict[str, Any]:
    path = f"/reviews/{review['review']['review_id']}/comments"
    found: dict[str, Any] = succeeded(person.post(path, {"body": "Is it so?", **anchor})).json()
    return found


def resolve(person: Person, review: dict[str, Any], comment: str, resolved: object = True) -> httpx.Response:
    path = f"/reviews/{review['review']['review_id']}/comments/{comment}"
    return person.http.patch(path, json={"resolved": resolved})


def only(person: Person, review: dict[str, Any]) -> dict[str, Any]:
    comments = person.get(f"/reviews/{review['review']['review_id']}/comments")["comments"]
    assert len(comments) == 1
    found: dict[str, Any] = comments[0]
    return found


def where(comment: dict[str, Any]) -> tuple[Any, ...]:
    return comment["present_path"], comment["present_line"], comment["outdated"]


@pytest.fixture
def draft(team: Team) -> DraftHandle:
    return team.mia.create(team.project, "a.md", "one\ntwo\nthree\n")


@pytest.mark.requirement("comment.resolved")
def test_a_comment_is_resolved_and_opened_again_with_who_and_when(team: Team, draft: DraftHandle) -> None:
    review = team.mia.submit(draft)
    made = say(team.rob, review)
    assert (made["resolved"], made["resolved_by"], made["resolved_at"]) == (False, None, None)
    cursor = team.ada.cursor()
    done = succeeded(resolve(team.mia, review, made["comment_id"])).json()
    assert (done["resolved"], done["resolved_by"]) == (True, team.mia.user_id)
    assert done["resolved_by_email"] == "mia@example.org"
    assert done["resolved_at"] > made["created_at"]
    assert team.ada.events(cursor) == ["review.commented"]
    cursor = team.ada.cursor()
    assert succeeded(resolve(team.rob, review, made["comment_id"])).json() == done
    assert team.ada.events(cursor) == []
    assert only(team.ada, review) == done
    succeeded(resolve(team.rob, review, made["comment_id"], False))
    assert only(team.ada, review) == made


@pytest.mark.requirement("comment.resolved")
def test_only_its_author_the_reviews_author_and_deciders_resolve_a_comment(
    team: Team, draft: DraftHandle
) -> None:
    review = team.mia.submit(draft)
    joe, eve = team.person("joe"), team.person("eve")
    members = f"/projects/{team.project}/members"
    succeeded(team.ada.post(members, {"email": "joe@example.org", "role": "member"}))
    by_rob, by_joe = say(team.rob, review)["comment_id"], say(joe, review)["comment_id"]
    refused(resolve(joe, review, by_rob), "forbidden", 403)
    refused(resolve(eve, review, by_rob), "not_found", 404)
    reader = Person(team.server, team.server.token_for("mia@example.org", team.mia.user_id, read_only=True))
    refused(resolve(reader, review, by_rob), "forbidden", 403)
    assert [succeeded(resolve(who, review, by_joe)).status_code for who in (joe, team.mia, team.rob)] == [
        200
    ] * 3
    org = team.mia.submit(team.mia.create(team.project, "o.md", scope="org"))
    by_mia = say(team.mia, org)["comment_id"]
    refused(resolve(team.rob, org, by_mia), "forbidden", 403)
    succeeded(resolve(team.ada, org, by_mia))
    for missing in (by_mia, ids.new_id("cmt")):
        refused(resolve(team.ada, review, missing), "not_found", 404)
    refused(resolve(team.ada, review, by_rob, "yes"), "invalid_arguments", 400)


@pytest.mark.requirement("comment.follows")
def test_a_comment_follows_its_line_through_operations_and_renames(team: Team, draft: DraftHandle) -> None:
    review = team.mia.submit(draft)
    made = say(team.rob, review, draft_id=draft.draft_id, line=2)
    assert (made["path"], made["line"], made["quote"]) == ("a.md", 2, "two")
    assert where(made) == ("a.md", 2, False)
    team.mia.append(draft, "update", body="zero\none\ntwo\nTHREE\n")
    assert where(only(team.rob, review)) == ("a.md", 3, False)
    team.mia.append(draft, "rename", path="b.md")
    moved = only(team.rob, review)
    assert where(moved) == ("b.md", 3, False)
    assert (moved["path"], moved["line"], moved["quote"]) == ("a.md", 2, "two")
    team.mia.append(draft, "update", body="one\nother\n")
    assert where(only(team.rob, review)) == ("b.md", None, True)
    team.mia.append(draft, "update", body="two\none\n")
    assert where(only(team.rob, review)) == ("b.md", 1, False)


@pytest.mark.requirement("comment.follows")
def test_a_comment_follows_its_line_through_a_rebase(team: Team) -> None:
    made = team.ada.create(team.project, "a.md", "one\ntwo\nthree\nfour\n")
    team.ada.publish(made)
    edit = team.mia.edit(team.project, made.resource_id, "one\ntwo\nthree\nFOUR\n")
    review = team.mia.submit(edit)
    say(team.rob, review, path="a.md", line=4)
    team.ada.publish(team.ada.edit(team.project, made.resource_id, "zero\none\ntwo\nthree\nfour\n"))
    candidate = succeeded(team.mia.post(f"/drafts/{edit.draft_id}/reconciliation", None)).json()
    assert candidate["conflicts"] == []
    head = candidate["onto"]["commit_id"]
    team.mia.append(edit, "rebase", base_commit=head, state=candidate["result"])
    assert where(only(team.rob, review)) == ("a.md", 5, False)


@pytest.mark.requirement("comment.follows")
def test_a_comment_on_a_final_review_stays_on_what_was_judged(team: Team, draft: DraftHandle) -> None:
    review = team.mia.submit(draft)
    made = say(team.rob, review, draft_id=draft.draft_id, line=3)
    succeeded(team.rob.decide(review, "rejected"))
    team.mia.append(draft, "update", body="nothing of it\n")
    assert only(team.rob, review) == made
    late = say(team.rob, review, path="a.md", line=1)
    assert (late["quote"], where(late)) == ("one", ("a.md", 1, False))
    succeeded(resolve(team.mia, review, late["comment_id"]))


@pytest.mark.requirement("comment.follows")
def test_a_comment_on_a_draft_that_left_the_review_is_kept_as_outdated(
    team: Team, draft: DraftHandle
) -> None:
    other = team.mia.create(team.project, "b.md")
    review = team.mia.submit(draft, other)
    say(team.rob, review, path="a.md", line=1)
    succeeded(team.mia.http.delete(f"/drafts/{draft.draft_id}"))
    kept = only(team.rob, review)
    assert (kept["path"], kept["line"], kept["quote"]) == ("a.md", 1, "one")
    assert where(kept) == (None, None, True)


def test_an_anchor_names_a_document_of_the_review(team: Team, draft: DraftHandle) -> None:
    path = f"/reviews/{team.mia.submit(draft)['review']['review_id']}/comments"
    for anchor in (
        {"path": "b.md"},
        {"path": "b.md", "draft_id": draft.draft_id},
        {"path": "a.md", "line": 4},
        {"line": 1},
    ):
        refused(team.rob.post(path, {"body": "x", **anchor}), "invalid_arguments", 400)
