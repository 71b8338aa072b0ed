"""A TCP relay that counts what passes in either direction."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Relay:
    """Listens on a free port and passes everything on to ``target`` on this machine."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sent = self._received = 0

    def counts(self) -> tuple[int, int]:
        """Return the bytes that went to the target and those that came back."""
        return self._sent, self._received

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                for source, sink, outward in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._pump, args=(source, sink, outward), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, outward: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if outward:
                    self._sent += len(data)
                else:
                    self._received += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
