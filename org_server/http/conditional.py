"""Entity tags and preconditions (RFC 9110, section 13).

The tag of a single object is ``"<version>-<hash>"`` (or ``"<hash>"`` where it has no version): the
hash changes with anything in the answer, and the version alone is what ``If-Match`` compares, so a
client may send back the whole tag or the bare number.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import EMPTY_REF

_VERSION: Final = re.compile(r'(?:W/)?"?([0-9]{1,18})(?:-[0-9a-f]{16})?"?')
_REF: Final = re.compile(rf'"([0-9a-f]{{64}}|{EMPTY_REF})"')
_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


def etag_of(body: bytes, version: int | None = None) -> str:
    """Return the quoted tag of an answer."""
    digest = hashlib.sha256(body).hexdigest()[:16]
    return f'"{digest}"' if version is None else f'"{version}-{digest}"'


def ref_etag(commit_id: str | None) -> str:
    """Return the quoted tag of a ref; an authority without any commit has ``"none"``."""
    return f'"{commit_id or EMPTY_REF}"'


def matches(if_none_match: str | None, etag: str) -> bool:
    """Tell whether the caller's ``If-None-Match`` names the tag, by weak comparison."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in _TAG.findall(if_none_match)


def version_from(if_match: str | None) -> int:
    """Return the version that ``If-Match`` names.

    Raises ``precondition_required`` without the header and ``invalid_arguments`` when it holds no
    version.
    """
    if if_match is None or not if_match.strip():
        raise InterleafError(
            ErrorCode.PRECONDITION_REQUIRED, "Send If-Match with the version (or the ETag) that you read."
        )
    found = _VERSION.fullmatch(if_match.strip())
    if found is None:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            "If-Match holds no version; send the number, or the ETag as it was answered.",
        )
    return int(found[1])


def ref_from(if_match: str | None) -> str | None:
    """Return the commit id that ``If-Match`` names; None for ``"none"``, a ref without commits.

    Raises ``precondition_required`` without the header and ``invalid_arguments`` when it is no
    quoted commit id.
    """
    if if_match is None or not if_match.strip():
        raise InterleafError(
            ErrorCode.PRECONDITION_REQUIRED,
            "Send If-Match with the quoted commit id of the ref that you read.",
        )
    found = _REF.fullmatch(if_match.strip())
    if found is None:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f'If-Match names no ref; send the quoted commit id, or "{EMPTY_REF}" for a ref without commits.',
        )
    return None if found[1] == EMPTY_REF else found[1]
