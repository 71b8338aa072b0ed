"""``make bench-retrieval``: every evaluation set there is through the pipeline, as a table and a plot.

Sets come from the folder in the first argument, and the project's own from ``tests/retrieval/set``.
``--write-docs`` writes table and plot into the documentation too.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from client.config import Settings
from client.services.evaluation.measure_sets import measure_sets
from client.services.evaluation.plot_sets import plot_sets
from client.services.evaluation.report_set import report_of
from client.services.evaluation.run_set import INDEXING, Progress, SetResult
from client.services.evaluation.sets import CORPUS, EvaluationSet, read_set
from tests.bench.figures import machine, versions_used

ROOT: Final = Path(__file__).resolve().parents[2]
OWN: Final = ROOT / "tests" / "retrieval" / "set"
PAGE: Final = ROOT / "docs" / "retrieval.md"
PLOT: Final = ROOT / "docs" / "images" / "retrieval.svg"
BEGIN: Final = "<!-- figures: make bench-retrieval -->\n"
END: Final = "<!-- end of figures -->\n"
BAR: Final = 0.01
"""The whole ranking may be this much nDCG@10 below the best of its stages on a set."""
MIXED: Final = {"xl-vue": (120, 400), "zh-tidb": (120, 350), "en-alerts": (60, 250)}
"""Sets whose samples (queries, documents) make one memory in two languages."""
_COLUMNS: Final = (
    *("set", "queries", "documents", "units", "BM25", "dense", "RRF", "fused", "reranked"),
    *("reranked − best stage", "reranked − RRF", "right document in the answer", "Recall@20", "ms p50 / p95"),
)
_STAGES: Final = ("b1_bm25", "b2_dense", "b3_fused")


def main(arguments: list[str]) -> None:
    """Measure, print the table and keep everything as JSON."""
    write = "--write-docs" in arguments
    folders = [Path(each) for each in arguments if not each.startswith("--")]
    found = sorted(path for folder in folders for path in folder.glob("*") if (path / CORPUS).is_file())
    if not found:
        print("No evaluation sets found; the project's own alone is measured.", file=sys.stderr)
    where, packages = machine(), versions_used()
    sets = [read_set(path) for path in found]
    if (OWN / CORPUS).is_file():
        own = read_set(OWN)
        sets.append(EvaluationSet("own", own.documents, own.queries, own.judgments))
    mixed = mixed_set(sets)
    results = measure_sets([*sets, *mixed], Settings(), progress=_telling)
    reports = [report_of(result) for result in results[: len(sets)]]
    sides = [report_of(side) for result in results[len(sets) :] for side in by_origin(result)]
    text = _page(where, packages, reports, sides)
    print(text)
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    record = {"machine": where | {"packages": packages}, "sets": reports, "mixed": sides}
    (build / "retrieval.json").write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    plot_sets(reports, build / "retrieval.svg")
    if write:
        _write_docs(text, reports)


def mixed_set(sets: Sequence[EvaluationSet]) -> list[EvaluationSet]:
    """Return one set of samples of the sets in `MIXED`, each id with its set's name before it, or none
    where one of them is not there."""
    known = {each.name: each for each in sets}
    if not MIXED.keys() <= known.keys():
        return []
    samples = [known[name].sample(*sizes) for name, sizes in MIXED.items()]
    return [
        EvaluationSet(
            "mixed",
            tuple(
                replace(document, document_id=f"{each.name}|{document.document_id}")
                for each in samples
                for document in each.documents
            ),
            {f"{each.name}|{query}": text for each in samples for query, text in each.queries.items()},
            {
                f"{each.name}|{query}": {
                    f"{each.name}|{document}": grade for document, grade in judged.items()
                }
                for each in samples
                for query, judged in each.judgments.items()
            },
        )
    ]


def by_origin(result: SetResult) -> list[SetResult]:
    """Return a mixed set's result once for each set that its queries come from."""
    return [
        replace(
            result,
            name=f"{name} in {result.name}",
            queries=tuple(query for query in result.queries if query.query_id.startswith(f"{name}|")),
        )
        for name in MIXED
    ]


