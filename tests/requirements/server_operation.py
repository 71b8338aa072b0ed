"""Backup, migrations, metrics, several processes."""

from __future__ import annotations

from typing import Final

from tests.requirements.form import R

PROMISES: Final[tuple[R, ...]] = (
    R("sync.watch", "one waiter looks for all, and only whom it concerns wakes", "server"),
    R("metrics.exposition", "the exposition parses and holds what an operator needs", "server"),
    R("metrics.labels", "labels hold no ids, paths, queries or addresses", "server"),
    R("metrics.counts", "requests, errors, transactions and merges are counted", "server"),
    R("logs.request_line", "every request is one line of JSON", "server"),
    R("logs.nothing_private", "no text, path, address or token reaches the log", "server"),
)
