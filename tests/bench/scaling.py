"""``make bench-search``: how search grows, from 1,000 to 200,000 units, as a table and a plot.

Each size has a process that builds the index and another one that opens it and searches, so that neither
memory nor caches of one size flatter the next. As in ``searching``: documents of one unit, passage vectors
drawn at random, the query's from the real model. Sizes may be given; ``--write-docs`` writes table and plot
into the documentation.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from client.frugal import one_blas_thread
from tests.bench.figures import machine, median, milliseconds, shown, versions_used
from tests.bench.figures import share as quantile
from tests.bench.scaling_plot import Row, draw, index_mb

SIZES: Final = (1_000, 10_000, 30_000, 100_000, 200_000)
ROUNDS: Final = 60
WARM_UP: Final = 5
ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "decisions" / "0009-exact-search.md"
PLOT: Final = ROOT / "docs" / "images" / "search-scaling.svg"
BEGIN: Final = "<!-- figures: make bench-search -->\n"
END: Final = "<!-- end of figures -->\n"
_MIB: Final = 1 << 20


def main(arguments: list[str]) -> None:
    """Measure every size in processes of its own and tell."""
    sizes = [int(each) for each in arguments if each.isdigit()] or list(SIZES)
    where, packages = machine(), versions_used()
    rows = []
    for units in sizes:
        print(f"measuring: {units:,} units", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            rows.append({"units": units} | _run("build", folder, units) | _run("serve", folder, units))
    text = _page(where, packages, rows)
    print(text)
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    record = {"machine": where | {"packages": packages}, "sizes": rows}
    (build / "scaling.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    draw(rows, build / "search-scaling.svg")
    if "--write-docs" in arguments:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")
        PLOT.parent.mkdir(exist_ok=True)
        draw(rows, PLOT)


def _run(part: str, folder: str, units: int) -> Row:
    command = [sys.executable, "-m", "tests.bench.scaling", part, folder, str(units)]
    found: Row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)
    return found


# --- in a process of its own ---


def build(home: Path, units: int) -> Row:
    """Publish and index ``units`` documents."""
    from tests.bench.searching import Bench, RandomPassages, document, publish, real_embedder

    subject = Bench(home, RandomPassages(real_embedder()))
    publish(subject.store, (document(number, 150) for number in range(units)))
    seconds = milliseconds(subject.build) / 1_000
    subject.close()
    sizes = {name: _bytes_of(home, pattern) / _MIB for name, pattern in _FILES.items()}
    return {"build_s": seconds, "build_mb": _memory("VmHWM"), "disk_mb": sizes}


_FILES: Final = {
    "pooled vectors": "index/*/gen-*/vectors/*.pooled",
    "token vectors": "index/*/gen-*/vectors/*.tokens",
    "words": "index/*/gen-*/lexical/*",
    "units": "index/*/gen-*/units.jsonl",
    "database": "interleaf.db*",
    "vector cache": "vectors.db*",
}


def serve(home: Path, units: int) -> Row:
    """Open what was built, and search."""
    from shared_schema import tool_contract
    from tests.bench.searching import MODEL_STAGES, PROJECT, Bench, RandomPassages, real_embedder, some_query

    embedder = RandomPassages(real_embedder())
    embedder.drawing = False
    subject = Bench(home, embedder)
    embedder.embed_query("warm")
    before = _memory("RssAnon")
    opening = milliseconds(lambda: subject.index.status(PROJECT))
    memory = subject.memory.get(PROJECT)
    first = milliseconds(lambda: subject.activate(PROJECT, tool_contract.Activate(query=some_query(0))))
    whole: list[float] = []
    stages: list[dict[str, float]] = []
    for number in range(WARM_UP + ROUNDS):
        activate = tool_contract.Activate(query=some_query(number + 100))
        start = time.perf_counter()
        answer = subject.activate(PROJECT, activate)
        whole.append((time.perf_counter() - start) * 1_000)
        stages.append(subject.stages(answer.run_id or ""))
    whole, stages = whole[WARM_UP:], stages[WARM_UP:]
    outside = [took - sum(each[s] for s in MODEL_STAGES) for took, each in zip(whole, stages, strict=True)]
    if subject.index.status(PROJECT).total != units or len(memory.by_id) != units:
        raise RuntimeError("another number of units was indexed")
    found = {
        "open_ms": opening,
        "first_ms": first,
        "whole_p50_ms": median(whole),
        "whole_p95_ms": quantile(whole, 0.95),
        "outside_p50_ms": median(outside),
        "outside_p95_ms": quantile(outside, 0.95),
        "stages_ms": {stage: median([each[stage] for each in stages]) for stage in stages[0]},
        "index_mb": _memory("RssAnon") - before,
        "rss_mb": _memory("VmRSS"),
        "own_mb": _memory("RssAnon"),
        "mapped_mb": _memory("RssFile"),
    }
    found |= _changed(subject)
    subject.close()
    return found


def _changed(subject: Any) -> Row:
    """Store a document and activate at once, then wait until it is indexed."""
    from shared_schema import tool_contract
    from tests.bench.searching import PROJECT

    subject.index.start()
    at_once: list[float] = []
    indexed: list[float] = []
    for number in range(4):
        body = f"# Okapi {number}\n\nThe okapi of house {number} eats leaves.\n"
        create = tool_contract.Create(path=f"zoo/okapi-{number}.md", body=body)
        stored = time.perf_counter()
        subject.save(PROJECT, tool_contract.Store(create=create))
        query = tool_contract.Activate(query=f"what does the okapi of house {number} eat")
        at_once.append(milliseconds(lambda query=query: subject.activate(PROJECT, query)))
        while subject.index.status(PROJECT).lag:
            time.sleep(0.005)
        indexed.append((time.perf_counter() - stored) * 1_000)
    # The first one also finds out what is indexed.
    return {"after_store_ms": median(at_once[1:]), "searchable_ms": median(indexed[1:])}


def _bytes_of(home: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in home.glob(pattern))


def _memory(field: str) -> float:
    """Return one of this process's sizes in MiB, from the kernel's account."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split(f"{field}:")[1].split()[0]) / 1_024


