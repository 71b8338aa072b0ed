"""The ``Idempotency-Key`` header: a request that may be sent again after a lost answer.

The field is that of the IETF's draft; its value is taken as it stands, quoted or not.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any, Final

from flask import Response, request

from org_server.domain.permissions import Actor
from org_server.http.openapi import Route
from org_server.services.repeated_requests import Done, RequestKey, once
from org_server.store.unit_of_work import UnitOfWorkFactory
from shared_schema.errors import ErrorCode, InterleafError

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
_KEY: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


def key_of(route: Route, body: bytes) -> RequestKey | None:
    """Return the key that came with the current request; None without one, or where none is taken.

    Raises ``invalid_arguments`` for what is no key.
    """
    key = request.headers.get(HEADER)
    if key is None or not route.keyed:
        return None
    if _KEY.fullmatch(key) is None:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS, f"{HEADER} holds 1 to 255 printable ASCII characters, e.g. a UUID."
        )
    parts = (request.method, request.full_path, request.headers.get("If-Match", ""))
    digest = hashlib.sha256(json.dumps(parts).encode() + b"\n" + body)
    return RequestKey(key, digest.hexdigest())


def answer_once(
    route: Route,
    units: UnitOfWorkFactory,
    actor: Actor,
    key: RequestKey,
    respond: Callable[[UnitOfWorkFactory], Response],
) -> Response:
    """Return the answer of ``respond``, or the one that the first request with this key got."""
    first: list[Response] = []

    def act(joined: UnitOfWorkFactory) -> Done:
        response = respond(joined)
        first.append(response)
        return _done(route, response)

    done, repeated = once(units, actor, key, act)
    if not repeated:
        return first[0]
    response = Response(done.body, status=done.status, mimetype="application/json")
    if done.etag is not None:
        response.headers["ETag"] = done.etag
    response.headers[REPLAYED] = "true"
    return response


def _done(route: Route, response: Response) -> Done:
    text = response.get_data(as_text=True)
    etag = response.headers.get("ETag")
    held: Any = json.loads(text) if text else {}
    if route.secret_id is not None:
        secret_id: Any = held
        for part in route.secret_id:
            secret_id = secret_id[part]
        return Done(response.status_code, None, etag, secret_id=secret_id)
    project_id = held.get("project_id")
    return Done(response.status_code, text, etag, project_id=project_id)
