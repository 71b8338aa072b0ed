"""Every failure as the one error body, whoever raised it."""

from __future__ import annotations

from typing import Final

import structlog
from flask import Flask, Response, g
from werkzeug.exceptions import HTTPException

from org_server.http.observing import new_request_id
from org_server.logs import frames_of
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import API_PREFIX, ErrorAnswer, ErrorBody

_log = structlog.get_logger("interleaf.server")

_BY_STATUS: Final = {
    400: ErrorCode.INVALID_ARGUMENTS,
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.PAYLOAD_TOO_LARGE,
    415: ErrorCode.UNSUPPORTED_MEDIA_TYPE,
}


def install(app: Flask) -> None:
    """Answer every exception of ``app`` in the contract's form."""
    app.register_error_handler(InterleafError, answer)
    app.register_error_handler(HTTPException, _answer_http)
    app.register_error_handler(Exception, _answer_unexpected)


def answer(error: InterleafError) -> Response:
    """Return the response that carries ``error``."""
    g.error_code = error.code
    body = ErrorAnswer(
        error=ErrorBody(
            code=error.code.value,
            message=error.message,
            request_id=g.get("request_id", ""),
            details=error.as_wire()["details"],
        )
    )
    response = Response(body.model_dump_json(), status=error.status, mimetype="application/json")
    if error.code is ErrorCode.UNAUTHENTICATED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def outside(status: int) -> tuple[bytes, list[tuple[str, str]]]:
    """Return body and headers for what the web server refuses before the application sees it."""
    if status >= 500 and status != 501:
        code, message = ErrorCode.INTERNAL_ERROR, None
    elif status == 413:
        code, message = ErrorCode.PAYLOAD_TOO_LARGE, None
    else:
        code, message = ErrorCode.INVALID_ARGUMENTS, "This is no HTTP request that the server understands."
        if status in (414, 431):
            message = "The address or the headers are too long. Send shorter ones."
    error, request_id = InterleafError(code, message), new_request_id()
    _log.warning("refused_before_routing", request_id=request_id, status=status, code=code.value)
    body = ErrorAnswer(
        error=ErrorBody(
            code=code.value, message=error.message, request_id=request_id, details=error.as_wire()["details"]
        )
    )
    headers = [
        ("Content-Type", "application/json"),
        ("X-Request-ID", request_id),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "private, no-cache"),
    ]
    return body.model_dump_json().encode(), headers


def _answer_http(error: HTTPException) -> Response:
    code = _BY_STATUS.get(error.code or 500)
    if code is None:
        return _answer_unexpected(error)
    message = None
    if code is ErrorCode.NOT_FOUND:
        message = f"There is nothing at this address. {API_PREFIX}/openapi.json lists what there is."
    response = answer(InterleafError(code, message))
    response.status_code = error.code or response.status_code
    allowed = getattr(error, "valid_methods", None)
    if code is ErrorCode.METHOD_NOT_ALLOWED and allowed:
        response.headers["Allow"] = ", ".join(sorted(allowed))
    return response


def _answer_unexpected(error: Exception) -> Response:
    request_id = g.get("request_id", "")
    _log.error(
        "unexpected_error",
        request_id=request_id,
        error=type(error).__qualname__,
        frames=frames_of(error.__traceback__),
    )
    return answer(
        InterleafError(
            ErrorCode.INTERNAL_ERROR,
            f"The server failed. The operator finds the cause in its log under {request_id}.",
        )
    )
