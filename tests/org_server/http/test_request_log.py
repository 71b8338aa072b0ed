"""One line a request, and nothing in it that somebody wrote."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from org_server import logs
from org_server.wiring import ROUTES
from shared_schema.org_contract import API_PREFIX
from tests.org_server.harness import Server
from tests.org_server.people import Team, succeeded

MARK = "hunter2"
FIELDS = {
    *("event", "level", "timestamp", "request_id", "route", "status", "milliseconds", "user_id", "bytes")
}


class Log:
    """What was logged at ``debug`` so far."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    def lines(self, event: str = "request") -> list[dict[str, Any]]:
        """Every line is JSON; return those of one event."""
        return [line for line in map(json.loads, self.text.splitlines()) if line["event"] == event]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        logs.configure("debug")
    yield Log(stream)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def flow(team: Team) -> None:
    """Do what a team does, with the mark in everything that can hold a text."""
    body = f"# {MARK}\n\n{MARK}\n"
    made = team.mia.create(team.project, f"{MARK}/a.md", body)
    review = team.mia.submit(made, title=f"{MARK} title")
    review_id = review["review"]["review_id"]
    succeeded(team.rob.post(f"/reviews/{review_id}/comments", {"body": f"{MARK} comment"}))
    succeeded(team.rob.decide(review, "approved", comment=f"{MARK} reason"))
    succeeded(team.rob.merge(team.rob.review(review_id)))
    team.mia.get("/sync")
    succeeded(team.mia.http.get(f"/projects/{team.project}/snapshot"))
    team.mia.http.get("/me", params={MARK: MARK})
    team.mia.http.get(f"/projects/{MARK}")
    team.mia.http.get("/nowhere", params={"token": team.mia.caller.token})
    team.mia.http.post("/projects", content=f'{{"name": "{MARK}'.encode())
    team.mia.http.get("/me", headers={"Authorization": f"Bearer ilt_{MARK}"})
    team.mia.http.get("/me", headers={"User-Agent": MARK, "X-Request-ID": f"{MARK} no"})


@pytest.mark.requirement("logs.nothing_private")
def test_a_whole_day_with_marks_everywhere_leaves_none_in_the_log(server: Server, log: Log) -> None:
    team = Team(server)
    flow(team)
    for table in ROUTES:
        for route in table.routes:
            path = re.sub(r"<\w+>", MARK, route.path)
            body = {MARK: MARK} if route.request is not None else None
            answer = team.ada.http.request(
                route.method, path, params={"cursor": MARK, MARK: MARK}, json=body, headers={"If-Match": MARK}
            )
            assert answer.status_code < 500, (route.method, path)
    tokens = [person.caller.token for person in (team.ada, team.rob, team.mia)]
    private = [MARK, team.project, "@example.org", *tokens, *(token[4:] for token in tokens)]
    assert [word for word in private if word in log.text] == []
    assert len(log.lines()) > 60


@pytest.mark.requirement("logs.request_line")
def test_every_request_is_one_line_of_json_with_the_rule_of_its_route(server: Server, log: Log) -> None:
    team = Team(server)
    answer = team.mia.http.get(f"/projects/{team.project}", headers={"X-Request-ID": "my-id"})
    line = log.lines()[-1]
    assert set(line) == FIELDS
    assert line["route"] == f"GET {API_PREFIX}/projects/<project_id>"
    assert (line["status"], line["level"], line["request_id"]) == (200, "info", "my-id")
    assert line["user_id"] == team.mia.user_id
    assert line["bytes"] == len(answer.content)
    assert line["milliseconds"] > 0
    before = len(log.lines())
    server.app.test_client().get("/health")
    team.mia.http.get("/nowhere")
    probe, nowhere = log.lines()[before:]
    assert (probe["level"], probe["route"], probe["user_id"]) == ("debug", "GET /health", None)
    assert (nowhere["status"], nowhere["route"]) == (404, "none")


@pytest.mark.requirement("logs.request_line")
def test_a_stream_is_noted_at_its_end_with_the_bytes_that_were_sent(server: Server, log: Log) -> None:
    team = Team(server)
    team.ada.publish(team.ada.create(team.project, "a.md", "text\n" * 1_000))
    with team.ada.http.stream("GET", f"/projects/{team.project}/snapshot") as answer:
        assert log.lines()[-1]["route"] != f"GET {API_PREFIX}/projects/<project_id>/snapshot"
        sent = sum(len(chunk) for chunk in answer.iter_raw())
    line = log.lines()[-1]
    assert line["route"] == f"GET {API_PREFIX}/projects/<project_id>/snapshot"
    assert line["bytes"] == sent


@pytest.mark.requirement("logs.nothing_private")
def test_what_fails_unexpectedly_is_told_by_place(
    server: Server, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(f"the body was {MARK}")

    monkeypatch.setattr("org_server.http.routes.me.read_me", fail)
    assert server.ada.get("/me").status_code == 500
    failed = log.lines("unexpected_error")[-1]
    assert failed["error"] == "RuntimeError"
    assert "test_request_log.py" in failed["frames"][-1]
    assert failed["request_id"] == log.lines()[-1]["request_id"]
    assert MARK not in log.text


@pytest.mark.requirement("logs.nothing_private")
def test_what_libraries_log_is_json_without_values(log: Log) -> None:
    try:
        int(MARK)
    except ValueError:
        # As waitress does it: the path is in the template.
        logging.getLogger("waitress").exception(f"Exception while serving /{MARK}")  # noqa: G004
    logging.getLogger("sqlalchemy.pool").warning("Reset of %r failed", MARK)
    logging.getLogger("some.library").info("request of %s", MARK)
    lines = [json.loads(line) for line in log.text.splitlines()]
    assert [line["event"] for line in lines] == ["Exception while serving", "Reset of %r failed"]
    assert (lines[0]["error"], lines[0]["logger"]) == ("ValueError", "waitress")
    assert MARK not in log.text
