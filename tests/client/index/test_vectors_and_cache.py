from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import numpy as np
import pytest

from client.domain.embedding import PassageVectors
from client.index.files import IndexCorruptError
from client.index.vector_cache import VectorCache, passage_hash
from client.index.vectors import Segment, SegmentWriter, VectorTable
from tests.fakes.hashing_embedder import HashingEmbedder

EMBEDDER = HashingEmbedder()


def passages(*texts: str) -> dict[str, PassageVectors]:
    return dict(zip(map(passage_hash, texts), EMBEDDER.embed_passages(texts), strict=True))


def equal(a: PassageVectors, b: PassageVectors) -> bool:
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("pooled", "tokens", "scales"))


def test_a_segment_gives_back_what_was_written(tmp_path: Path) -> None:
    vectors = EMBEDDER.embed_passages(["one two", "", "three"])
    with SegmentWriter(tmp_path, "s1", EMBEDDER.dimensions, EMBEDDER.token_dimensions) as writer:
        assert [writer.append(each) for each in vectors] == [0, 1, 2]
        info = writer.finish()
    segment = Segment(tmp_path, info, EMBEDDER.dimensions, EMBEDDER.token_dimensions)
    assert all(equal(segment.row(n), each) for n, each in enumerate(vectors))
    query = EMBEDDER.embed_query("three").pooled
    assert int(np.argmax(segment.cosines(query))) == 2


def test_an_empty_segment_is_whole(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "s1", 4, 2) as writer:
        info = writer.finish()
    assert Segment(tmp_path, info, 4, 2).cosines(np.zeros(4, dtype=np.float32)).tolist() == []


def test_vectors_of_another_shape_are_refused(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "s1", 4, 2) as writer, pytest.raises(ValueError, match="shapes"):
        writer.append(EMBEDDER.embed_passages(["x"])[0])


@pytest.mark.parametrize("part", ["pooled", "tokens", "scales", "offsets"])
def test_a_truncated_segment_is_found(tmp_path: Path, part: str) -> None:
    with SegmentWriter(tmp_path, "s1", EMBEDDER.dimensions, EMBEDDER.token_dimensions) as writer:
        writer.append(EMBEDDER.embed_passages(["one two"])[0])
        info = writer.finish()
    path = tmp_path / f"s1.{part}"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IndexCorruptError):
        Segment(tmp_path, info, EMBEDDER.dimensions, EMBEDDER.token_dimensions)


def test_units_that_point_nowhere_are_found(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "s1", 4, 2) as writer:
        info = writer.finish()
    segment = Segment(tmp_path, info, 4, 2)
    for place in ([0, 0], [1, 0], [-1, 0]):
        with pytest.raises(IndexCorruptError):
            VectorTable([segment], np.array([place], dtype=np.int64))


