"""A package index on this machine that can cut a download short, or hold it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Behaviour:
    """``cut_after``: send so many bytes of a whole wheel, then close. ``hold``: then wait instead.

    ``cut_ranges``: of the rest of a wheel too; ``cut_only``: of wheels whose names begin so.
    """

    cut_after: int | None = None
    cut_ranges: bool = False
    cut_only: str = ""
    ranges: bool = True
    hold: threading.Event | None = None
    requested: list[tuple[str, str | None]] = field(default_factory=list)
    sent_part: threading.Event = field(default_factory=threading.Event)


@contextmanager
def index_of(wheelhouse: Path, behaviour: Behaviour) -> Iterator[str]:
    """Serve the folder's wheels as a simple index; yields the index address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            name = self.path.rstrip("/").split("/")[-1]
            if name.endswith(".whl"):
                self._wheel(wheelhouse / name)
                return
            links = "".join(
                f'<a href="/files/{p.name}">{p.name}</a>'
                for p in wheelhouse.glob("*.whl")
                if p.name.startswith(name.replace("-", "_"))
            )
            self._head(200, len(links), {"Content-Type": "text/html"})
            self.wfile.write(links.encode())

        def _wheel(self, path: Path) -> None:
            data, wanted = path.read_bytes(), self.headers.get("Range")
            behaviour.requested.append((path.name, wanted))
            extra = {"Accept-Ranges": "bytes", "ETag": '"1"'} if behaviour.ranges else {}
            cut = behaviour.cut_after if path.name.startswith(behaviour.cut_only) else None
            if wanted and behaviour.ranges:
                start = int(wanted.removeprefix("bytes=").split("-")[0])
                extra["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
                self._head(206, len(data) - start, extra)
                self.wfile.write(data[start : start + cut if cut and behaviour.cut_ranges else None])
                return
            self._head(200, len(data), extra)
            self.wfile.write(data[:cut])
            self.wfile.flush()
            behaviour.sent_part.set()
            if behaviour.hold is not None:
                behaviour.hold.wait(30)

        def _head(self, status: int, length: int, extra: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(length), **extra}.items():
                self.send_header(key, value)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
    finally:
        if behaviour.hold is not None:
            behaviour.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
