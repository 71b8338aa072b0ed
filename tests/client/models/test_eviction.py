"""A model's memory is given back after long idleness, and comes back with the next question."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from client.models import raw_embedding as raw_embedding_module
from client.models.embedder import OnnxEmbedder
from client.models.eviction import IdleEviction
from client.models.files import ModelFiles
from tests.client.models.test_embedder import save_projection

LIMIT = 1_800.0
WAIT = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def embedder(tiny_files: ModelFiles, tmp_path: Path, clock: Clock) -> OnnxEmbedder:
    projection = save_projection(tmp_path / "p.npz", tiny_files.fingerprint)
    return OnnxEmbedder(tiny_files, projection, monotonic=clock)


@pytest.fixture
def eviction(embedder: OnnxEmbedder) -> IdleEviction:
    return IdleEviction(LIMIT, lambda: embedder)


def in_memory(embedder: OnnxEmbedder) -> bool:
    """Tell whether the session or the tokenizer, which is as large, is there."""
    return embedder._raw._session is not None or embedder._raw._tokenizer is not None


@pytest.mark.requirement("models.eviction")
def test_what_nobody_used_for_long_is_unloaded_and_answers_the_next_question(
    embedder: OnnxEmbedder, eviction: IdleEviction, clock: Clock
) -> None:
    first = embedder.embed_query("abc")
    clock.now = LIMIT - 1
    assert eviction.look() == 1.0
    assert embedder.loaded
    clock.now = LIMIT
    assert eviction.look() is None
    assert not in_memory(embedder)
    again = embedder.embed_query("abc")
    assert np.array_equal(again.pooled, first.pooled)
    assert np.array_equal(again.tokens, first.tokens)
    assert embedder.fingerprint


@pytest.mark.requirement("models.eviction")
@pytest.mark.parametrize("use", ["embed_query", "embed_passages", "count_tokens"])
def test_every_use_begins_the_time_anew(
    embedder: OnnxEmbedder, eviction: IdleEviction, clock: Clock, use: str
) -> None:
    embedder.load()
    clock.now = LIMIT - 1
    getattr(embedder, use)("abc" if use == "embed_query" else ["abc"])
    clock.now += 1
    assert eviction.look() == LIMIT - 1
    assert embedder.loaded


@pytest.mark.requirement("models.eviction")
def test_a_tokenizer_that_only_counted_is_unloaded_too(
    embedder: OnnxEmbedder, eviction: IdleEviction, clock: Clock
) -> None:
    embedder.count_tokens(["abc"])
    assert not embedder.loaded
    clock.now = LIMIT
    assert eviction.look() is None
    assert not in_memory(embedder)


@pytest.mark.requirement("models.eviction.running")
@pytest.mark.parametrize("call", ["embedding", "counting"])
def test_nothing_is_unloaded_while_a_call_runs_however_long_it_takes(
    embedder: OnnxEmbedder,
    eviction: IdleEviction,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
) -> None:
    reached, go_on = threading.Event(), threading.Event()
    embedder.load()
    name = "_whole_length" if call == "counting" else "RawVectors"
    real = getattr(raw_embedding_module, name)

    def hold(*arguments: object) -> object:
        reached.set()
        assert go_on.wait(WAIT)
        return real(*arguments)

    monkeypatch.setattr(raw_embedding_module, name, hold)
    results: list[object] = []
    work = embedder.count_tokens if call == "counting" else embedder.embed_passages
    thread = threading.Thread(target=lambda: results.extend(work(["abc"])))
    thread.start()
    assert reached.wait(WAIT)
    clock.now = 10 * LIMIT
    assert embedder.idle_seconds() == 0
    assert eviction.look() == LIMIT
    assert not embedder.unload()
    assert embedder.loaded
    go_on.set()
    thread.join(WAIT)
    assert len(results) == 1
    assert eviction.look() == LIMIT, "the time begins when the call has ended"
    clock.now += LIMIT
    assert eviction.look() is None


@pytest.mark.requirement("models.eviction.running")
def test_calls_and_evictions_at_once_always_give_the_right_vectors(embedder: OnnxEmbedder) -> None:
    always = IdleEviction(1e-9, lambda: embedder)
    expected = {text: embedder.embed_query(text).pooled for text in ("abc", "xyz xyz", "如何")}
    done, failures = threading.Event(), []

    def ask() -> None:
        try:
            for _ in range(15):
                for text, pooled in expected.items():
                    assert np.allclose(embedder.embed_query(text).pooled, pooled, atol=1e-5)
                    assert embedder.count_tokens([text])[0] > 0
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    def evict() -> None:
        while not done.is_set():
            embedder.unload()
            always.look()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    evicting = threading.Thread(target=evict)
    for thread in (*threads, evicting):
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    done.set()
    evicting.join(WAIT)
    assert failures == []


class Pauses:
    """Stands for sleep: records each pause and holds the thread until the test lets it go."""

    def __init__(self) -> None:
        self.seconds: list[float | None] = []
        self.entered, self.released = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, seconds: float | None) -> None:
        self.seconds.append(seconds)
        self.entered.release()
        assert self.released.acquire(timeout=WAIT)

    def let_go(self) -> None:
        self.released.release()
        assert self.entered.acquire(timeout=WAIT)


@pytest.mark.requirement("models.eviction.quiet")
def test_the_thread_sleeps_until_something_is_loaded_and_then_for_the_whole_time(
    embedder: OnnxEmbedder, clock: Clock
) -> None:
    pauses = Pauses()
    eviction = IdleEviction(LIMIT, lambda: embedder, wait=pauses)
    eviction.start()
    assert pauses.entered.acquire(timeout=WAIT)
    embedder.load()
    pauses.let_go()  # As the load wakes it.
    clock.now = LIMIT
    pauses.let_go()
    assert pauses.seconds == [None, LIMIT, None], "two times awake from a load to the end"
    assert not in_memory(embedder)
    eviction._stopping = True
    pauses.released.release()
    eviction.stop()


@pytest.mark.requirement("models.eviction")
@pytest.mark.parametrize("use", ["embed_query", "count_tokens"])
def test_a_load_wakes_the_real_thread_which_unloads_it(
    tiny_files: ModelFiles, tmp_path: Path, use: str
) -> None:
    unloaded = threading.Event()

    class Watched(OnnxEmbedder):
        def unload(self) -> bool:
            gone = super().unload()
            if gone:
                unloaded.set()
            return gone

    projection = save_projection(tmp_path / "p.npz", tiny_files.fingerprint)
    held: list[Watched] = []
    eviction = IdleEviction(0.01, lambda: held[0] if held else None)
    eviction.start()
    held.append(Watched(tiny_files, projection, told=eviction.wake))
    getattr(held[0], use)("abc" if use == "embed_query" else ["abc"])
    assert unloaded.wait(WAIT)
    eviction.stop()
    assert "model-eviction" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.requirement("models.eviction")
def test_zero_never_unloads_and_has_no_thread(embedder: OnnxEmbedder) -> None:
    eviction = IdleEviction(0, lambda: embedder)
    eviction.start()
    assert "model-eviction" not in {thread.name for thread in threading.enumerate()}
    eviction.stop()
