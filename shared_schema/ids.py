"""Identifiers: a prefix and a UUIDv7 (RFC 9562) in lower-case hex, made once and never changed.

Whoever creates an object allocates its id: the client ``mem``, ``drf`` and ``lop``; the server
``prj``, ``rev``, ``cmt``, ``usr``, ``rcn``. Order never depends on an id. Ids of older systems
(``ctx_``, ``rul_``, ``wfl_``) are opaque: accepted everywhere, never rewritten.
"""

import os
import re
import time
from typing import Final, Literal

Prefix = Literal[
    "mem", "drf", "lop", "prj", "rev", "cmt", "usr", "rcn", "tok", "run", "sta", "org", "ins", "inb", "evt",
    "evc", "evr",
]  # fmt: skip

RESOURCE_PREFIXES: Final = ("mem", "ctx", "rul", "wfl")

_ID = re.compile(r"[a-z]{3}_[A-Za-z0-9_.-]{1,120}\Z")
_RESOURCE_ID = re.compile(rf"(?:{'|'.join(RESOURCE_PREFIXES)})_[A-Za-z0-9_.-]{{1,120}}\Z")


def new_id(prefix: Prefix) -> str:
    """Return a fresh id such as ``mem_0192f0c4…`` (prefix, underscore, 32 hex digits)."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & (2**48 - 1)) << 80
    value |= 0x7 << 76
    value |= (random >> 68 & 0xFFF) << 64
    value |= 0b10 << 62
    value |= random & (2**62 - 1)
    return f"{prefix}_{value:032x}"


def is_id(text: str, prefix: Prefix) -> bool:
    """Tell whether ``text`` has the form of an id with this prefix; its body is opaque."""
    return text.startswith(f"{prefix}_") and _ID.match(text) is not None


def is_resource_id(text: str) -> bool:
    """Tell whether ``text`` has the form of a resource id, older prefixes included."""
    return _RESOURCE_ID.match(text) is not None
