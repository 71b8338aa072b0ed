"""Activations and index updates at a given number of units.

The query's vectors are the real model's; those of the passages are drawn at random, because only time
is measured and embedding 10,000 passages takes a quarter of an hour. A changed resource is embedded by
the real model. What a state saves depends on the texts too, so it is measured on this project's own
pages as well, with the real model throughout.
"""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
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
SPECIAL_TOKENS = 2
MODEL_STAGES = ("embed_query", "rerank")
ROOT = Path(__file__).resolve().parents[2]
PROSE = sorted(ROOT.glob("*.md"))
WORDS = sorted({w for page in PROSE for w in re.findall(r"[a-z]{3,}", page.read_text(encoding="utf-8"))})
"""Ordinary English words: those of this project's own pages."""


class RandomPassages:
    """The real embedder for queries, random vectors of the right shape for passages while ``drawing``.

    Its fingerprint is none that floors of relevance were fitted to, so answers are filled by words.
    """

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self.drawing = True
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
        """Draw vectors, one row a real token; or embed."""
        if not self.drawing:
            return self._real.embed_passages(texts)
        found = []
        for count in self._real.count_tokens(texts):
            rows = count + SPECIAL_TOKENS
            pooled = self._random.standard_normal(self.dimensions).astype(np.float32)
            tokens = self._random.integers(-127, 127, (rows, self.token_dimensions), dtype=np.int8)
            scales = np.full(rows, 0.01, dtype=np.float16)
            found.append(PassageVectors(pooled / np.linalg.norm(pooled), tokens, scales))
        return found

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As the real one."""
        return self._real.count_tokens(texts)


class Bench:
    """One machine's store, index and activation, as the daemon connects them."""

    def __init__(self, home: Path, embedder: Embedder) -> None:
        self.store = Store(home / "interleaf.db")
        self.memory = ProjectMemory(self.store)
        self.cache = VectorCache(home / "vectors.db", system_clock)
        self.index = IndexManager(home / "index", self.memory.get, lambda: embedder, self.cache)
        models: Any = SimpleNamespace(embedder=lambda: embedder)
        self.runs = RunLog(self.store)
        self.runs.start()
        self.activate = ActivateMemory(
            self.store,
            self.memory,
            self.index,
            Searcher(self.cache),
            models,
            system_clock,
            new_id,
            b"k" * 32,
            self.runs,
        )
        self.save = StoreDraftOperation(self.store, self.memory, system_clock, new_id, self.index.wake)

    def build(self) -> None:
        """Build the index now and here."""
        self.index.wake(PROJECT)
        self.index.run_once()
        status = self.index.status(PROJECT)
        if status.lag or status.error is not None:
            raise RuntimeError(f"the index was not built: {status.error}")

    def stages(self, run_id: str) -> dict[str, float]:
        """Return the milliseconds of an activation's stages, from its record."""
        self.runs.flush()
        with self.store.read() as uow:
            row = uow.runs.get(run_id)
        if row is None:
            raise RuntimeError(f"no record of the activation: {self.runs.error}")
        found: dict[str, float] = row.trace["latencies_ms"]
        return found

    def close(self) -> None:
        """End the threads and close the files."""
        self.index.stop()
        self.runs.stop()
        self.cache.close()
        self.store.close()


