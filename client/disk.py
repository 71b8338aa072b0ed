"""What an operating system's refusal means."""

from __future__ import annotations

import errno


def is_full(error: OSError) -> bool:
    """Tell whether there was no room: on the disk, or in what its owner may use of it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
