"""Comments on Reviews at the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from client.cli.commenting import place_of
from shared_schema import org_contract as api
from tests.client.cli.terminal import Terminal
from tests.client.sync_world import Machine
from tests.org_server.harness import Server

COMMENT = api.Comment(
    comment_id="cmt_1",
    author_id="usr_1",
    author_email="rob@example.org",
    body="Why?",
    draft_id="drf_1",
    path="a.md",
    line=3,
    quote="three",
    present_path="b.md",
    present_line=4,
    outdated=False,
    resolved=False,
    resolved_by=None,
    resolved_by_email=None,
    resolved_at=None,
    created_at=1,
)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "b.md line 4"),
        ({"present_line": None, "outdated": True}, "was a.md line 3, outdated"),
        ({"line": None, "present_line": None}, "b.md"),
        (
            {"line": None, "draft_id": None, "path": None, "present_path": None, "present_line": None},
            "the whole Review",
        ),
    ],
)
def test_a_comment_says_where_it_belongs(changes: dict[str, object], place: str) -> None:
    assert place_of(COMMENT.model_copy(update=changes)) == place


@pytest.mark.requirement("comment.cli")
def test_a_comment_at_a_line_is_shown_resolved_and_opened_again(
    org: Server, ada: Terminal, machine_of: Callable[..., Machine]
) -> None:
    project_id = org.project(org.ada, "Rocket")
    machine = machine_of(org.ada)
    machine.settle()
    draft = machine.create(project_id, "a.md", "one\ntwo\n")
    machine.settle()
    asked = {"project_id": project_id, "scope": "project", "draft_ids": [draft.draft_id], "title": "T"}
    review = org.ada.ok("POST", "/reviews", json=asked)["review"]["review_id"]
    made = ada.json("review", "comment", review, "Sure?", "--path", "a.md", "--line", "2")
    shown = ada.text("review", "show", review)
    for expected in ("a.md line 2", "> two", "Sure?", made["comment_id"]):
        assert expected in shown
    assert "Resolved." in ada.text("review", "resolve", review, made["comment_id"])
    assert "resolved by ada@example.org" in ada.text("review", "show", review)
    assert ada.json("review", "resolve", review, made["comment_id"], "--reopen")["resolved"] is False
    assert ada.error("review", "resolve", review, "cmt_other")["code"] == "not_found"