def _telling(evaluated: EvaluationSet) -> Progress:
    """Print a line at every tenth of what takes long."""
    told = {"": -1}

    def tell(stage: str, done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if stage == INDEXING and tenth != told.get(stage):
            told[stage] = tenth
            print(f"{evaluated.name}: {stage} {done:,} of {total:,}", file=sys.stderr, flush=True)

    return tell


def _page(
    where: Mapping[str, object],
    packages: Mapping[str, str],
    reports: Sequence[dict[str, Any]],
    sides: Sequence[dict[str, Any]],
) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in packages.items() if name != "mcp")
    line = (
        f"`make bench-retrieval`, {where['date']}; {where['cpus']} CPUs, {where['platform']}, Python "
        f"{where['python']}, load average at the start {where['load']}, {versions}; embedder "
        f"`{reports[0]['embedder']}`, reranker `{reports[0]['reranker']}`. nDCG@10; in brackets the 95 % "
        "paired bootstrap interval. Where the load is above the number of CPUs, times say nothing."
    )
    page = f"{textwrap.fill(line, 108)}\n\n{table(reports)}{verdicts(reports)}"
    return (
        f"{page}\nSamples of three sets as one memory in two languages:\n\n{table(sides)}" if sides else page
    )


def table(reports: Sequence[dict[str, Any]]) -> str:
    """Return one row a set: the variants, the whole ranking against its best stage, answers, time."""
    lines = [
        f"| {' | '.join(_COLUMNS)} |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for report in reports:
        variants = report["variants"]
        scores = [variants[name]["ndcg@10"] for name in _STAGES]
        scores.insert(2, report["references"]["rrf"]["ndcg@10"])
        scores.append(variants["b4_reranked"]["ndcg@10"])
        best = max(_STAGES, key=lambda name: variants[name]["ndcg@10"])
        share = report["answers"]["with_a_right_document"]
        latency = report["latency_ms"]
        cells = [
            report["set"],
            f"{report['queries']:,}",
            f"{report['documents']:,}",
            f"{report['units']:,}",
            *(f"{score:.3f}" for score in scores),
            _difference(report["differences"][best]),
            _difference(report["differences"]["rrf"]),
            f"{share:.1%}",
            f"{variants['b4_reranked']['recall@20']:.3f}",
            f"{latency['p50']:.0f} / {latency['p95']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def verdicts(reports: Sequence[dict[str, Any]]) -> str:
    """Return the bars in words: on each set, and on the mean of all."""
    means = {
        name: sum(report["variants"][name]["ndcg@10"] for report in reports) / len(reports)
        for name in (*_STAGES, "b4_reranked")
    }
    below = [
        f"{report['set']} ({gap:+.4f})" for report in reports if (gap := _gap(report["variants"])) < -BAR
    ]
    best = max(_STAGES, key=means.__getitem__)
    found = f"over: {', '.join(below)}" if below else "ok"
    first = f"never more than {BAR} below the best stage of a set: {found}"
    second = (
        f"above the best of them on the mean of all sets: reranked {means['b4_reranked']:.4f}, best stage "
        f"{best} {means[best]:.4f}: {'ok' if means['b4_reranked'] > means[best] else 'over'}"
    )
    return f"\nBars: {first}; {second}.\n"


def _gap(variants: Mapping[str, Mapping[str, float]]) -> float:
    return variants["b4_reranked"]["ndcg@10"] - max(variants[name]["ndcg@10"] for name in _STAGES)


def _difference(found: Mapping[str, Any]) -> str:
    return f"{found['mean']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]"


def _write_docs(text: str, reports: Sequence[dict[str, Any]]) -> None:
    PLOT.parent.mkdir(exist_ok=True)
    plot_sets(reports, PLOT)
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE} holds no place for the figures: {BEGIN.strip()} ... {END.strip()}")
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
