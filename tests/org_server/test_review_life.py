"""Reviews from submission to their end, with everything that moves along."""

from __future__ import annotations

import pytest

from shared_schema import ids
from shared_schema.org_contract import Role
from tests.org_server.harness import Server
from tests.org_server.people import Person, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


@pytest.mark.requirement("review.open")
def test_submitting_shows_the_states_a_diff_and_every_rule(team: Team) -> None:
    made = team.ada.create(team.project, "a.md", "one\ntwo\n")
    team.ada.publish(made)
    edit = team.mia.edit(team.project, made.resource_id, "one\nTWO\n")
    new = team.mia.create(team.project, "b.md", "new\n", description="second")
    review = team.mia.submit(edit, new, title="Two changes")
    assert review["review"]["status"] == "open"
    assert review["review"]["version"] == 1
    assert review["review"]["drafts"] == 2
    assert [entry["draft_id"] for entry in review["entries"]] == [edit.draft_id, new.draft_id]
    assert review["entries"][0]["before"]["body"] == "one\ntwo\n"
    assert review["entries"][0]["diff"] == "--- a.md\n+++ a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
    assert review["entries"][1]["before"]["exists"] is False
    assert {rule["rule"]: rule["status"] for rule in review["rules"]} == {
        "active": "satisfied",
        "not_empty": "satisfied",
        "base_current": "satisfied",
        "one_adaptation": "satisfied",
        "path_free": "satisfied",
        "not_author": "not_applicable",
        "approvals": "unsatisfied",
    }
    assert team.mia.draft(edit)["status"] == "submitted"
    assert team.mia.draft(edit)["review_id"] == review["review"]["review_id"]


def test_a_review_takes_only_open_changing_drafts_of_its_author_project_and_scope(team: Team) -> None:
    other = team.server.project(team.mia.caller, "Other")
    mine = team.mia.create(team.project, "a.md")
    theirs = team.rob.create(team.project, "b.md")
    elsewhere = team.mia.create(other, "c.md")
    org = team.mia.create(team.project, "d.md", scope="org")
    empty = team.mia.create(team.project, "e.md")
    team.mia.append(empty, "delete")

    def attempt(*draft_ids: str, **fields: object) -> dict[str, object]:
        base = {"project_id": team.project, "scope": "project", "draft_ids": list(draft_ids), "title": "t"}
        return base | fields

    reviews = [
        (attempt(mine.draft_id, theirs.draft_id), "draft_not_found", 404),
        (attempt(ids.new_id("drf")), "draft_not_found", 404),
        (attempt(mine.draft_id, elsewhere.draft_id), "invalid_arguments", 400),
        (attempt(mine.draft_id, org.draft_id), "invalid_arguments", 400),
        (attempt(mine.draft_id, mine.draft_id), "invalid_arguments", 400),
        (attempt(), "invalid_arguments", 400),
        (attempt(mine.draft_id, title=" "), "invalid_arguments", 400),
        (attempt(empty.draft_id), "draft_empty", 409),
    ]
    for body, code, status in reviews:
        refused(team.mia.post("/reviews", body), code, status)
    team.mia.submit(mine)
    refused(team.mia.post("/reviews", attempt(mine.draft_id)), "draft_not_open", 409)
    assert len(team.mia.get("/reviews")["reviews"]) == 1


