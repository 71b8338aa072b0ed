"""The one call of a quiet installation: heads, events, cursors and long polls."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from sqlmodel import col, select

from org_server.config import Settings
from org_server.domain.change_feed import Reader, may_read
from org_server.services import read_feed as read_feed_module
from org_server.services.feed_watch import FeedWatch
from org_server.store.feed import events_for
from org_server.store.tables import FeedEventRow
from org_server.wiring import build_app
from shared_schema.org_contract import FeedEventType, SyncAnswer
from tests.org_server.harness import Server
from tests.org_server.people import Person, Team, refused, succeeded


@pytest.fixture
def team(server: Server) -> Team:
    return Team(server)


def wire_size(answer: httpx.Response) -> int:
    """Bytes of an HTTP/1.1 answer: status line, headers as the application set them, and body."""
    lines = [f"HTTP/1.1 {answer.status_code} {answer.reason_phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return sum(len(line) + 2 for line in lines) + 2 + len(answer.content)


@pytest.mark.requirement("sync.quiet_round")
def test_a_quiet_round_is_one_304_of_less_than_500_bytes_whatever_the_number_of_projects(
    team: Team,
) -> None:
    for number in range(30):
        team.server.project(team.mia.caller, f"Project {number}")
    first = succeeded(team.mia.http.get("/sync"))
    assert len(first.json()["projects"]) == 31
    assert first.headers["ETag"] == f'"{first.json()["cursor"]}"'
    by_cursor = team.mia.http.get("/sync", params={"cursor": first.json()["cursor"]})
    by_tag = team.mia.http.get("/sync", headers={"If-None-Match": first.headers["ETag"]})
    for quiet in (by_cursor, by_tag):
        assert quiet.status_code == 304
        assert wire_size(quiet) < 500
        assert quiet.headers["ETag"] == first.headers["ETag"]
        assert quiet.content == b""


@pytest.mark.requirement("sync.heads")
def test_heads_name_every_readable_project_and_only_those(team: Team) -> None:
    secret = team.server.project(team.server.ada, "Secret")
    team.rob.publish(team.rob.create(team.project, "a.md"))
    answer = SyncAnswer.model_validate_json(succeeded(team.mia.http.get("/sync")).content)
    assert answer.epoch == team.server.epoch
    assert [(head.project_id, head.name, head.seq) for head in answer.projects] == [(team.project, "Web", 1)]
    assert answer.events == []
    owner = team.ada.get("/sync")["projects"]
    assert {head["project_id"] for head in owner} == {team.project, secret}
    limited = team.server.token_for("ada@example.org", team.ada.user_id, project_ids=[secret])
    assert [head["project_id"] for head in Person(team.server, limited).get("/sync")["projects"]] == [secret]


@pytest.mark.requirement("sync.visibility")
def test_a_removed_member_is_told_once_and_sees_the_project_no_more(team: Team) -> None:
    cursor = team.mia.cursor()
    succeeded(team.ada.http.delete(f"/projects/{team.project}/members/{team.mia.user_id}"))
    answer = team.mia.get("/sync", params={"cursor": cursor})
    assert answer["projects"] == []
    assert [event["type"] for event in answer["events"]] == ["membership.changed"]
    team.rob.publish(team.rob.create(team.project, "a.md"))
    later = team.mia.get("/sync", params={"cursor": answer["cursor"]})
    assert (later["events"], later["projects"]) == ([], [])
    refused(team.mia.http.get(f"/projects/{team.project}/snapshot"), "not_found", 404)
    refused(team.mia.http.get(f"/projects/{team.project}/commits"), "not_found", 404)


@pytest.mark.requirement("sync.visibility")
def test_draft_events_reach_their_author_alone(team: Team) -> None:
    cursor = team.mia.cursor()
    team.mia.create(team.project, "a.md")
    assert team.mia.events(cursor) == ["draft.created"]
    assert team.rob.events(cursor) == []


@pytest.mark.requirement("sync.resync_required")
@pytest.mark.parametrize("cursor", ["garbage", "other-epoch.1", "{epoch}.999999", "{epoch}.-1", "{epoch}.x"])
def test_a_cursor_of_another_history_is_answered_with_resync_required(team: Team, cursor: str) -> None:
    text = cursor.format(epoch=team.server.epoch)
    refused(team.mia.http.get("/sync", params={"cursor": text}), "resync_required", 410)
    refused(team.mia.http.get("/sync", params={"cursor": text, "wait": 1}), "resync_required", 410)


@pytest.mark.requirement("sync.pages")
def test_a_long_absence_is_read_in_pages_without_a_hole(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_feed_module, "EVENTS_PER_ANSWER", 2)
    cursor = team.mia.cursor()
    for number in range(5):
        team.mia.create(team.project, f"{number}.md")
        team.rob.create(team.project, f"unseen {number}.md")
    seen: list[int] = []
    more = True
    while more:
        page = team.mia.get("/sync", params={"cursor": cursor})
        seen += [event["seq"] for event in page["events"]]
        assert len(page["events"]) <= 2
        cursor, more = page["cursor"], page["has_more"]
    assert len(seen) == 5
    assert seen == sorted(set(seen))
    assert team.mia.http.get("/sync", params={"cursor": cursor}).status_code == 304


def test_the_database_filters_events_exactly_as_the_rule_says(team: Team) -> None:
    people = [team.mia.user_id, team.rob.user_id, None]
    with team.server.units.write() as uow:
        for audience in ("author", "project", "org"):
            for kind in (FeedEventType.MEMBERSHIP_CHANGED, FeedEventType.DRAFT_CREATED):
                for project in (team.project, "prj_other", None):
                    for user in people if audience != "author" else people[:2]:
                        uow.emit(kind, project_id=project, user_id=user, audience=audience)
    readers = [
        Reader(team.mia.user_id, frozenset({team.project})),
        Reader(team.mia.user_id, frozenset({team.project}), limited=True),
        Reader(team.rob.user_id, frozenset()),
    ]
    with team.server.units.read() as uow:
        everything = list(uow.session.exec(select(FeedEventRow).order_by(col(FeedEventRow.seq))))
        for reader in readers:
            allowed = [row.seq for row in everything if _allowed(reader, row)]
            assert [row.seq for row in events_for(uow, reader, 0, 1_000)] == allowed
            assert 0 < len(allowed) < len(everything)


def _allowed(reader: Reader, row: FeedEventRow) -> bool:
    return may_read(
        reader, event_type=row.type, audience=row.audience, project_id=row.project_id, user_id=row.user_id
    )


@pytest.mark.requirement("sync.no_late_event")
def test_no_event_of_a_writer_that_commits_late_is_skipped(team: Team) -> None:
    units = team.server.units
    started, finished = threading.Event(), threading.Event()

    def second_writer() -> None:
        started.set()
        with units.write() as uow:
            uow.emit(FeedEventType.REVIEW_OPENED, project_id=team.project, review_id="rev_second")
        finished.set()

    cursor = team.mia.cursor()
    thread = threading.Thread(target=second_writer)
    with units.write() as uow:
        uow.emit(FeedEventType.REVIEW_OPENED, project_id=team.project, review_id="rev_first")
        uow.session.flush()
        thread.start()
        assert started.wait(timeout=30)
        # The second may not overtake: its number would be seen before that of the first.
        assert not finished.wait(timeout=0.5)
        assert team.mia.http.get("/sync", params={"cursor": cursor}).status_code == 304
    thread.join(timeout=30)
    events = team.mia.get("/sync", params={"cursor": cursor})["events"]
    assert [event["review_id"] for event in events] == ["rev_first", "rev_second"]
    assert events[1]["seq"] == events[0]["seq"] + 1


@pytest.mark.requirement("sync.no_late_event")
def test_a_reader_among_many_writers_sees_every_event_once_and_in_order(team: Team) -> None:
    units, writers, each = team.server.units, 4, 12
    cursor = team.mia.cursor()

    def write(name: int) -> None:
        for number in range(each):
            with units.write() as uow:
                uow.emit(
                    FeedEventType.REVIEW_OPENED, project_id=team.project, review_id=f"rev_{name}_{number}"
                )

    threads = [threading.Thread(target=write, args=(name,)) for name in range(writers)]
    for thread in threads:
        thread.start()
    seen: list[tuple[int, str]] = []
    while True:
        running = any(thread.is_alive() for thread in threads)
        answer = team.mia.http.get("/sync", params={"cursor": cursor})
        if answer.status_code == 200:
            page = answer.json()
            seen += [(event["seq"], event["review_id"]) for event in page["events"]]
            cursor = page["cursor"]
        elif not running:
            break
    numbers = [number for number, _ in seen]
    assert numbers == list(range(numbers[0], numbers[0] + writers * each))
    assert len({review for _, review in seen}) == writers * each


def team_watch(team: Team) -> FeedWatch:
    return FeedWatch(team.server.units, 1)


class Waiting:
    """A long poll with a clock that only the poll's own sleeping moves."""

    def __init__(self, team: Team) -> None:
        self.now = 0.0
        self.slept = 0
        self.during: dict[int, Any] = {}
        self._team = team

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += 1
        if (action := self.during.pop(self.slept, None)) is not None:
            action()

    def poll(self, cursor: str, watch: FeedWatch, wait: int = 5) -> SyncAnswer | None:
        actor = self._team.mia.actor()
        query = read_feed_module.SyncQuery(cursor=cursor, wait=wait)
        return read_feed_module.read_feed(
            self._team.server.units,
            actor,
            query,
            watch,
            sleep=self.sleep,
            monotonic=lambda: self.now,
        )


