"""The one call of an installation in quiet times."""

from __future__ import annotations

import math
import re
import time

from flask import Response

from org_server.http.openapi import Answer, Call, RouteTable
from org_server.services.read_feed import SyncQuery, read_feed
from shared_schema.org_contract import SyncAnswer

routes = RouteTable()

_ONE_TAG = re.compile(r'\s*(?:W/)?"([^"]+)"\s*\Z')


@routes.route(
    "GET",
    "/sync",
    query=SyncQuery,
    answer=SyncAnswer,
    tagged=True,
    summary="Heads of all Projects and events since the cursor; 304 when nothing happened.",
)
def read(call: Call, query: SyncQuery) -> Answer | Response:
    """Tell what is new; ``If-None-Match`` with the last answer's tag stands for its cursor."""
    tag = _ONE_TAG.match(call.headers.get("If-None-Match", ""))
    if query.cursor is None and tag is not None:
        query = query.model_copy(update={"cursor": tag[1]})

    def monotonic() -> float:
        # A process that stops has no time left, so whoever waits is answered before it ends.
        return math.inf if call.stopping.is_set() else time.monotonic()

    answer = read_feed(call.units, call.actor, query, call.watch, monotonic=monotonic)
    if answer is None:
        return Response(status=304, headers={"ETag": f'"{query.cursor}"'})
    return Answer(answer, etag=f'"{answer.cursor}"')
