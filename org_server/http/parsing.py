"""From raw bytes and query strings to contract models, strictly.

Python's JSON takes NaN and lets the last of two equal keys win, and pydantic lets NUL through,
which PostgreSQL cannot store: all of that is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Never, TypeVar

from pydantic import BaseModel, ValidationError

from org_server.services.validation import invalid
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract

_M = TypeVar("_M", bound=BaseModel)


class NoQuery(Contract):
    """The query of a route that takes none."""


def require_json(mimetype: str, encoding: str | None) -> None:
    """Refuse a body that does not say that it is JSON as it stands: ``unsupported_media_type``."""
    if mimetype != "application/json":
        raise InterleafError(ErrorCode.UNSUPPORTED_MEDIA_TYPE)
    if (encoding or "identity").strip().lower() != "identity":
        raise InterleafError(
            ErrorCode.UNSUPPORTED_MEDIA_TYPE, "Send the body as it is, without a Content-Encoding."
        )


def parse_body(model: type[_M], raw: bytes) -> _M:
    """Return the request body as ``model``; ``invalid_arguments`` names every wrong field."""
    try:
        text = raw.decode()
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError):
        raise InterleafError(ErrorCode.INVALID_ARGUMENTS, "The body is not valid JSON in UTF-8.") from None
    if "\\u0000" in text and _holds_nul(value):
        raise InterleafError(ErrorCode.INVALID_ARGUMENTS, "A text holds the character NUL; take it out.")
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise invalid(error) from None


def parse_query(model: type[_M], pairs: Iterable[tuple[str, str]]) -> _M:
    """Return the query string as ``model``; numbers and enums are read from their text."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise InterleafError(
                ErrorCode.INVALID_ARGUMENTS, "A query parameter is given twice.", details={"fields": [name]}
            )
        check_text(value)
        values[name] = value
    try:
        return model.model_validate(values, strict=False)
    except ValidationError as error:
        raise invalid(error) from None


def check_text(value: str) -> None:
    """Refuse a text from the URL that no database or log should see."""
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InterleafError(ErrorCode.INVALID_ARGUMENTS, "The address holds characters that name nothing.")


def _object(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is given twice")
    return value


def _constant(name: str) -> Never:
    raise ValueError(f"{name} is no JSON")


def _holds_nul(value: Any) -> bool:
    # Without recursion: what the JSON parser nests may be deeper than Python's own calls may go.
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if "\0" in item:
                return True
        elif isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return False
