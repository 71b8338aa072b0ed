"""Looking for clashes of paths: right for every kind of clash, and by the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from org_server.store.versions import find_clashes
from tests.org_server.harness import Published, Server


@pytest.mark.requirement("paths.unique")
@pytest.mark.parametrize(
    ("wanted", "leaving", "expected"),
    [
        ({"new": "guides/b.md"}, (), {}),
        ({"new": "GUIDES/Ä.md"}, (), {"new": "mem_a"}),
        ({"new": "guides"}, (), {"new": "mem_a"}),
        ({"new": "guides/ä.md/x"}, (), {"new": "mem_a"}),
        ({"new": "guides/ä.md-x"}, (), {}),
        ({"new": "guides-x"}, (), {}),
        ({"new": "guides0"}, (), {}),
        ({"mem_a": "guides/ä.md"}, (), {}),
        ({"new": "guides/ä.md"}, ("mem_a",), {}),
        ({"mem_a": "z.md"}, (), {"mem_a": "mem_z"}),
        ({"mem_a": "z.md", "mem_z": "guides/ä.md"}, (), {}),
        ({"one": "new.md", "two": "NEW.md"}, (), {"one": "two", "two": "one"}),
        ({"one": "new", "two": "new/x.md"}, (), {"one": "two", "two": "one"}),
        ({"new": "removed.md"}, (), {}),
    ],
)
def test_a_path_is_taken_by_an_equal_one_and_by_those_above_and_below(
    server: Server, wanted: dict[str, str], leaving: tuple[str, ...], expected: dict[str, str]
) -> None:
    project = server.project(server.ada)
    server.publish(
        project,
        Published("guides/ä.md", resource_id="mem_a"),
        Published("z.md", resource_id="mem_z"),
    )
    with server.units.read() as uow:
        assert find_clashes(uow, project, wanted, leaving) == expected
        assert find_clashes(uow, server.org_id, wanted, leaving) == {
            key: holder for key, holder in expected.items() if holder in wanted
        }


def test_clashes_are_looked_up_in_the_index_of_live_paths(server: Server) -> None:
    project = server.project(server.ada)
    server.publish(project, *(Published(f"area/{number}.md") for number in range(300)))
    with server.units.engine.begin() as connection:
        connection.exec_driver_sql("ANALYZE version")
    with server.units.read() as uow:
        if uow.session.get_bind().dialect.name == "postgresql":
            # A small table is read as a whole; the question is whether the index could be used.
            uow.session.connection().exec_driver_sql("SET LOCAL enable_seqscan = off")
        with sent_to(server.units.engine) as statements:
            find_clashes(uow, project, {"new": "area/7.md/x.md"})
        statement, parameters = next(item for item in statements if "path_key" in item[0])
        prefix = "EXPLAIN QUERY PLAN " if server.units.engine.dialect.name == "sqlite" else "EXPLAIN "
        plan = uow.session.connection().exec_driver_sql(prefix + statement, parameters).all()
    described = "\n".join(str(line) for line in plan)
    assert "uq_version_live_path" in described
    assert "SCAN version" not in described
    assert "Seq Scan" not in described


@contextmanager
def sent_to(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that are sent within the block, with their parameters."""
    seen: list[tuple[str, Any]] = []

    def note(_c: object, _k: object, statement: str, parameters: Any, *_: object) -> None:
        seen.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)
