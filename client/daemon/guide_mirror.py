"""Which guide belongs to which bound directory, in a file that the proxy reads at its start.

The instructions that an agent gets at initialize name the guide, and initialize never waits for the
daemon. The file is a copy; the store stays the truth.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable

import structlog

from shared_schema.daemon_contract import Bindings
from shared_schema.directories import read_guides
from shared_schema.places import Places, make_private

log = structlog.get_logger("interleaf.daemon")


class GuideMirror:
    """Writes ``guides.json`` when it differs from the store. Thread-safe."""

    def __init__(self, places: Places, bindings: Callable[[], Bindings]) -> None:
        self._file = places.guides
        self._bindings = bindings
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Bring the file up to date; one that cannot be written is logged and tried again later."""
        with self._lock:
            wanted = {
                binding.directory: binding.guide_path
                for binding in self._bindings().bindings
                if binding.guide_path is not None
            }
            if dict(read_guides(self._file)) == wanted:
                return
            try:
                self._write(wanted)
            except OSError as error:
                log.warning("guides_not_mirrored", exc_info=error)

    def _write(self, guides: dict[str, str]) -> None:
        make_private(self._file.parent)
        temporary = self._file.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(guides, stream, ensure_ascii=False)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self._file)
