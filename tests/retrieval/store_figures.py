"""Store the figures that the quality gate compares with: ``python -m tests.retrieval.store_figures``.

Runs the repository's own set through the real pipeline with the default model and writes
``figures.json``. Store figures after a change that is meant to rank differently, and commit them with
it: the difference shows what the change did to every question.
"""

from __future__ import annotations

import sys

from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.embedder import OnnxEmbedder
from client.models.files import default_models_dir
from client.models.preparation import prepare_model
from client.services.evaluation.variants import VARIANTS
from tests.retrieval.figures import FIGURES, Figures, hash_of, run


def main() -> None:
    """Run the set, say what came out, write it."""
    embedder = OnnxEmbedder(prepare_model(MULTILINGUAL_E5_SMALL, default_models_dir()))
    figures = Figures.of(run(embedder, _show), hash_of())
    _show_figures(figures)
    figures.write()
    sys.stdout.write(f"written: {FIGURES}\n")


def _show(stage: str, done: int, total: int) -> None:
    if not sys.stderr.isatty():
        return
    sys.stderr.write(f"\r{stage} {done} of {total}   " + ("\n" if done == total else ""))
    sys.stderr.flush()


def _show_figures(figures: Figures) -> None:
    columns = "".join(f"{variant:>14}" for variant in VARIANTS)
    rows = [f"{'kind':<8}{'n':>4}{columns}  answered  forbidden  returned"]
    for name, kind in figures.kinds.items():
        means = figures.kind_ndcg.get(name, {})
        cells = "".join(f"{means[each]:>14.3f}" if means else f"{'-':>14}" for each in VARIANTS)
        share = f"{kind.answered}/{kind.answerable}"
        rows.append(f"{name:<8}{kind.questions:>4}{cells}{share:>10}{kind.forbidden:>11}{kind.returned:>10}")
    total = "".join(f"{figures.ndcg[variant]:>14.3f}" for variant in VARIANTS)
    rows.append(f"{'all':<8}{len(figures.rankings):>4}{total}")
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
