"""The daemon as a WSGI application: one route, one error handler."""

from __future__ import annotations

import hmac
import time
from typing import Final

import structlog
from flask import Flask, Response, request
from pydantic_core import to_json
from werkzeug.exceptions import HTTPException

from client.daemon.dispatch import Dispatcher
from shared_schema.daemon_contract import METHODS
from shared_schema.errors import ERRORS, ErrorCode, InterleafError
from shared_schema.ids import new_id
from shared_schema.limits import MIB

REQUEST_BYTES: Final = 16 * MIB
"""A call: a body of 1 MiB may be six times that in JSON, and an update names text twice."""

_HTTP_CODES: Final = {
    404: ErrorCode.NOT_FOUND,
    405: ErrorCode.METHOD_NOT_ALLOWED,
    413: ErrorCode.PAYLOAD_TOO_LARGE,
}

log = structlog.get_logger("interleaf.daemon")


def create_app(dispatcher: Dispatcher, *, token: str | None = None) -> Flask:
    """Return the application; with ``token`` every call has to carry it (where a port is used)."""
    app = Flask("interleaf", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = REQUEST_BYTES

    @app.post("/rpc/<method>")
    def rpc(method: str) -> Response:
        _check_token(token)
        started = time.perf_counter()
        answer = dispatcher.call(method, request.get_data(cache=False))
        log.info("call", method=method, ms=round((time.perf_counter() - started) * 1000, 1))
        return Response(answer, mimetype="application/json")

    @app.errorhandler(Exception)
    def failed(error: Exception) -> Response:
        known = as_known_error(error)
        method = (request.view_args or {}).get("method")
        # Only names that are ours get into the log.
        log.info("refused", method=method if method in METHODS else None, code=known.code.value)
        return Response(
            b'{"error":' + to_json(known.as_wire()) + b"}", status=known.status, mimetype="application/json"
        )

    return app


def as_known_error(error: Exception) -> InterleafError:
    """Turn any failure into one with a stable code; an unexpected one is logged under an id."""
    if isinstance(error, InterleafError):
        return error
    if isinstance(error, HTTPException):
        code = _HTTP_CODES.get(error.code or 0, ErrorCode.INVALID_ARGUMENTS)
        return InterleafError(code, ERRORS[code].remedy)
    incident = new_id("evt")
    log.error("internal_error", id=incident, exc_info=error)
    return InterleafError(
        ErrorCode.INTERNAL_ERROR,
        f"The daemon failed; its log names {incident}. Nothing of a refused write was kept. Try once more.",
        details={"id": incident},
    )


def _check_token(token: str | None) -> None:
    if token is None:
        return
    given = request.headers.get("Authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise InterleafError(ErrorCode.UNAUTHENTICATED, "The call does not carry the daemon's local token.")
