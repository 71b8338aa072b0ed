"""Keyset pages: a cursor holds the sort key of the last item, so nothing is skipped or repeated."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import Field

from shared_schema import limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.memory import Contract

_T = TypeVar("_T")


class PageQuery(Contract):
    """The query of every list."""

    limit: int = Field(default=limits.PAGE_DEFAULT, ge=1, le=limits.PAGE_MAX)
    cursor: str | None = Field(default=None, max_length=4 * limits.IDENTIFIER_CHARACTERS)

    def after(self, listing: str, *types: type) -> tuple[Any, ...] | None:
        """Return the sort key after which the page starts; None at the beginning.

        Raises ``invalid_arguments`` for a cursor of another listing.
        """
        if self.cursor is None:
            return None
        try:
            name, *key = json.loads(base64.urlsafe_b64decode(self.cursor.encode("ascii")))
        except (ValueError, TypeError, binascii.Error, RecursionError):
            raise _foreign() from None
        if name != listing or [type(part) for part in key] != list(types):
            raise _foreign()
        if any(type(part) is int and not 0 <= part < 2**63 for part in key):
            raise _foreign()
        if any(isinstance(part, str) and ("\0" in part or not _encodes(part)) for part in key):
            raise _foreign()
        return tuple(key)

    def cut(
        self, listing: str, rows: Sequence[_T], key: Callable[[_T], tuple[Any, ...]]
    ) -> tuple[Sequence[_T], str | None]:
        """Return the page and the next cursor from up to ``limit + 1`` rows."""
        if len(rows) <= self.limit:
            return rows, None
        page = rows[: self.limit]
        text = json.dumps([listing, *key(page[-1])], separators=(",", ":"))
        return page, base64.urlsafe_b64encode(text.encode()).decode()


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _foreign() -> InterleafError:
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS, "This cursor is not one of this list. Start again without a cursor."
    )
