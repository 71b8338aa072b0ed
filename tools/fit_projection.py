"""Fit the mean and the PCA of token vectors that Interleaf ships for its default embedding model.

Run: python tools/fit_projection.py SET... [--models-dir DIR] [--out FILE]

A SET is a folder with ``corpus.jsonl`` (``path``, ``title``, ``text``) and ``queries.jsonl``
(``text``). The same sets, seed and model give the same file on one machine, and up to rounding on any.
The sets that the shipped file was fitted on are named in ``client/models/data/README.md``.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.files import default_models_dir
from client.models.preparation import prepare_model
from client.models.projection import SHIPPED_PROJECTION, TokenProjection, unit_rows
from client.models.raw_embedding import RawEmbedding

_DIMENSIONS: Final = 128
_SEED: Final = 20_260_101
_PASSAGE_CHARACTERS: Final = 800
_BATCH: Final = 4


def main() -> None:
    """Read the sets, embed a sample, fit, write the file and print what it explains."""
    arguments = _arguments()
    started = time.monotonic()
    files = prepare_model(MULTILINGUAL_E5_SMALL, arguments.models_dir)
    embedding, model = RawEmbedding(files), files.model
    blocks: dict[str, list[NDArray[np.float32]]] = {model.passage_prefix: [], model.query_prefix: []}
    for folder in arguments.sets:
        # A generator of its own for each set: adding a set does not change the others' samples.
        chance = random.Random(f"{_SEED}:{folder.name}")  # noqa: S311 - a sample, not a secret
        passages = _sample(list(_passages(folder, chance)), arguments.passages, chance)
        queries = _sample(list(_queries(folder)), arguments.passages, chance)
        for texts, prefix in ((passages, model.passage_prefix), (queries, model.query_prefix)):
            texts.sort(key=len)
            blocks[prefix].extend(raw.tokens for raw in embedding.embed(texts, prefix, _BATCH))
        print(f"{folder.name}: {len(passages)} passages, {len(queries)} queries")
    groups = [np.concatenate(tokens) for tokens in blocks.values()]
    mean, components, explained = fit(groups, _DIMENSIONS)
    TokenProjection.save(arguments.out, mean, components, files.fingerprint)
    print(
        f"{sum(map(len, groups))} token vectors, {explained:.1%} of the variance in {_DIMENSIONS} dimensions"
    )
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes, {time.monotonic() - started:.0f} s")


def fit(
    groups: Sequence[NDArray[np.float32]], dimensions: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], float]:
    """Return the mean [d], the leading directions [d, dimensions] and the share of variance they hold.

    Vectors are centred and scaled to length 1 before the decomposition, as they are compared by cosine.
    Each group counts the same, whatever its size: a query's tokens are as often compared as a passage's,
    but there are ten times fewer of them, and they would have little say.
    """
    mean = np.concatenate(groups).mean(axis=0, dtype=np.float64).astype(np.float32)
    moments = np.zeros((len(mean), len(mean)))
    for tokens in groups:
        units = unit_rows(tokens - mean).astype(np.float64)
        moments += units.T @ units / len(units) / len(groups)
    values, vectors = np.linalg.eigh(moments)
    leading = vectors[:, ::-1][:, :dimensions]
    # A direction's sign is arbitrary: the largest entry is made positive, so that runs agree.
    signs = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(dimensions)])
    share = float(values[::-1][:dimensions].sum() / values.sum())
    return mean, (leading * signs).astype(np.float32), share


def _passages(folder: Path, chance: random.Random) -> Iterator[str]:
    """Yield one passage a document: its path and title, and a stretch of whole paragraphs."""
    for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        paragraphs = [p for p in document["text"].split("\n\n") if p.strip()]
        if paragraphs:
            start = chance.randrange(len(paragraphs))
            body = "\n\n".join(paragraphs[start:])[:_PASSAGE_CHARACTERS]
            yield f"{document['path']}\n{document.get('title') or ''}\n{body}"


def _queries(folder: Path) -> Iterator[str]:
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        yield str(json.loads(line)["text"])


def _sample(texts: list[str], size: int, chance: random.Random) -> list[str]:
    return chance.sample(texts, min(size, len(texts)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--models-dir", type=Path, default=default_models_dir())
    parser.add_argument("--out", type=Path, default=SHIPPED_PROJECTION)
    parser.add_argument("--passages", type=int, default=300, help="most passages, and queries, of a set")
    return parser.parse_args()


if __name__ == "__main__":
    main()
