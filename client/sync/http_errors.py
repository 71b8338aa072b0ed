"""What answers that are no success, and no answers at all, mean as errors of ours."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx
from pydantic import ValidationError

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import ErrorAnswer

_HICCUPS: Final = frozenset({502, 503, 504})


@contextmanager
def network_errors() -> Iterator[None]:
    """Raise what the connection or the body met as ``org_server_unavailable``, without a status."""
    try:
        yield
    except httpx.TransportError as error:
        raise InterleafError(
            ErrorCode.ORG_SERVER_UNAVAILABLE,
            f"The Organization server did not answer ({type(error).__name__}). "
            "Check its address and the network.",
        ) from error
    except (httpx.DecodingError, httpx.InvalidURL) as error:
        raise unreadable(type(error).__name__) from error


def unreadable(what: str) -> InterleafError:
    """Return the error of an answer that is none of an Interleaf server."""
    return InterleafError(
        ErrorCode.ORG_SERVER_UNAVAILABLE,
        f"The answer of the Organization server cannot be read ({what}). "
        "Check that the address is that of an Interleaf server.",
    )


def error_of(response: httpx.Response) -> InterleafError:
    """Return the error that an answer carries, with its status and the server's wish for patience."""
    status = response.status_code
    if response.is_redirect:
        return InterleafError(
            ErrorCode.ORG_SERVER_UNAVAILABLE,
            "The server sent this machine elsewhere, which is not followed with a token at hand. "
            "Sign in with the server's final address.",
        )
    try:
        body = ErrorAnswer.model_validate_json(response.content, extra="ignore").error
        error = InterleafError.from_wire(body.model_dump())
        error.details["request_id"] = body.request_id
    except ValidationError:
        foreign = _foreign_error(status)
        if foreign is None:
            return unreadable(f"status {status} without an error of Interleaf")
        error = foreign
    error.details["http_status"] = status
    if (wish := _retry_after_ms(response)) is not None:
        error.details["retry_after_ms"] = wish
    return error


def _foreign_error(status: int) -> InterleafError | None:
    """What a proxy in between may say for the server; a page of any other kind is no answer."""
    if status == 401:
        return InterleafError(ErrorCode.UNAUTHENTICATED)
    if status == 413:
        return InterleafError(ErrorCode.PAYLOAD_TOO_LARGE)
    if status == 429:
        return InterleafError(ErrorCode.RATE_LIMITED)
    if status >= 500 or status in (408, 425):
        return InterleafError(
            ErrorCode.ORG_SERVER_UNAVAILABLE, f"The Organization server is not well (status {status})."
        )
    return None


def _retry_after_ms(response: httpx.Response) -> int | None:
    value = response.headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return int(value[:9]) * 1000
    moment = _date(value)
    # Taken from the answer's own clock, so that a wrong one on this machine does not matter.
    now = _date(response.headers.get("Date", "")) or time.time()
    return None if moment is None else max(round((moment - now) * 1000), 0)


def _date(value: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def is_hiccup(error: BaseException) -> bool:
    """Tell whether the same request may succeed within the next second."""
    if not isinstance(error, InterleafError) or "retry_after_ms" in error.details:
        return False
    status = error.details.get("http_status")
    if status is None:
        return error.code is ErrorCode.ORG_SERVER_UNAVAILABLE
    return status in _HICCUPS