# --- telling ---

_COLUMNS: Final[Sequence[tuple[str, Callable[[Row], str]]]] = (
    ("activate p50", lambda row: f"{row['whole_p50_ms']:.1f}"),
    ("p95", lambda row: f"{row['whole_p95_ms']:.1f}"),
    ("outside the model p50", lambda row: f"{row['outside_p50_ms']:.1f}"),
    ("p95", lambda row: f"{row['outside_p95_ms']:.1f}"),
    ("dense", lambda row: f"{row['stages_ms']['dense']:.1f}"),
    ("words", lambda row: f"{row['stages_ms']['lexical']:.1f}"),
    ("after a store", lambda row: f"{row['after_store_ms']:.0f}"),
    ("searchable, s", lambda row: shown(row["searchable_ms"] / 1_000)),
    ("build, s", lambda row: shown(row["build_s"])),
    ("open, s", lambda row: shown(row["open_ms"] / 1_000)),
    ("memory, MB", lambda row: f"{row['own_mb']:,.0f}"),
    ("mapped, MB", lambda row: f"{row['mapped_mb']:,.0f}"),
    ("index on disk, MB", lambda row: f"{index_mb(row):,.0f}"),
)


def _page(where: Row, packages: dict[str, str], rows: Sequence[Row]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in packages.items())
    line = (
        f"`make bench-search`, {where['date']}; {where['cpus']} CPUs, {where['platform']}, "
        f"Python {where['python']}, load average at the start {where['load']}, {versions}. Milliseconds "
        f"where nothing else is said, {ROUNDS} activations a size, the median of those that are no quantile."
    )
    head = ["units", *(name for name, _ in _COLUMNS)]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [f"{row['units']:,}", *(cell(row) for _, cell in _COLUMNS)]
        lines.append(f"| {' | '.join(cells)} |")
    return f"{textwrap.fill(line, 108)}\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] in (["build"], ["serve"]):
        one_blas_thread()
        part = build if sys.argv[1] == "build" else serve
        print(json.dumps(part(Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        main(sys.argv[1:])
