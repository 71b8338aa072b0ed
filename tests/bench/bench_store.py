"""How long a store and a load take in a Project of 10,000 resources, beside a bare durable insert.

pytest does not collect it: times belong to the machine that measured them.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from client.clock import system_clock
from client.services.load_memory import LoadMemory
from client.services.project_memory import ProjectMemory
from client.services.store_draft_operation import StoreDraftOperation
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store
from shared_schema import tool_contract
from shared_schema.ids import new_id
from shared_schema.memory import PublishedResource, Scope
from shared_schema.rules.hashing import content_hash
from tests.bench.figures import Figure, milliseconds, share

WARM_UP = 10


def figures(resources: int = 10_000, rounds: int = 300) -> list[Figure]:
    """Measure stores and loads, each round beside one bare insert."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = Store(home / "interleaf.db")
        _publish(store, resources)
        memory = ProjectMemory(store)
        save = StoreDraftOperation(store, memory, system_clock, new_id, lambda _: None)
        load = LoadMemory(store, memory)
        first = milliseconds(lambda: memory.get("prj_1"))
        bare = _bare_insert(home / "bare.db")
        times: dict[str, list[float]] = {"bare insert": [], "create": [], "update": [], "load": []}
        for i in range(WARM_UP + rounds):
            edit, wanted = _update(memory, i * 7 % resources), f"docs/{i % 100:02}/page-{i:05}.md"
            actions: dict[str, Callable[[], object]] = {
                "bare insert": partial(bare, i),
                "create": partial(save, "prj_1", _create(i)),
                "update": partial(save, "prj_1", edit),
                "load": partial(load, "prj_1", tool_contract.Load(ids=[wanted])),
            }
            for name, action in actions.items():
                times[name].append(milliseconds(action))
        store.close()
    return _table(resources, {name: each[WARM_UP:] for name, each in times.items()}, first)


def _table(resources: int, times: dict[str, list[float]], first: float) -> list[Figure]:
    p50, p95 = ({name: share(each, part) for name, each in times.items()} for part in (0.5, 0.95))
    at = f"{resources:,} resources"
    found = []
    for name in ("create", "update"):
        for called, figure in (("p50", p50), ("p95", p95)):
            bare = figure["bare insert"]
            beside = f"{figure[name]:.2f} ms; bare durable insert: {called} {bare:.2f} ms"
            what = f"store {name}, {at}, {called} / bare insert"
            found.append(Figure(what, figure[name] / bare, "×", 3, beside))
        found.append(Figure(f"store {name}, {at}, p95", p95[name], "ms", 15))
    found.append(Figure(f"load in the daemon, {at}, p95", p95["load"], "ms", 10, f"p50 {p50['load']:.2f} ms"))
    found.append(Figure(f"first projection of {at}", first, "ms", None, "once"))
    return found


def _text(i: int) -> str:
    return f"# Page {i}\n\n" + f"Line of page {i} about releases and rollbacks.\n" * 40


def _publish(store: Store, count: int) -> None:
    with store.write() as uow:
        uow.projects.put(
            ProjectRow("prj_1", "Bench", installed_commit="c" * 64, installed_seq=1, snapshot_at=1)
        )
        uow.published.replace_all(
            "prj_1",
            (
                PublishedResource(
                    resource_id=f"mem_{i:032x}",
                    scope=Scope.PROJECT,
                    path=f"docs/{i % 100:02}/page-{i:05}.md",
                    description="",
                    body=_text(i),
                    content_hash=content_hash(_text(i)),
                )
                for i in range(count)
            ),
        )
        uow.touch("prj_1")


def _bare_insert(path: Path) -> Callable[[int], None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")

    def insert(i: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t (body) VALUES (?)", (_text(i),))
        connection.execute("COMMIT")

    return insert


def _create(i: int) -> tool_contract.Store:
    return tool_contract.Store(create=tool_contract.Create(path=f"new/page-{i}.md", body=_text(i)))


def _update(memory: ProjectMemory, i: int) -> tool_contract.Store:
    item = memory.get("prj_1").by_id[f"mem_{i:032x}"]
    edit = tool_contract.Replacement(old_text=f"# Page {i}\n", new_text=f"# Page {i}, revised\n")
    return tool_contract.Store(
        update=tool_contract.Update(id=item.resource_id, expected_hash=item.content_hash, replacements=[edit])
    )
