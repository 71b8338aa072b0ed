"""What a measurement says: one figure with its unit, its bar and what stood beside it."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version


@dataclass(frozen=True)
class Figure:
    """One row of the table; without a bar it is only told."""

    what: str
    value: float
    unit: str
    bar: float | None = None
    beside: str = ""

    @property
    def verdict(self) -> str:
        """``ok``, ``over``, or nothing without a bar."""
        if self.bar is None:
            return ""
        return "ok" if self.value <= self.bar else "over"


def shown(number: float) -> str:
    """Return a number with about three digits."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def markdown(figures: Sequence[Figure]) -> str:
    """Return the table."""
    lines = ["| What | Figure | Bar | | Beside it |", "|---|---|---|---|---|"]
    for figure in figures:
        bar = "" if figure.bar is None else f"≤ {shown(figure.bar)} {figure.unit}"
        number = shown(figure.value)
        if figure.verdict == "over" and number == shown(figure.bar or 0):
            number = f"{figure.value:.4g}"  # A figure over its bar never looks like the bar.
        value = f"{number} {figure.unit}"
        lines.append(f"| {figure.what} | {value} | {bar} | {figure.verdict} | {figure.beside} |")
    return "\n".join(lines) + "\n"


def machine() -> dict[str, object]:
    """Return what the figures depend on."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpus": os.cpu_count(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def versions_used() -> dict[str, str]:
    """Return the versions of the packages that the figures depend on."""
    return {name: version(name) for name in ("interleaf", "mcp", "tantivy", "onnxruntime", "numpy")}


def milliseconds(action: Callable[[], object]) -> float:
    """Return how long one call took."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1_000


def share(times: Sequence[float], part: float) -> float:
    """Return a quantile of the times."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def median(times: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(times)
