"""Activations and index updates at a given number of units.

The query's vectors are the real model's; those of the passages are drawn at random, because only time
is measured and embedding 10,000 passages takes a quarter of an hour.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from client.clock import system_clock
from client.domain.embedding import Embedder, PassageVectors, QueryVectors
from client.index.manager import IndexManager
from client.index.searcher import Searcher
from client.index.vector_cache import VectorCache
from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.embedder import OnnxEmbedder
from client.models.files import default_models_dir
from client.models.preparation import prepare_model
from client.services.activate_memory import ActivateMemory
from client.services.project_memory import ProjectMemory
from client.services.run_log import RunLog
from client.services.store_draft_operation import StoreDraftOperation
from client.store.projects import ProjectRow
from client.store.unit_of_work import Store
from shared_schema import tool_contract
from shared_schema.ids import new_id
from shared_schema.memory import PublishedResource, Scope
from shared_schema.rules.hashing import content_hash
from tests.bench.figures import Figure, median, milliseconds

PROJECT = "prj_1"
TOKENS = 120
MODEL_STAGES = ("embed_query", "rerank")
PROSE = Path(__file__).resolve().parents[2].glob("*.md")
WORDS = sorted({w for page in PROSE for w in re.findall(r"[a-z]{3,}", page.read_text(encoding="utf-8"))})
"""Ordinary English words: those of this project's own pages."""


class RandomPassages:
    """The real embedder for queries, random vectors of the right shape for passages."""

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self._random = np.random.default_rng(7)

    @property
    def fingerprint(self) -> str:
        """Of nothing that is kept."""
        return "random:" + self._real.fingerprint

    @property
    def dimensions(self) -> int:
        """As the real one."""
        return self._real.dimensions

    @property
    def token_dimensions(self) -> int:
        """As the real one."""
        return self._real.token_dimensions

    def embed_query(self, text: str) -> QueryVectors:
        """As the real one."""
        return self._real.embed_query(text)

    def embed_passages(self, texts: Sequence[str]) -> list[PassageVectors]:
        """Draw vectors."""
        found = []
        for _ in texts:
            pooled = self._random.standard_normal(self.dimensions).astype(np.float32)
            tokens = self._random.integers(-127, 127, (TOKENS, self.token_dimensions), dtype=np.int8)
            scales = np.full(TOKENS, 0.01, dtype=np.float16)
            found.append(PassageVectors(pooled / np.linalg.norm(pooled), tokens, scales))
        return found

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the real one."""
        return self._real.count_tokens(texts)


def measure(units: int, rounds: int, words: int = 150) -> list[Figure]:
    """Measure a Project of ``units`` documents of one unit of ``words`` words each."""
    real = OnnxEmbedder(prepare_model(MULTILINGUAL_E5_SMALL, default_models_dir()))
    real.load()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = Store(home / "interleaf.db")
        publish(store, units, words)
        memory = ProjectMemory(store)
        embedder = RandomPassages(real)
        cache = VectorCache(home / "vectors.db", system_clock)
        index = IndexManager(home / "index", memory.get, lambda: embedder, cache)
        models: Any = SimpleNamespace(embedder=lambda: embedder)
        runs = RunLog(store)
        runs.start()
        activate = ActivateMemory(
            store, memory, index, Searcher(cache), models, system_clock, new_id, b"k" * 32, runs
        )
        save = StoreDraftOperation(store, memory, system_clock, new_id, lambda _: None)

        def build() -> None:
            index.wake(PROJECT)
            index.run_once()

        full = milliseconds(build)
        try:
            found = _activations(store, activate, runs, units, rounds, words)
            found.append(
                Figure(f"index: full build of {units:,} units, without the model", full / 1_000, "s")
            )
            found.append(_update(save, build, activate, units))
        finally:
            runs.stop()
            cache.close()
            store.close()
    return found


def second_share(words: int) -> list[Figure]:
    """Measure only what a state saves, for passages of this length: short ones save less."""
    return [figure for figure in measure(1_000, 5, words) if figure.what.startswith("second")]


def _activations(
    store: Store, activate: ActivateMemory, runs: RunLog, units: int, rounds: int, words: int
) -> list[Figure]:
    chooser = random.Random(3)
    query = tool_contract.Activate(query=" ".join(chooser.choices(WORDS, k=8)) + " page 77")
    first = activate(PROJECT, query)
    whole, model = [], []
    for _ in range(rounds):
        run = activate(PROJECT, query).run_id
        assert run is not None
        runs.flush()
        with store.read() as uow:
            row = uow.runs.get(run)
        assert row is not None
        stages = row.trace["latencies_ms"]
        model.append(sum(stages[stage] for stage in MODEL_STAGES))
        whole.append(milliseconds(lambda: activate(PROJECT, query)))
        runs.flush()
    again = activate(PROJECT, query.model_copy(update={"state": first.next_state}))
    parts = ", ".join(f"{stage} {value:.1f}" for stage, value in stages.items())
    total, models = median(whole), median(model)
    rest_bar = 30.0 if units >= 10_000 else None
    return [
        Figure(f"activate, {units:,} units, p50", total, "ms", None, f"model {models:.1f} ms; {parts}"),
        Figure(f"activate, {units:,} units, all outside the model", total - models, "ms", rest_bar),
        Figure(f"activate, {units:,} units, whole / model", total / models, "×", 1.25),
        Figure(
            f"second activate with state, {units:,} units of {words} words, share of the first one's bytes",
            _bytes(again) / _bytes(first) * 100,
            "%",
            25,
            f"{_bytes(first):,} bytes first",
        ),
    ]


def _update(save: StoreDraftOperation, build: Any, activate: ActivateMemory, units: int) -> Figure:
    body = "# Zebrafish\n\nThe zebrafish tank is cleaned on Mondays.\n"
    save(PROJECT, tool_contract.Store(create=tool_contract.Create(path="zebra.md", body=body)))
    took = milliseconds(build)
    answer = activate(PROJECT, tool_contract.Activate(query="when is the zebrafish tank cleaned?"))
    assert answer.index_lag is None
    return Figure(f"index: one changed resource of {units:,} → searchable", took / 1_000, "s", 2)


def _bytes(answer: tool_contract.ActivateAnswer) -> int:
    return len(answer.model_dump_json(exclude_none=True).encode())


def publish(store: Store, count: int, words: int) -> None:
    """Fill the Project with documents of one unit."""
    chooser = random.Random(1)
    with store.write() as uow:
        row = ProjectRow(PROJECT, "Bench", installed_commit="c" * 64, installed_seq=1, snapshot_at=1)
        uow.projects.put(row)
        bodies = (
            f"# Page {number}\n\n" + " ".join(chooser.choices(WORDS, k=words)) + f" page {number}\n"
            for number in range(count)
        )
        uow.published.replace_all(
            PROJECT,
            (
                PublishedResource(
                    resource_id=f"mem_{number:032x}",
                    scope=Scope.PROJECT,
                    path=f"docs/{number % 100:02}/page-{number:05}.md",
                    description="",
                    body=body,
                    content_hash=content_hash(body),
                )
                for number, body in enumerate(bodies)
            ),
        )
        uow.touch(PROJECT)