@contextmanager
def bench(embedder: Embedder) -> Iterator[Bench]:
    """Run one in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        made = Bench(Path(folder), embedder)
        try:
            yield made
        finally:
            made.close()


def real_embedder() -> OnnxEmbedder:
    """Return the loaded model."""
    real = OnnxEmbedder(prepare_model(MULTILINGUAL_E5_SMALL, default_models_dir()))
    real.load()
    return real


def measure(units: int, rounds: int, words: int = 150) -> list[Figure]:
    """Measure a Project of ``units`` documents of one unit of ``words`` words each."""
    embedder = RandomPassages(real_embedder())
    with bench(embedder) as subject:
        publish(subject.store, [document(number, words) for number in range(units)])
        full = milliseconds(subject.build)
        indexed = subject.index.status(PROJECT).total
        if indexed != units:
            raise RuntimeError(f"{units} documents became {indexed} units")
        embedder.drawing = False
        found = _activations(subject, units, rounds)
        found.append(_second(subject, some_query(0), f"{units:,} units of {words} words, drawn vectors"))
        what = f"index: full build of {units:,} units, without the model"
        found.append(Figure(what, full / 1_000, "s", None, "once"))
        found.append(_changes(subject, units, min(rounds, 7)))
    return found


def second_share(words: int) -> list[Figure]:
    """Measure only what a state saves, for passages of this length: short ones save less."""
    with bench(RandomPassages(real_embedder())) as subject:
        publish(subject.store, [document(number, words) for number in range(1_000)])
        subject.build()
        return [_second(subject, some_query(0), f"1,000 units of {words} words, drawn vectors")]


def second_share_of_own_pages() -> list[Figure]:
    """Measure what a state saves on this project's pages, nothing drawn."""
    pages = [*PROSE, *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "figures.md")]
    with bench(real_embedder()) as subject:
        publish(subject.store, [page.read_text(encoding="utf-8") for page in pages])
        subject.build()
        units = subject.index.status(PROJECT).total
        shares = [_second(subject, query, f"{units} units of this project's pages") for query in QUERIES]
    middle = sorted(shares, key=lambda figure: figure.value)[len(shares) // 2]
    each = ", ".join(f"{figure.value:.0f} %" for figure in shares)
    return [replace(middle, beside=f"median of {len(shares)} questions: {each}")]


QUERIES = (
    "How is a Draft submitted and merged?",
    "What happens when the server cannot be reached?",
    "Which settings does the daemon read?",
    "How are fragments ranked and chosen?",
    "What does the error expected_hash mismatch mean and what do I do?",
)


def some_query(number: int) -> str:
    """Return a question of a few words, always the same one for a number."""
    return " ".join(random.Random(number + 3).choices(WORDS, k=8)) + " page 77"


def _activations(subject: Bench, units: int, rounds: int) -> list[Figure]:
    whole, model, stages = [], [], []
    fragments = []
    for number in range(-3, rounds):  # Three to warm up; another query each time.
        activate = tool_contract.Activate(query=some_query(number + 100))
        start = time.perf_counter()
        answer = subject.activate(PROJECT, activate)
        took = (time.perf_counter() - start) * 1_000
        if answer.run_id is None:
            raise RuntimeError("the activation has no record")
        each = subject.stages(answer.run_id)
        if number >= 0:
            whole.append(took)
            model.append(sum(each[stage] for stage in MODEL_STAGES))
            stages.append(each)
            fragments.append(len(answer.fragments))
    rest = median([total - models for total, models in zip(whole, model, strict=True)])
    ratio = median([total / models for total, models in zip(whole, model, strict=True)])
    parts = ", ".join(f"{stage} {median([each[stage] for each in stages]):.1f}" for stage in stages[0])
    beside = f"model {median(model):.1f} ms; {parts}; {median(fragments):.0f} fragments"
    rest_bar = 30.0 if units >= 10_000 else None
    return [
        Figure(f"activate, {units:,} units, p50", median(whole), "ms", None, beside),
        Figure(f"activate, {units:,} units, all outside the model, p50", rest, "ms", rest_bar),
        Figure(f"activate, {units:,} units, whole / model, p50", ratio, "×", 1.25),
    ]


def _second(subject: Bench, query: str, where: str) -> Figure:
    """Activate twice with the same query, the second time with the first one's state."""
    first = subject.activate(PROJECT, tool_contract.Activate(query=query))
    again = subject.activate(PROJECT, tool_contract.Activate(query=query, state=first.next_state))
    if not first.fragments:
        raise RuntimeError(f"nothing was found for {query!r}")
    return Figure(
        f"second activate with state, {where}, share of the first one's bytes",
        _bytes(again) / _bytes(first) * 100,
        "%",
        25,
        f"{_bytes(first):,} bytes first, {len(first.fragments)} fragments",
    )


def _changes(subject: Bench, units: int, rounds: int) -> Figure:
    """Change published resources one by one, and wait for the background worker to index each."""
    subject.index.start()
    times = []
    for number in range(rounds + 1):
        item = subject.memory.get(PROJECT).by_id[f"mem_{(number * 997) % units:032x}"]
        word = f"zebrafish{number}"
        text = f"# {word}\n\nThe {word} tank is cleaned on Mondays.\n"
        head = item.body.partition("\n")[0] + "\n"
        update = tool_contract.Update(
            id=item.resource_id,
            expected_hash=item.content_hash,
            replacements=[tool_contract.Replacement(old_text=head, new_text=text)],
        )
        times.append(milliseconds(partial(_save_and_wait, subject, update)))
        answer = subject.activate(PROJECT, tool_contract.Activate(query=f"when is {word} cleaned?"))
        if not any(word in (fragment.content or "") for fragment in answer.fragments):
            raise RuntimeError(f"the changed resource was not found: {word}")
    beside = f"the worker's pause for bursts included; slowest {max(times[1:]) / 1_000:.2f} s"
    what = f"index: one changed resource of {units:,} → searchable, p50"
    return Figure(what, median(times[1:]) / 1_000, "s", 2, beside)


def _save_and_wait(subject: Bench, update: tool_contract.Update) -> None:
    before = subject.index.status(PROJECT).generation
    subject.save(PROJECT, tool_contract.Store(update=update))
    deadline = time.monotonic() + 120
    while (status := subject.index.status(PROJECT)).generation == before or status.lag:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the change was not indexed: {status.error}")
        time.sleep(0.002)


def _bytes(answer: tool_contract.ActivateAnswer) -> int:
    return len(answer.model_dump_json(exclude_none=True).encode())


def document(number: int, words: int) -> str:
    """Return a page of that many words, always the same one for a number."""
    chosen = " ".join(random.Random(number).choices(WORDS, k=words))
    return f"# Page {number}\n\n{chosen} page {number}\n"


def publish(store: Store, bodies: Iterable[str]) -> None:
    """Fill the Project with documents."""
    with store.write() as uow:
        row = ProjectRow(PROJECT, "Bench", installed_commit="c" * 64, installed_seq=1, snapshot_at=1)
        uow.projects.put(row)
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
