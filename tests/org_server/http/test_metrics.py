"""What Prometheus reads, through the client's own parser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from shared_schema.errors import ErrorCode, Kind
from shared_schema.org_contract import API_PREFIX, FeedEventType
from tests.org_server.harness import Server
from tests.org_server.people import Team, refused

COUNTERS = {
    "interleaf_requests",
    "interleaf_errors",
    "interleaf_waiters_refused",
    "interleaf_transactions",
    "interleaf_feed_events",
}
HISTOGRAMS = {"interleaf_request_seconds", "interleaf_transaction_seconds", "interleaf_write_wait_seconds"}
GAUGES = {
    "interleaf_requests_in_progress",
    "interleaf_waiters",
    "interleaf_database_connections_in_use",
    "interleaf_build_info",
    "interleaf_feed_head",
}


def families(server: Server) -> dict[str, Metric]:
    text = server.app.test_client().get("/metrics").get_data(as_text=True)
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(server: Server, sample: str, **labels: str) -> float:
    """Return one sample, 0.0 where it was never counted."""
    for family in families(server).values():
        for found in family.samples:
            if found.name == sample and labels.items() <= found.labels.items():
                return float(found.value)
    return 0.0


def grown(server: Server, act: Callable[[], object], sample: str, **labels: str) -> float:
    """Return by how much a sample grew while something was done."""
    before = value(server, sample, **labels)
    act()
    return value(server, sample, **labels) - before


@pytest.mark.requirement("metrics.exposition")
def test_the_exposition_parses_and_has_what_an_operator_needs(server: Server) -> None:
    team = Team(server)
    team.ada.publish(team.ada.create(team.project, "a.md"))
    found = families(server)
    kinds = {name: family.type for name, family in found.items() if name.startswith("interleaf_")}
    expected = dict.fromkeys(COUNTERS, "counter") | dict.fromkeys(HISTOGRAMS, "histogram")
    assert kinds == expected | dict.fromkeys(GAUGES, "gauge")
    assert "process_resident_memory_bytes" in found
    build = found["interleaf_build_info"].samples[0].labels
    assert set(build) == {"version", "python"}


@pytest.mark.requirement("metrics.labels")
def test_labels_hold_nothing_of_users_ids_paths_or_queries(server: Server) -> None:
    team = Team(server)
    made = team.ada.create(team.project, "secret-path.md")
    merged = team.ada.publish(made)
    team.ada.http.get("/memories/nowhere-secret", params={"q": "secret-query"})
    team.ada.http.get(f"/projects/{team.project}/memories/{made.resource_id}")
    team.ada.http.request("BREW", "/me")
    text = server.app.test_client().get("/metrics").get_data(as_text=True)
    told = [
        team.project,
        made.resource_id,
        merged["review_id"],
        team.ada.user_id,
        "ada@example.org",
        "secret",
    ]
    assert [word for word in told if word in text] == []
    assert re.findall(r"\b(?:usr|prj|mem|drf|rev|tok|ins|org)_[0-9a-f-]{8,}", text) == []
    labels = {
        (name, label)
        for name, family in families(server).items()
        if name.startswith("interleaf_")
        for sample in family.samples
        for label in sample.labels
    }
    assert {label for _, label in labels} == {
        *("route", "status", "kind", "code", "method", "outcome", "type", "le", "version", "python")
    }


@pytest.mark.requirement("metrics.counts")
def test_requests_errors_transactions_and_merges_are_counted(server: Server) -> None:
    team = Team(server)
    review = team.mia.submit(team.mia.create(team.project, "a.md"))
    me = f"GET {API_PREFIX}/me"
    assert grown(server, lambda: team.ada.get("/me"), "interleaf_requests_total", route=me, status="200") == 1
    assert grown(server, lambda: team.ada.get("/me"), "interleaf_request_seconds_count", route=me) == 1
    stale = {"kind": Kind.CONFLICT.value, "code": ErrorCode.PRECONDITION_FAILED.value}

    def conflict() -> None:
        refused(team.rob.merge(review, "0" * 64), "precondition_failed", 412)

    assert grown(server, conflict, "interleaf_errors_total", **stale) == 1
    assert grown(server, conflict, "interleaf_transactions_total", kind="write", outcome="rolled_back") == 1
    head = value(server, "interleaf_feed_head")
    merges = {"type": FeedEventType.REVIEW_MERGED.value}
    assert grown(server, lambda: team.rob.merge(review), "interleaf_feed_events_total", **merges) == 1
    assert value(server, "interleaf_feed_head") > head
    written = grown(
        server,
        lambda: team.mia.create(team.project, "b.md"),
        "interleaf_transactions_total",
        kind="write",
        outcome="done",
    )
    assert written == 1
    waits = value(server, "interleaf_write_wait_seconds_count")
    assert waits == value(server, "interleaf_transaction_seconds_count", kind="write") > 0


@pytest.mark.requirement("metrics.counts")
def test_what_is_in_progress_falls_back_to_nothing(server: Server) -> None:
    team = Team(server)
    team.ada.publish(team.ada.create(team.project, "a.md"))
    with team.ada.http.stream("GET", f"/projects/{team.project}/snapshot") as answer:
        # The stream is open, and so is its transaction.
        assert answer.status_code == 200
        assert value(server, "interleaf_database_connections_in_use") == 1
        assert value(server, "interleaf_requests_in_progress", method="GET") == 2
        answer.read()
    team.ada.http.get("/nowhere")
    assert value(server, "interleaf_requests_in_progress", method="GET") == 1, "the question itself"
    assert value(server, "interleaf_database_connections_in_use") == 0
    stream = {"route": f"GET {API_PREFIX}/projects/<project_id>/snapshot", "status": "200"}
    assert value(server, "interleaf_requests_total", **stream) == 1


def test_the_metrics_are_there_while_the_database_is_not(server: Server) -> None:
    server.units.engine.dispose()
    broken = server.units.engine
    original = broken.pool._creator

    def refuse(*_: object, **__: object) -> None:
        from sqlalchemy.exc import OperationalError

        raise OperationalError("connect", None, Exception("refused"))

    broken.pool._creator = refuse  # type: ignore[assignment]
    try:
        found = families(server)
    finally:
        broken.pool._creator = original
    assert "interleaf_feed_head" not in found
    assert "interleaf_build_info" in found
