"""A Project's whole view in one answer of unbounded length."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from flask import Response

from org_server.http import conditional
from org_server.http.openapi import Call, RouteTable
from org_server.services.snapshot import Snapshot
from shared_schema.org_contract import SNAPSHOT_MEDIA_TYPE

routes = RouteTable()

_CHUNK = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
"""zlib's way to ask for the gzip format."""


@routes.route(
    "GET",
    "/projects/<project_id>/snapshot",
    media_type=SNAPSHOT_MEDIA_TYPE,
    summary="The newest commit and every visible resource, one a line (NDJSON).",
)
def read(call: Call, project_id: str) -> Response:
    """Stream a snapshot; its tag is the ref's, so an unchanged Project answers 304."""
    snapshot = Snapshot(call.units, call.actor, project_id)
    etag = conditional.ref_etag(snapshot.header.ref.commit_id)
    if conditional.matches(call.headers.get("If-None-Match"), etag):
        snapshot.close()
        return Response(status=304, headers={"ETag": etag})
    compress = accepts_gzip(call.headers.get("Accept-Encoding"))
    response = Response(_Stream(snapshot, compress), mimetype=SNAPSHOT_MEDIA_TYPE)
    response.headers["ETag"] = etag
    response.headers["Vary"] = "Accept-Encoding"
    if compress:
        response.headers["Content-Encoding"] = "gzip"
    return response


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Tell whether the caller takes gzip (RFC 9110, 12.5.3): named, and not with a weight of 0."""
    for item in (accept_encoding or "").split(","):
        name, _, parameters = item.partition(";")
        if name.strip().lower() == "gzip":
            weight = parameters.replace(" ", "").lower().removeprefix("q=")
            return weight.strip("0.") != "" or not parameters.strip()
    return False


class _Stream:
    """The body; the server closes it at the end, or when the caller has gone."""

    def __init__(self, snapshot: Snapshot, compress: bool) -> None:
        self._snapshot = snapshot
        self._compress = compress

    def __iter__(self) -> Iterator[bytes]:
        packer = zlib.compressobj(wbits=_GZIP) if self._compress else None
        pending = bytearray()
        for line in self._snapshot:
            pending += packer.compress(line) if packer else line
            if len(pending) >= _CHUNK:
                yield bytes(pending)
                pending.clear()
        if packer:
            pending += packer.flush()
        if pending:
            yield bytes(pending)

    def close(self) -> None:
        self._snapshot.close()
