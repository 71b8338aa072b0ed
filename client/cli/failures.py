"""Errors in words: what happened, the stable code, the next step; never a traceback.

stderr holds the words. With ``--json``, stdout holds ``{"error": {"code", "message", "details"}}``
instead. An error that nobody foresaw is written, without any text of its own, to ``logs/cli.log``.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from client.cli.visible import escaped_json, visible, visible_line
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.ids import new_id
from shared_schema.places import find_places, make_private

ERROR_STATUS: Final = 1
USAGE_STATUS: Final = 2


def failed(error: Exception, as_json: bool) -> int:
    """Print an error and return the exit status."""
    known = _as_known(error)
    if as_json:
        _print_json(known)
    else:
        sys.stderr.writelines(f"{line}\n" for line in _lines(known))
    return ERROR_STATUS


def _as_known(error: Exception) -> InterleafError:
    if isinstance(error, InterleafError):
        return error
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        from shared_schema.tool_contract import invalid_arguments

        return invalid_arguments(error)
    return _unforeseen(error)


def usage_failed(error: Any, as_json: bool) -> int:
    """Print how the command is used and what was wrong with it; return the exit status."""
    status = int(error.exit_code)
    message = error.format_message()
    if as_json and status == USAGE_STATUS:
        _print_json(InterleafError(ErrorCode.INVALID_ARGUMENTS, visible_line(message)))
        return status
    context = getattr(error, "ctx", None)
    if message and type(error).__name__ != "NoArgsIsHelpError":
        if context is not None:
            sys.stderr.write(f"{context.get_usage()}\n\n")
        sys.stderr.write(f"error: {visible(message)}\n")
        if context is not None:
            sys.stderr.write(f"next:  {context.command_path} --help\n")
    else:
        # A noun without a verb: its help is the answer.
        sys.stderr.write(f"{message}\n")
    return status


def _print_json(error: InterleafError) -> None:
    text = json.dumps({"error": error.as_wire()}, ensure_ascii=False, default=str)
    sys.stdout.write(escaped_json(text) + "\n")


def _lines(error: InterleafError) -> Iterator[str]:
    yield f"error: {visible(error.message)}"
    for field in error.details.get("fields", []):
        if isinstance(field, dict):
            name, problem = str(field.get("field", "")), str(field.get("problem", ""))
            if problem and problem not in error.message:
                yield f"       {visible_line(name)}: {visible_line(problem)}"
    missing, near = error.details.get("missing"), error.details.get("suggestions")
    if isinstance(missing, list):
        for name in missing:
            found = near.get(name) if isinstance(near, dict) else None
            perhaps = f" (perhaps {', '.join(map(str, found))})" if found else ""
            yield f"       missing: {visible_line(f'{name}{perhaps}')}"
    yield f"code:  {error.code}"
    if step := _next_step(error):
        yield f"next:  {visible(step)}"
    if request := error.details.get("request_id"):
        yield f"id:    {visible_line(str(request))} (in the server's log)"


def _next_step(error: InterleafError) -> str | None:
    """Return what to do now, unless the message has said it."""
    from shared_schema.errors import ERRORS

    if given := error.details.get("next"):
        return str(given)
    if error.code is ErrorCode.INTERNAL_ERROR and "id" not in error.details:
        return None
    if error.code in (ErrorCode.INVALID_ARGUMENTS, ErrorCode.INVALID_PATH):
        return None  # Their remedies point at details, which stand in the words above.
    remedy = ERRORS[error.code].remedy
    said = "interleaf " in error.message or remedy.rstrip(".") in error.message
    return None if said else remedy


def _unforeseen(error: Exception) -> InterleafError:
    incident = new_id("evt")
    try:
        log = _write_log(incident, error)
        where = f"Look for {incident} in {log}"
    except OSError as problem:
        where = f"The log could not be written ({problem.strerror})"
    # Only the type: an exception's text may quote memory or a token.
    return InterleafError(
        ErrorCode.INTERNAL_ERROR,
        f"The command failed unexpectedly ({type(error).__name__}). {where}",
        details={"id": incident, "next": "Try once more; report it with that entry of the log."},
    )


def _write_log(incident: str, error: Exception) -> Path:
    log = find_places().log.with_name("cli.log")
    make_private(log.parent.parent)
    make_private(log.parent)
    frames = [
        f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
    ]
    entry = {"at": int(time.time() * 1000), "id": incident, "exception": type(error).__qualname__}
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
        stream.write(json.dumps({**entry, "frames": frames[-15:]}) + "\n")
    return log
