"""Every bound that both sides agree on, with its unit, in one place."""

from typing import Final

MIB: Final = 1024 * 1024

BODY_BYTES: Final = 1 * MIB
"""A resource body, in UTF-8 bytes."""
DESCRIPTION_CHARACTERS: Final = 2_000
PATH_BYTES: Final = 512
SEGMENT_BYTES: Final = 255

QUERY_CHARACTERS: Final = 8_192
STATE_BYTES: Final = 64 * 1024
LOAD_IDS: Final = 100
REPLACEMENTS: Final = 200
IDENTIFIER_CHARACTERS: Final = 1_024
"""An id or a path as it stands in a request; longer text names nothing."""

FRAGMENTS: Final = 12
FRAGMENT_TOKENS: Final = 2_400
"""Tokens of the embedder's tokenizer that one activate may return."""

REQUEST_BYTES: Final = 4 * MIB
"""An HTTP request to the Organization server."""
UPLOAD_OPERATIONS: Final = 50
"""Operations in one upload of a Draft."""
PAGE_MAX: Final = 200
PAGE_DEFAULT: Final = 50
LONG_POLL_SECONDS: Final = 25
REVIEW_DRAFTS: Final = 100
TITLE_CHARACTERS: Final = 300
COMMENT_CHARACTERS: Final = 10_000
NAME_CHARACTERS: Final = 120
"""The name of an Organization, a Project or a user."""
EMAIL_CHARACTERS: Final = 254

IMPORT_DOCUMENTS: Final = 100
"""Documents of one batch of an import."""

TOOL_LIST_BYTES: Final = 4_096
INSTRUCTIONS_CHARACTERS: Final = 3_000
