"""Logging: one JSON object a line on stderr, never with bodies, tokens or queries.

What libraries log goes the same way, as its template without the values: waitress would name paths,
SQLAlchemy parameters. Of an exception the type and the places are told, never its text.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

import structlog

from shared_schema.errors import InterleafError

_FRAMES: Final = 12


def configure(level: str) -> None:
    """Log from ``level`` on (``info`` has one line a request)."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    # Below a warning libraries tell of single requests, and waitress of a path in each.
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING))


def frames_of(trace: TracebackType | None) -> list[str]:
    """Return where it happened: messages and local variables may hold bodies and tokens."""
    found = traceback.extract_tb(trace)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in found[-_FRAMES:]]


class JsonFormatter(logging.Formatter):
    """Formats the records of libraries. ``values``: whether their arguments are told, too."""

    def __init__(self, *, values: bool = False) -> None:
        super().__init__()
        self._values = values

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        # waitress puts the path into the template itself, at its end.
        line: dict[str, object] = {
            "event": record.getMessage() if self._values else str(record.msg).partition(" /")[0],
            "logger": record.name,
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = type(error).__qualname__
            line["frames"] = frames_of(record.exc_info[2])
            if isinstance(error, InterleafError):
                line["message"] = error.message
        return json.dumps(line, ensure_ascii=False)
