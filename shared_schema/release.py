"""The release version, in a module that costs nothing to import."""

from typing import Final

RELEASE: Final = "0.1.0"
