"""The daemon's log: JSON lines in a file of this user alone, with a bounded size.

Nothing that a person or an agent wrote gets in: no bodies, queries or tokens. An exception is
logged by its type and the places it came through, never by its text, which may quote any of them.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from shared_schema.places import make_private

LOG_BYTES: Final = 5 * 1024 * 1024
LOG_FILES: Final = 3
"""Former files kept beside the present one."""

_QUIET: Final = {"waitress.queue": logging.ERROR, "httpx": logging.WARNING, "httpcore": logging.WARNING}


def configure_log(file: Path, *, max_bytes: int = LOG_BYTES) -> logging.Handler:
    """Send structlog and the standard library's logging to ``file``; return the handler, to close."""
    make_private(file.parent)
    handler = PrivateFileHandler(file, max_bytes)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        exception_without_text,
    ]
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(allow=[]), *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for name, level in _QUIET.items():
        logging.getLogger(name).setLevel(level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    return handler


class PrivateFileHandler(RotatingFileHandler):
    """Rotates by size; every file is created with mode 0600, whatever the umask."""

    def __init__(self, file: Path, max_bytes: int) -> None:
        super().__init__(file, maxBytes=max_bytes, backupCount=LOG_FILES, encoding="utf-8", delay=True)

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's signature
        """Go on without the line: a full disk must not fill stderr as well."""


def exception_without_text(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Replace ``exc_info`` by the exception's type and frames."""
    given: Any = event.pop("exc_info", None)
    if not given:
        return event
    if isinstance(given, BaseException):
        error: BaseException | None = given
    else:
        error = given[1] if isinstance(given, tuple) else sys.exc_info()[1]
    if error is not None:
        event.update(describe(error))
    return event


def describe(error: BaseException) -> dict[str, Any]:
    """Return the error's type, what caused it, and ``file:line function`` of its frames."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    found: dict[str, Any] = {"exception": type(error).__qualname__, "frames": _frames(error.__traceback__)}
    if cause is not None:
        found["cause"] = {"exception": type(cause).__qualname__, "frames": _frames(cause.__traceback__)}
    return found


def _frames(trace: TracebackType | None) -> list[str]:
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)[-15:]]
