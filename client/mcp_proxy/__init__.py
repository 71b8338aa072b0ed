"""The short-lived stdio proxy between an agent host and the daemon."""

import os
from typing import Final

PARENT: Final = os.getppid()
"""The host's process id, read before anything slow is imported: it may die in the meantime."""
