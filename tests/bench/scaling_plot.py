"""The plot of ``make bench-search``: times and sizes by number of units, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

BAR_MS: Final = 30.0
"""All of an activation that is not the model's, at 10,000 units."""
BAR_MB: Final = 700.0
"""The daemon's memory with its model loaded."""

Row = dict[str, Any]

# Told apart without colour vision and in grey: Okabe and Ito's palette.
_TIMES: Final[Sequence[tuple[str, str, str, Callable[[Row], float]]]] = (
    ("activate, p95", "#56B4E9", "o--", lambda row: row["whole_p95_ms"]),
    ("activate, p50", "#56B4E9", "o-", lambda row: row["whole_p50_ms"]),
    ("outside the model, p50", "#0A3A5C", "s-", lambda row: row["outside_p50_ms"]),
    ("dense", "#E69F00", "^-", lambda row: row["stages_ms"]["dense"]),
    ("words", "#009E73", "v-", lambda row: row["stages_ms"]["lexical"]),
)
_SIZES: Final[Sequence[tuple[str, str, str, Callable[[Row], float]]]] = (
    ("index on disk", "#56B4E9", "o-", lambda row: index_mb(row)),
    ("mapped, in memory", "#E69F00", "^-", lambda row: row["mapped_mb"]),
    ("the process's own memory", "#0A3A5C", "s-", lambda row: row["own_mb"]),
)


def index_mb(row: Row) -> float:
    """Return the size of the index on disk, in MiB."""
    return sum(size for name, size in row["disk_mb"].items() if name not in ("database", "vector cache"))


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw one row a size."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    units = [row["units"] for row in rows]
    # The same figures give the same file; text stays text.
    with mpl.rc_context({"svg.hashsalt": "interleaf", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 3.8), layout="constrained")
        panels = zip(figure.subplots(1, 2), (_TIMES, _SIZES), ("ms", "MB"), (BAR_MS, BAR_MB), strict=True)
        for axes, lines, unit, bar in panels:
            for label, colour, style, value in lines:
                axes.plot(units, [value(row) for row in rows], style, color=colour, label=label, markersize=4)
            axes.axhline(bar, color="#888888", linestyle=":", linewidth=1)
            axes.annotate(f"{bar:.0f} {unit}", (units[0], bar), textcoords="offset points", xytext=(0, 3))
            _finish(axes, units, unit)
        figure.savefig(path, metadata={"Date": None})


def _finish(axes: Any, units: Sequence[int], unit: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(units, [f"{each:,}" for each in units])
    low, high = axes.get_ylim()
    ticks = [step * 10.0**power for power in range(-2, 6) for step in (1, 3)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("units")
    axes.set_ylabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
