"""Merging onto a ref that moved, that many want to move, or whose paths are taken."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import httpx
import pytest
from sqlalchemy import Engine, event, text

from org_server.domain.refs import RefValue
from org_server.store.commits import move_ref
from shared_schema.errors import ErrorCode, InterleafError
from tests.org_server.harness import Published, Server
from tests.org_server.people import DraftHandle, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


def at_once(calls: list[Callable[[], httpx.Response]]) -> list[httpx.Response]:
    """Make the calls from as many threads, all released together."""
    barrier = threading.Barrier(len(calls))
    answers: list[httpx.Response | None] = [None] * len(calls)

    def run(position: int, call: Callable[[], httpx.Response]) -> None:
        barrier.wait(timeout=30)
        answers[position] = call()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert None not in answers
    return [answer for answer in answers if answer is not None]


@pytest.mark.requirement("merge.compare_and_swap")
def test_of_many_merges_onto_the_same_ref_exactly_one_wins(team: Team) -> None:
    reviews = [team.mia.submit(team.mia.create(team.project, f"{number}.md")) for number in range(6)]
    for expected_winners in range(1, 4):
        waiting = [
            team.rob.review(review["review"]["review_id"])
            for review in reviews
            if team.rob.review(review["review"]["review_id"])["review"]["status"] == "open"
        ]
        head = team.rob.ref(team.project)

        def merge(review: dict[str, object]) -> httpx.Response:
            return team.rob.merge(review)

        answers = at_once([lambda review=review: merge(review) for review in waiting])  # type: ignore[misc]
        outcome = Counter(answer.status_code for answer in answers)
        assert outcome == {200: 1, 412: len(waiting) - 1}
        new_head = team.rob.ref(team.project)
        for answer in answers:
            if answer.status_code == 412:
                details = refused(answer, "precondition_failed", 412)
                assert details == {"expected": head, "actual": new_head}
        commits = team.rob.get(f"/projects/{team.project}/commits")["commits"]
        assert len(commits) == expected_winners


@pytest.mark.requirement("merge.compare_and_swap")
def test_of_many_merges_of_one_review_exactly_one_publishes(team: Team) -> None:
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    answers = at_once([lambda: team.rob.merge(review)] * 4)
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 3}
    assert len(team.rob.get(f"/projects/{team.project}/commits")["commits"]) == 1


@pytest.mark.requirement("merge.rebase_others")
def test_a_draft_is_rebased_inside_the_merge_when_only_others_moved(team: Team) -> None:
    draft = team.mia.create(team.project, "a.md", "mine\n")
    review = team.mia.submit(draft)
    approved = succeeded(team.rob.decide(review, "approved")).json()
    team.rob.publish(team.rob.create(team.project, "b.md"))
    row = team.mia.draft(draft)
    assert (row["freshness"], row["reconciliation"]) == ("behind", "clean")
    behind = team.rob.review(review["review"]["review_id"])
    assert behind["review"]["version"] == approved["review"]["version"]
    assert [item["counts"] for item in behind["approvals"]] == [True]
    merged = succeeded(team.rob.merge(behind)).json()
    assert merged["ref"]["seq"] == 2
    assert sorted(team.mia.view(team.project)) == ["a.md", "b.md"]


@pytest.mark.requirement("merge.reconciliation_required")
@pytest.mark.parametrize(
    ("theirs", "reconciliation", "conflicts"),
    [("1\n2\n3\n4\nFIVE\n", "clean", []), ("eins\n2\n3\n4\n5\n", "conflicts", ["content"])],
)
def test_a_moved_resource_stops_the_merge_until_the_author_rebased(
    team: Team, theirs: str, reconciliation: str, conflicts: list[str]
) -> None:
    made = team.ada.create(team.project, "a.md", "1\n2\n3\n4\n5\n")
    team.ada.publish(made)
    draft = team.mia.edit(team.project, made.resource_id, "one\n2\n3\n4\n5\n")
    review = team.mia.submit(draft)
    review_id = review["review"]["review_id"]
    succeeded(team.rob.decide(review, "approved"))
    team.rob.publish(team.rob.edit(team.project, made.resource_id, theirs))
    assert team.mia.draft(draft)["freshness"] == "behind"
    assert team.mia.draft(draft)["reconciliation"] == reconciliation
    details = refused(team.rob.merge(team.rob.review(review_id)), "reconciliation_required", 409)
    assert details["drafts"] == [
        {
            "draft_id": draft.draft_id,
            "resource_id": made.resource_id,
            "reconciliation": reconciliation,
            "conflicts": conflicts,
        }
    ]
    candidate = succeeded(team.mia.post(f"/drafts/{draft.draft_id}/reconciliation", {})).json()
    assert candidate["onto"]["commit_id"] == team.mia.ref(team.project)
    assert (candidate["result"] is None) == bool(conflicts)
    assert [item["kind"] for item in candidate["conflicts"]] == conflicts
    assert candidate["current"]["body"] == theirs
    resolved = candidate["result"] or {**candidate["draft"], "body": "one, eins\n2\n3\n4\n5\n"}
    team.mia.append(draft, "rebase", base_commit=candidate["onto"]["commit_id"], state=resolved)
    assert team.mia.draft(draft)["freshness"] == "current"
    assert team.mia.draft(draft)["reconciliation"] == "unknown"
    rebased = team.rob.review(review_id)
    assert rebased["review"]["status"] == "open", "the result is new to the reviewer"
    assert rebased["entries"][0]["before"]["body"] == theirs
    succeeded(team.rob.merge(rebased))
    path = f"/projects/{team.project}/memories/{made.resource_id}"
    assert team.mia.get(path)["resource"]["body"] == resolved["body"]


def test_a_rebase_goes_forward_and_onto_known_commits_only(team: Team) -> None:
    made = team.ada.create(team.project, "a.md", "one\n")
    first = team.ada.publish(made)["commit_id"]
    team.ada.publish(team.ada.edit(team.project, made.resource_id, "two\n"))
    draft = team.mia.edit(team.project, made.resource_id, "three\n")
    state = {"exists": True, "path": "a.md", "body": "four\n"}

    def rebase(onto: str) -> httpx.Response:
        again = DraftHandle(draft.header, draft.installation_id, draft.last_ordinal)
        return team.mia.upload(draft, again.operation("rebase", base_commit=onto, state=state))

    refused(rebase(first), "invalid_arguments", 400)
    refused(rebase("0" * 64), "commit_unknown", 409)
    refused(rebase(""), "invalid_arguments", 400)
    stranger = {"resource_id": "mem_x", "commit_id": first}
    again = DraftHandle(draft.header, draft.installation_id, draft.last_ordinal)
    head = team.mia.ref(team.project)
    operation = again.operation("rebase", base_commit=head, state={**state, "org_source": stranger})
    refused(team.mia.upload(draft, operation), "invalid_arguments", 400)


@pytest.mark.requirement("merge.existence")
def test_an_edit_of_what_was_deleted_meanwhile_is_a_conflict(team: Team) -> None:
    made = team.ada.create(team.project, "a.md")
    team.ada.publish(made)
    draft = team.mia.edit(team.project, made.resource_id, "still needed\n")
    review = team.mia.submit(draft)
    team.rob.publish(team.rob.remove(team.project, made.resource_id))
    details = refused(
        team.rob.merge(team.rob.review(review["review"]["review_id"])), "reconciliation_required", 409
    )
    assert details["drafts"][0]["conflicts"] == ["existence"]


@pytest.mark.requirement("merge.paths")
@pytest.mark.parametrize("path", ["Guides/A.md", "guides/a.md/deeper.md", "guides"])
def test_a_taken_path_stops_the_merge(team: Team, path: str) -> None:
    made = team.ada.create(team.project, "guides/a.md")
    late = team.mia.create(team.project, path)
    review = team.mia.submit(late)
    team.ada.publish(made)
    assert team.mia.draft(late)["reconciliation"] == "conflicts"
    details = refused(team.rob.merge(team.rob.review(review["review"]["review_id"])), "path_occupied", 409)
    assert details["drafts"] == [
        {"draft_id": late.draft_id, "path": path, "resource_id": made.resource_id, "project_id": None}
    ]
    candidate = succeeded(team.mia.post(f"/drafts/{late.draft_id}/reconciliation", {})).json()
    assert candidate["conflicts"] == [
        {"kind": "path_occupied", "base": None, "current": made.resource_id, "draft": path}
    ]


def test_two_drafts_of_one_review_cannot_share_a_path_but_can_exchange_theirs(team: Team) -> None:
    one, two = team.mia.create(team.project, "a.md"), team.mia.create(team.project, "A.md")
    review = team.mia.submit(one, two)
    refused(team.rob.merge(review), "path_occupied", 409)
    succeeded(team.mia.http.delete(f"/drafts/{two.draft_id}"))
    first = team.mia.create(team.project, "b.md")
    succeeded(team.rob.merge(team.rob.review(review["review"]["review_id"])))
    team.rob.publish(team.rob.create(team.project, "c.md"))
    succeeded(team.rob.merge(team.mia.submit(first)))
    ids = team.mia.view(team.project)
    swap = []
    for old, new in (("b.md", "c.md"), ("c.md", "b.md")):
        draft = team.rob.new_draft(team.project, resource_id=ids[old])
        swap.append(team.rob.append(draft, "rename", path=new))
    team.rob.publish(*swap)
    after = team.mia.view(team.project)
    assert (after["b.md"], after["c.md"]) == (ids["c.md"], ids["b.md"])


def test_a_deleted_resource_frees_its_path_and_leaves_the_view(team: Team) -> None:
    made = team.ada.create(team.project, "a.md")
    team.ada.publish(made)
    deletion = team.mia.submit(team.mia.remove(team.project, made.resource_id))
    assert deletion["entries"][0]["after"]["exists"] is False
    succeeded(team.rob.merge(deletion))
    assert team.mia.view(team.project) == {}
    team.ada.publish(team.ada.create(team.project, "a.md"))
    assert list(team.mia.view(team.project)) == ["a.md"]


class Statements:
    """Counts what is sent to the database, and the rows that are written."""

    def __init__(self, engine: Engine) -> None:
        self.total = 0
        self.written = 0
        self._engine = engine

    def __enter__(self) -> Statements:
        event.listen(self._engine, "after_cursor_execute", self._count)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(self._engine, "after_cursor_execute", self._count)

    def _count(self, _c: object, cursor: object, statement: str, *_: object) -> None:
        self.total += 1
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            self.written += max(getattr(cursor, "rowcount", 0), 0)


@pytest.mark.requirement("merge.cost")
def test_the_cost_of_a_merge_does_not_grow_with_the_project(team: Team) -> None:
    costs: list[tuple[int, int, int]] = []
    size = 0
    team.rob.ref(team.project)  # the first use of a token is noted
    for wanted in (100, 2_000):
        more = [
            Published(f"area/{number}.md", "x\n", resource_id=f"mem_{number}")
            for number in range(size, wanted)
        ]
        team.server.publish(team.project, *more)
        size = wanted
        review = team.mia.submit(team.mia.edit(team.project, "mem_7", f"changed at {wanted}\n"))
        rows = _rows(team.server.units.engine)
        with Statements(team.server.units.engine) as statements:
            succeeded(team.rob.merge(review))
        costs.append((statements.total, statements.written, _rows(team.server.units.engine) - rows))
    assert costs[0] == costs[1]
    assert costs[0][2] == 1, "one version for the one resource that changed"


def _rows(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM version")).scalar_one())


@pytest.mark.requirement("merge.compare_and_swap")
def test_a_ref_moves_only_from_where_it_is_expected_to_stand(team: Team) -> None:
    made = team.server.publish(team.project, Published("a.md"))
    new = RefValue("f" * 64, 2)
    for stale in (RefValue(None, 0), RefValue("0" * 64, 1)):
        with pytest.raises(InterleafError) as raised, team.server.units.write() as uow:
            move_ref(uow, team.project, stale, new)
        assert raised.value.code is ErrorCode.PRECONDITION_FAILED
        assert raised.value.details == {"expected": stale.commit_id, "actual": made.commit_id}
    with team.server.units.write() as uow:
        move_ref(uow, team.project, RefValue(made.commit_id, 1), new)
    assert team.rob.ref(team.project) == new.commit_id
