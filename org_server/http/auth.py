"""The bearer token of a request."""

from __future__ import annotations

import re
from typing import Final

from werkzeug.datastructures import Headers

from org_server.domain.permissions import Actor
from org_server.services.tokens import authenticate
from org_server.store.unit_of_work import UnitOfWorkFactory
from shared_schema.errors import ErrorCode, InterleafError

_BEARER: Final = re.compile(r"bearer +(\S+) *", re.IGNORECASE)


def actor_of(headers: Headers, units: UnitOfWorkFactory) -> Actor:
    """Return who sends the request; ``unauthenticated`` without a good token."""
    found = _BEARER.fullmatch(headers.get("Authorization", ""))
    if found is None:
        raise InterleafError(
            ErrorCode.UNAUTHENTICATED, "Send Authorization: Bearer TOKEN, with a token of this server."
        )
    return authenticate(units, found[1])
