from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PRODUCT = """
import sys, threading
import client.daemon.lifecycle
from client.frugal import one_blas_thread
assert "numpy" not in sys.modules, "it would have started its threads already"
{call}
import numpy
large = numpy.ones((3_000, 3_000), dtype=numpy.float32)
large @ large
import os
print(len(os.listdir("/proc/self/task")))
"""


def threads(call: str, **environment: str) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS")}
    command = [sys.executable, "-c", _PRODUCT.format(call=call)]
    run = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(sys.platform != "linux" or (os.cpu_count() or 1) < 2, reason="counts Linux's threads")
def test_the_daemons_products_use_one_thread_unless_the_user_says_otherwise() -> None:
    assert threads("pass") > 1, "else the rest shows nothing"
    assert threads("one_blas_thread()") == 1
    assert threads("one_blas_thread()", OPENBLAS_NUM_THREADS="2") == 2
