"""Long lists of parameters in batches that every database takes in one statement."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

_T = TypeVar("_T")

BATCH: Final = 400
"""Parameters of one IN list; SQLite's limit may be 999 for a whole statement."""


def batches(items: Iterable[_T], size: int = BATCH) -> Iterator[list[_T]]:
    """Yield the items in lists of at most ``size``."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