@pytest.mark.requirement("sync.long_poll")
def test_a_long_poll_ends_with_the_first_event_for_the_caller(team: Team) -> None:
    waiting = Waiting(team)
    waiting.during = {
        2: lambda: team.rob.create(team.project, "unseen.md"),
        5: lambda: team.mia.create(team.project, "seen.md"),
    }
    answer = waiting.poll(team.mia.cursor(), team_watch(team))
    assert answer is not None
    assert [event.type for event in answer.events] == ["draft.created"]
    assert waiting.slept == 5


@pytest.mark.requirement("sync.long_poll")
def test_a_long_poll_ends_with_nothing_when_its_time_is_over(team: Team) -> None:
    waiting = Waiting(team)
    assert waiting.poll(team.mia.cursor(), team_watch(team), wait=2) is None
    assert waiting.now == pytest.approx(2.0)


@pytest.mark.requirement("sync.long_poll")
def test_over_the_number_of_waiters_the_answer_comes_at_once(team: Team) -> None:
    told: list[int] = []
    watch = FeedWatch(team.server.units, 1, told.append)
    waiting = Waiting(team)
    cursor = team.mia.cursor()
    assert watch.enter()
    assert waiting.poll(cursor, watch) is None
    assert waiting.slept == 0
    watch.leave()
    waiting.poll(cursor, watch, wait=1)
    assert waiting.slept > 0
    assert watch.enter(), "a poll that ended gives its place back"
    assert told == [1, 0, -1, 1, -1, 1]


def test_a_server_without_places_to_wait_answers_at_once(team: Team) -> None:
    app = build_app(team.server.units, Settings(max_waiters=0))
    client = app.test_client()
    token = {"Authorization": f"Bearer {team.mia.caller.token}"}
    query = {"cursor": team.mia.cursor(), "wait": "25"}
    # It would run into the test's time limit if it waited for several such answers.
    for _ in range(10):
        assert client.get("/api/v1/sync", query_string=query, headers=token).status_code == 304
