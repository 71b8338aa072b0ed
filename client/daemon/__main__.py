"""``python -m client.daemon``: the resident daemon in the foreground."""

from __future__ import annotations

import json
import logging
import os
import sys

from client.config import Settings
from client.daemon.lifecycle import run_daemon
from shared_schema.errors import InterleafError


def main() -> int:
    """Run until stopped; a failure at start is one JSON line on standard error."""
    try:
        return run_daemon(Settings())
    except InterleafError as error:
        sys.stderr.write(json.dumps(error.as_wire()) + "\n")
        return 1


if __name__ == "__main__":
    status = main()
    logging.shutdown()
    sys.stderr.flush()
    # Every thread was asked to end and the store is closed; one that is still inside a model must
    # not keep the process.
    os._exit(status)
