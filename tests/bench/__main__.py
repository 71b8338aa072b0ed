"""``make bench``: measures, prints the table, keeps it as JSON.

``--quick`` measures less, ``--only WORD`` the parts with that word in their name; ``--write-docs`` writes
the table into the documentation too.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from client.frugal import one_blas_thread
from tests.bench.figures import Figure, machine, markdown, versions_used

CONDITIONS = (
    "Times are medians or the named quantile after a warm-up, unless a row says how often; read them by "
    "ratio, the reference was measured in the same run. Passage vectors are drawn at random but for the "
    "project's own pages, the query's are the model's: the rows on search measure time and size only."
)
ROOT = Path(__file__).resolve().parent.parent.parent


def main(arguments: list[str]) -> None:
    """Run every measurement and print the table; a figure over its bar is shown, never an error."""
    where, packages = machine(), versions_used()
    figures: list[Figure] = []
    only = arguments[arguments.index("--only") + 1] if "--only" in arguments else ""
    for name, part in _parts(quick="--quick" in arguments).items():
        if only in name:
            print(f"measuring: {name}", file=sys.stderr, flush=True)
            figures += part()
    table = markdown(figures)
    print(table)
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    record = {
        "machine": where | {"packages": packages},
        "figures": [asdict(f) | {"verdict": f.verdict} for f in figures],
    }
    (build / "bench.json").write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    if "--write-docs" in arguments and not only:
        page = document(where, packages, figures)
        (ROOT / "docs" / "figures.md").write_text(page, encoding="utf-8")


def _parts(*, quick: bool) -> dict[str, Callable[[], list[Figure]]]:
    # As in the daemon, and like there before NumPy is imported.
    one_blas_thread()
    from tests.bench import bench_store, processes, searching

    return {
        "store and load": lambda: [
            *bench_store.figures(1_000, 60 if quick else 300),
            *bench_store.figures(10_000, 60 if quick else 300),
        ],
        "activate at 1,000 units": lambda: searching.measure(1_000, 5 if quick else 21),
        "activate at 10,000 units": lambda: searching.measure(10_000, 5 if quick else 21),
        "what a state saves": lambda: [
            *searching.second_share(60),
            *searching.second_share(110),
            *([] if quick else searching.second_share_of_own_pages()),
        ],
        "processes": lambda: processes.measure(5 if quick else 15, 1 if quick else 3),
    }


def document(where: Mapping[str, object], packages: Mapping[str, str], figures: Sequence[Figure]) -> str:
    """Return the page of the documentation: command, machine, conditions and table."""
    versions = ", ".join(f"{name} {number}" for name, number in packages.items())
    line = (
        f"`make bench`, {where['date']}; {where['cpus']} CPUs, {where['platform']}, "
        f"Python {where['python']}, load average at the start {where['load']}, {versions}. {CONDITIONS}"
    )
    return f"# Figures\n\n{textwrap.fill(line, 108)}\n\n{markdown(figures)}"


if __name__ == "__main__":
    main(sys.argv[1:])
