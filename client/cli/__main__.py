"""``python -m client.cli``: the command line where no ``interleaf`` is on the path."""

import sys

from client.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
