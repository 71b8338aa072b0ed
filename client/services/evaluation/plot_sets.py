"""A plot of nDCG@10 by set and variant, as SVG, PNG or PDF: what the file's ending says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from client.services.evaluation.variants import VARIANTS
from shared_schema.errors import ErrorCode, InterleafError

ENDINGS: Final = (".svg", ".png", ".pdf")
_LABELS: Final = dict(zip(VARIANTS, ("words (BM25)", "meaning (dense)", "fused", "reranked"), strict=True))
# Told apart without colour vision and in grey: Okabe and Ito's palette, from light to dark.
_COLOURS: Final = dict(zip(VARIANTS, ("#E69F00", "#56B4E9", "#009E73", "#0A3A5C"), strict=True))
_WIDTH: Final = 0.2
_NARROW: Final = 3
"""Up to so many sets the legend takes two lines."""


def check_plot(path: Path) -> None:
    """Refuse, before anything is measured, what could not be drawn.

    Raises:
        InterleafError: INVALID_ARGUMENTS, with the known endings or the missing library's name.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, f"A plot ends in {', '.join(ENDINGS)}; {path.name} does not."
        )
    try:
        import matplotlib.figure
    except ImportError:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, "Plots need one more library: pip install 'interleaf[plots]'"
        ) from None
    del matplotlib


def plot_sets(reports: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the sets' reports, in their order. Raises OSError when the file cannot be written."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # The same figures give the same file; text stays text.
    with mpl.rc_context({"svg.hashsalt": "interleaf", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(max(4.0, 1.4 * len(reports) + 1.5), 3.6), layout="constrained")
        axes = figure.add_subplot()
        for place, variant in enumerate(VARIANTS):
            values = [report["variants"][variant]["ndcg@10"] for report in reports]
            positions = [number + (place - 1.5) * _WIDTH for number in range(len(reports))]
            bars = axes.bar(positions, values, _WIDTH, label=_LABELS[variant], color=_COLOURS[variant])
            axes.bar_label(bars, [f"{value:.2f}".removeprefix("0") for value in values], fontsize=6)
        axes.set_xticks(range(len(reports)), [_label(report) for report in reports])
        axes.set_ylabel("nDCG@10")
        axes.set_ylim(0, 1.05)
        axes.spines[["top", "right"]].set_visible(False)
        columns = len(VARIANTS) if len(reports) > _NARROW else 2
        figure.legend(loc="outside upper center", ncols=columns, frameon=False, fontsize=8)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)


def _label(report: dict[str, Any]) -> str:
    return f"{report['set']}\n{report['queries']} queries\n{report['documents']} documents"
