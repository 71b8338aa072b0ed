"""What every part of the HTTP API uses."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from shared_schema import limits
from shared_schema.memory import Contract

API_PREFIX: Final = "/api/v1"
SNAPSHOT_MEDIA_TYPE: Final = "application/x-ndjson"
EMPTY_REF: Final = "none"
"""What stands in ``If-Match`` and ``ETag`` for a ref without any commit."""
DEFAULT_GUIDE_PATH: Final = "CLUMSIES.md"

Name = Annotated[str, Field(min_length=1, max_length=limits.NAME_CHARACTERS)]
Email = Annotated[str, Field(min_length=3, max_length=limits.EMAIL_CHARACTERS, pattern=r"^[^@\s]+@[^@\s]+$")]
Id = Annotated[str, Field(min_length=1, max_length=limits.IDENTIFIER_CHARACTERS)]


class Role(StrEnum):
    """A role in the Organization or in one Project, from most to least."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class ErrorBody(Contract):
    """The error of every answer that is not a success."""

    code: str
    message: str
    request_id: str
    details: dict[str, object] | list[object] = Field(default_factory=dict)


class ErrorAnswer(Contract):
    """Envelope of an error."""

    error: ErrorBody