@pytest.mark.requirement("retrieval.cache.shared")
def test_the_cache_gives_back_what_it_was_given_by_fingerprint_and_passage(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.db", now=lambda: 1)
    known = passages("one", "two words", "")
    cache.put_many("model-a", known)
    found = cache.get_many("model-a", [*known, passage_hash("unknown")])
    assert found.keys() == known.keys()
    assert all(equal(found[key], known[key]) for key in known)
    assert cache.get_many("model-b", list(known)) == {}
    cache.close()
    assert len(VectorCache(tmp_path / "v.db", now=lambda: 1).get_many("model-a", list(known))) == 3


def test_the_caches_files_are_private(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.db", now=lambda: 1)
    cache.put_many("m", passages("one"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes


@pytest.mark.parametrize(
    "content", [b"", b"no database at all" * 500, b"SQLite format 3\x00" + b"\xff" * 5_000]
)
def test_a_broken_cache_is_empty_and_works_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.db"
    path.write_bytes(content)
    cache = VectorCache(path, now=lambda: 1)
    known = passages("one")
    assert cache.get_many("m", list(known)) == {}
    cache.put_many("m", known)
    assert cache.get_many("m", list(known)).keys() == known.keys()


def test_a_changed_row_is_a_miss(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.db", now=lambda: 1)
    known = passages("one", "two")
    cache.put_many("m", known)
    cache.close()
    first, second = known
    with sqlite3.connect(tmp_path / "v.db") as connection:
        (value,) = connection.execute(
            "SELECT value FROM vectors WHERE passage = ?", (bytes.fromhex(first),)
        ).fetchone()
        broken = value[:100] + bytes([value[100] ^ 1]) + value[101:]
        connection.execute("UPDATE vectors SET value = ? WHERE passage = ?", (broken, bytes.fromhex(first)))
    connection.close()
    assert list(cache.get_many("m", [first, second])) == [second]


def test_a_cache_in_a_place_that_cannot_be_written_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = VectorCache(tmp_path / "file" / "v.db", now=lambda: 1)
    cache.put_many("m", passages("one"))
    assert cache.get_many("m", [passage_hash("one")]) == {}


def _damage(path: Path, how: str) -> None:
    """Spoil a file where it lies, under whoever has it open."""
    if how == "deleted":
        path.unlink()
    elif how == "flipped":
        content = bytes(
            byte ^ 0x55 if place % 37 == 0 else byte for place, byte in enumerate(path.read_bytes())
        )
        with path.open("r+b") as file:
            file.write(content)
    else:
        os.truncate(path, 0 if how == "emptied" else path.stat().st_size // 2)


@pytest.mark.requirement("retrieval.cache.damaged")
@pytest.mark.parametrize("how", ["emptied", "truncated", "flipped", "deleted"])
@pytest.mark.parametrize("name", ["v.db", "v.db-wal"])
def test_a_cache_damaged_under_its_process_works_on_and_never_gives_wrong_vectors(
    tmp_path: Path, name: str, how: str
) -> None:
    cache = VectorCache(tmp_path / "v.db", now=lambda: 1)
    known = passages(*(f"text {number}" for number in range(3_000)))  # More than SQLite keeps in memory.
    half = dict(list(known.items())[:1_500])
    cache.put_many("m", half)
    cache.close()  # What was written so far is in the file itself, the rest in its log.
    cache.put_many("m", dict(list(known.items())[1_500:]))
    assert not (tmp_path / "v.db-shm").exists(), "a mapped index of the log would end the process"
    _damage(tmp_path / name, how)
    found = cache.get_many("m", list(known))
    assert all(equal(vectors, known[key]) for key, vectors in found.items())
    cache.put_many("m", known)
    assert cache.get_many("m", list(known)).keys() == known.keys()
    cache.close()
    again = VectorCache(tmp_path / "v.db", now=lambda: 1)
    assert again.get_many("m", list(known)).keys() == known.keys()
    again.close()


@pytest.mark.requirement("retrieval.cache.damaged")
def test_a_cache_of_another_form_is_made_anew(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "v.db") as connection:
        connection.execute("CREATE TABLE vectors (fingerprint TEXT, passage BLOB, used_at INTEGER)")
    connection.close()
    cache = VectorCache(tmp_path / "v.db", now=lambda: 1)
    known = passages("one")
    assert cache.get_many("m", list(known)) == {}
    cache.put_many("m", known)
    assert cache.get_many("m", list(known)).keys() == known.keys()
    cache.close()


def test_a_cache_that_another_process_has_open_is_left_alone(tmp_path: Path) -> None:
    first, second = (VectorCache(tmp_path / "v.db", now=lambda: 1) for _ in range(2))
    known = passages("one")
    first.put_many("m", known)
    second.put_many("m", known)
    assert second.get_many("m", list(known)) == {}
    assert first.get_many("m", list(known)).keys() == known.keys()
    first.close()
    assert second.get_many("m", list(known)).keys() == known.keys()
    second.close()


@pytest.mark.requirement("retrieval.cache.bounded")
def test_what_is_forgotten_gives_its_room_back(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.db", now=lambda: 1, limit=100_000)
    cache.put_many("m", passages(*(f"text {number}" for number in range(1_000))))
    cache.close()
    before = (tmp_path / "v.db").stat().st_size
    cache.prune()
    cache.close()
    assert (tmp_path / "v.db").stat().st_size < 300_000 < before


@pytest.mark.requirement("retrieval.cache.bounded")
def test_what_was_unused_longest_is_forgotten_first(tmp_path: Path) -> None:
    day = 86_400_000
    now = [0]
    one = passages("one")
    size = 8 + 12 + 4 * EMBEDDER.dimensions + EMBEDDER.token_dimensions + 2
    cache = VectorCache(tmp_path / "v.db", now=lambda: now[0], limit=size * 2)
    cache.put_many("m", one)
    now[0] = 1 * day
    cache.put_many("m", passages("two"))
    now[0] = 5 * day
    cache.get_many("m", list(one))
    cache.put_many("m", passages("three"))
    cache.prune()
    kept = cache.get_many("m", [passage_hash(text) for text in ("one", "two", "three")])
    assert kept.keys() == {passage_hash("one"), passage_hash("three")}
