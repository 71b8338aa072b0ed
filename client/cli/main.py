"""Entry point of ``interleaf``; only the standard library is imported before it is known what for.

An agent host starts ``interleaf mcp serve`` once a session and waits for it, so that command goes
straight to the proxy, past everything that a person's command needs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_HELP = {"--help", "-h"}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    0: done. 1: an error with a stable code. 2: the command was not understood. 130: Ctrl-C.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:2] == ["mcp", "serve"] and not _HELP & set(given):
        from client.mcp_proxy.server import main as serve

        serve(given[2:])
    from client.cli.app import execute

    return execute(given)
