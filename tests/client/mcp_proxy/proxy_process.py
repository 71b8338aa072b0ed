"""A real proxy process on pipes, for tests whose subject is the process."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

WAIT_SECONDS = 30.0
"""A bound for a busy machine, never an expectation."""
INITIALIZE = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class ProxyProcess:
    """Speaks JSON-RPC lines with ``python -m client.mcp_proxy``; keeps every line of its stdout."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._next_id = 0

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def next_answer(self) -> dict[str, Any] | None:
        return self._answers.get(timeout=WAIT_SECONDS)

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        self.send_line(json.dumps(message | ({"params": params} if params is not None else {})).encode())
        answer = self.next_answer()
        assert answer is not None
        assert answer["id"] == self._next_id
        return answer

    def initialize(self, version: str = "2025-11-25") -> dict[str, Any]:
        answer = self.request("initialize", INITIALIZE | {"protocolVersion": version})
        self.send_line(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer

    def call(self, op: dict[str, Any]) -> dict[str, Any]:
        answer = self.request("tools/call", {"name": "memory", "arguments": {"op": op}})
        result: dict[str, Any] = answer["result"]
        return result

    def error_code(self, op: dict[str, Any]) -> str:
        result = self.call(op)
        assert result["isError"], result
        return str(result["structuredContent"]["error"]["code"])

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()


@contextmanager
def proxy(home: Path, *arguments: str, cwd: Path | None = None) -> Iterator[ProxyProcess]:
    process = subprocess.Popen(
        [sys.executable, "-m", "client.mcp_proxy", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**os.environ, "INTERLEAF_HOME": str(home)},
    )
    speaking = ProxyProcess(process)
    try:
        yield speaking
    finally:
        process.kill()
        process.wait(WAIT_SECONDS)
        speaking._reader.join(WAIT_SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