@pytest.mark.requirement("review.approval_bound")
def test_an_appended_operation_turns_an_approved_review_back_to_open(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md", "one\n")
    review = team.mia.submit(draft)
    approved = succeeded(team.rob.decide(review, "approved", comment="good")).json()
    assert approved["review"]["status"] == "approved"
    assert [item["counts"] for item in approved["approvals"]] == [True]
    cursor = team.rob.cursor()
    team.mia.append(draft, "update", body="two\n")
    changed = team.rob.review(review["review"]["review_id"])
    assert changed["review"]["status"] == "open"
    assert changed["review"]["version"] > approved["review"]["version"]
    assert changed["result_hash"] != approved["result_hash"]
    assert [item["counts"] for item in changed["approvals"]] == [False]
    assert team.rob.events(cursor) == ["review.opened"]
    assert "review.approval_dropped" in team.server.audit()
    details = refused(team.rob.merge(approved), "version_conflict", 409)
    assert details == {
        "expected": approved["review"]["version"],
        "actual": changed["review"]["version"],
    }


@pytest.mark.requirement("review.approval_bound")
def test_an_operation_that_leaves_the_result_as_it_is_keeps_the_approval(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md", "one\n")
    review = team.mia.submit(draft)
    approved = succeeded(team.rob.decide(review, "approved")).json()
    team.mia.append(draft, "rename", path="a.md")
    same = team.rob.review(review["review"]["review_id"])
    assert same["review"]["status"] == "approved"
    assert same["review"]["version"] == approved["review"]["version"] + 1
    assert [item["counts"] for item in same["approvals"]] == [True]


@pytest.mark.requirement("review.frozen")
@pytest.mark.parametrize("end", ["rejected", "withdrawn"])
def test_an_ended_review_keeps_what_was_judged_and_gives_the_drafts_back(team: Team, end: str) -> None:
    draft = team.mia.create(team.project, "a.md", "judged\n")
    review = team.mia.submit(draft)
    review_id = review["review"]["review_id"]
    cursor = team.mia.cursor()
    if end == "rejected":
        succeeded(team.rob.decide(review, "rejected", comment="not yet"))
    else:
        succeeded(team.mia.post(f"/reviews/{review_id}/withdrawals", {"version": 1}))
    assert sorted(team.mia.events(cursor)) == ["draft.reopened", f"review.{end}"]
    assert team.mia.draft(draft)["status"] == "open"
    assert team.mia.draft(draft)["review_id"] is None
    team.mia.append(draft, "update", body="changed later\n")
    kept = team.rob.review(review_id)
    assert kept["review"]["status"] == end
    assert kept["entries"][0]["after"]["body"] == "judged\n"
    assert kept["rules"]
    for answer in (
        team.rob.decide(kept, "approved"),
        team.rob.merge(kept),
        team.mia.post(f"/reviews/{review_id}/withdrawals", {"version": kept["review"]["version"]}),
    ):
        assert refused(answer, "review_closed", 409) == {"status": end}
    second = team.mia.submit(draft)
    assert second["review"]["review_id"] != review_id
    assert second["entries"][0]["after"]["body"] == "changed later\n"


def test_an_approved_review_cannot_be_rejected_but_withdrawn(team: Team) -> None:
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    approved = succeeded(team.rob.decide(review, "approved")).json()
    refused(team.rob.decide(approved, "rejected"), "review_already_approved", 409)
    path = f"/reviews/{review['review']['review_id']}/withdrawals"
    refused(team.rob.post(path, {"version": approved["review"]["version"]}), "forbidden", 403)
    succeeded(team.mia.post(path, {"version": approved["review"]["version"]}))


@pytest.mark.requirement("review.permissions")
def test_members_read_and_comment_but_only_admins_decide_and_merge(team: Team) -> None:
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    review_id = review["review"]["review_id"]
    refused(team.mia.decide(review, "approved"), "forbidden", 403)
    refused(team.mia.merge(review), "forbidden", 403)
    stranger = team.person("eve")
    for answer in (
        stranger.http.get(f"/reviews/{review_id}"),
        stranger.decide(review, "approved"),
        stranger.merge(review),
        stranger.post(f"/reviews/{review_id}/comments", {"body": "hi"}),
        stranger.http.get(f"/reviews/{review_id}/comments"),
        stranger.http.get("/reviews", params={"project_id": team.project}),
        stranger.http.get(f"/reviews/{ids.new_id('rev')}"),
    ):
        refused(answer, "not_found", 404)
    assert stranger.get("/reviews")["reviews"] == []
    org_review = team.mia.submit(team.mia.create(team.project, "o.md", scope="org"))
    refused(team.rob.decide(org_review, "approved"), "forbidden", 403)
    refused(team.rob.merge(org_review), "forbidden", 403)
    admin = Person(team.server, team.server.user("boss", role=Role.ADMIN))
    succeeded(admin.merge(admin.review(org_review["review"]["review_id"])))


@pytest.mark.requirement("review.policy")
def test_where_authors_may_not_approve_themselves_another_one_has_to(team: Team) -> None:
    team.policy(allow_self_approval=False)
    review = team.rob.submit(team.rob.create(team.project, "a.md"))
    refused(team.rob.decide(review, "approved"), "self_approval_not_allowed", 403)
    refused(team.rob.merge(review), "self_approval_not_allowed", 403)
    approved = succeeded(team.ada.decide(review, "approved")).json()
    assert approved["review"]["status"] == "approved"
    merged = succeeded(team.rob.merge(approved)).json()
    assert merged["status"] == "merged"


@pytest.mark.requirement("review.policy")
def test_approvals_of_distinct_reviewers_are_counted(team: Team) -> None:
    team.policy(required_approvals=2)
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    details = refused(team.rob.merge(review), "review_not_approved", 409)
    assert (details["required"], details["counted"]) == (2, 1)
    once = succeeded(team.rob.decide(review, "approved")).json()
    twice = succeeded(team.rob.decide(once, "approved")).json()
    assert twice["review"]["status"] == "open"
    refused(team.rob.merge(twice), "review_not_approved", 409)
    assert succeeded(team.ada.merge(twice)).json()["status"] == "merged"


def test_merging_needs_a_ref_and_the_present_version(team: Team) -> None:
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    refused(team.rob.merge(review, if_match=None), "precondition_required", 428)
    refused(team.rob.merge(review, if_match="abc"), "invalid_arguments", 400)
    details = refused(team.rob.merge(review, if_match="f" * 64), "precondition_failed", 412)
    assert details == {"expected": "f" * 64, "actual": None}
    succeeded(team.rob.merge(review, if_match="none"))


def test_a_merge_tells_the_feed_and_the_audit_and_ends_the_drafts(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md")
    review = team.mia.submit(draft)
    cursor = team.mia.cursor()
    merged = succeeded(team.rob.merge(review)).json()
    assert team.mia.events(cursor) == ["ref.moved", "draft.merged", "review.merged"]
    assert team.rob.events(cursor) == ["ref.moved", "review.merged"]
    assert team.server.audit()[-1] == "review.merged"
    row = team.mia.draft(draft)
    assert (row["status"], row["merged_commit"], row["merged_seq"]) == ("merged", merged["commit_id"], 1)
    assert merged["ref"] == {"owner": team.project, "commit_id": merged["commit_id"], "seq": 1}
    detail = team.rob.review(review["review"]["review_id"])
    assert detail["commit_id"] == merged["commit_id"]
    assert [item["user_id"] for item in detail["approvals"]] == [team.rob.user_id]
    assert detail["entries"][0]["after"]["body"] == "text\n"
    assert refused(team.rob.merge(review), "review_closed", 409) == {"status": "merged"}


def test_discarding_a_submitted_draft_takes_it_out_and_the_last_one_ends_the_review(team: Team) -> None:
    first, second = team.mia.create(team.project, "a.md"), team.mia.create(team.project, "b.md")
    review = team.mia.submit(first, second)
    review_id = review["review"]["review_id"]
    succeeded(team.rob.decide(review, "approved"))
    succeeded(team.mia.http.delete(f"/drafts/{first.draft_id}"))
    left = team.rob.review(review_id)
    assert [entry["draft_id"] for entry in left["entries"]] == [second.draft_id]
    assert left["review"]["status"] == "open"
    team.mia.append(second, "discard")
    assert team.rob.review(review_id)["review"]["status"] == "withdrawn"
    assert team.mia.draft(second)["status"] == "discarded"


def test_comments_are_kept_in_order_and_anchored_to_lines_that_exist(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md", "one\ntwo\n")
    path = f"/reviews/{team.mia.submit(draft)['review']['review_id']}"
    cursor = team.rob.cursor()
    whole = succeeded(team.rob.post(f"{path}/comments", {"body": "Nice."})).json()
    anchored = {"body": "Here?", "draft_id": draft.draft_id, "line": 2}
    line = succeeded(team.mia.post(f"{path}/comments", anchored)).json()
    assert team.rob.events(cursor) == ["review.commented", "review.commented"]
    page = team.mia.get(f"{path}/comments", params={"limit": 1})
    assert page["comments"] == [whole]
    rest = team.mia.get(f"{path}/comments", params={"limit": 1, "cursor": page["next_cursor"]})
    assert rest == {"comments": [line], "next_cursor": None}
    assert team.mia.get(path)["comments"] == 2
    for bad in (
        {"body": " "},
        {"body": "x", "line": 1},
        {"body": "x", "draft_id": draft.draft_id, "line": 3},
        {"body": "x", "draft_id": ids.new_id("drf")},
    ):
        refused(team.mia.post(f"{path}/comments", bad), "invalid_arguments", 400)


def test_lists_of_reviews_are_filtered_newest_first_and_without_a_hole(team: Team) -> None:
    made = [team.mia.submit(team.mia.create(team.project, f"{number}.md")) for number in range(3)]
    org = team.mia.submit(team.mia.create(team.project, "o.md", scope="org"))
    succeeded(team.rob.decide(made[0], "rejected"))
    wanted = [review["review"]["review_id"] for review in (org, *reversed(made))]
    seen: list[str] = []
    cursor = None
    while True:
        page = team.mia.get("/reviews", params={"limit": 3} | ({"cursor": cursor} if cursor else {}))
        seen += [row["review_id"] for row in page["reviews"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == wanted

    def listed(**params: str) -> list[str]:
        return [row["review_id"] for row in team.mia.get("/reviews", params=params)["reviews"]]

    assert listed(status="rejected") == [wanted[3]]
    assert listed(scope="org") == [wanted[0]]
    assert listed(project_id=team.project, status="open", scope="project") == wanted[1:3]
    refused(team.mia.http.get("/reviews", params={"status": "maybe"}), "invalid_arguments", 400)


def test_an_unchanged_review_is_answered_by_304(team: Team) -> None:
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    path = f"/reviews/{review['review']['review_id']}"
    tag = team.rob.http.get(path).headers["ETag"]
    assert team.rob.http.get(path, headers={"If-None-Match": tag}).status_code == 304
    succeeded(team.rob.decide(review, "approved"))
    assert team.rob.http.get(path, headers={"If-None-Match": tag}).status_code == 200
