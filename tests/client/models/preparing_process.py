"""A process that prepares the tiny model as any other would.

Run as ``python preparing_process.py WHEELHOUSE MODELS_DIR``; prints the stages that it came through.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from client.models.preparation import prepare_model
from tests.client.models.tiny_model import describe_model


def main(wheelhouse: str, models_dir: str) -> None:
    seen: dict[str, None] = {}
    prepare_model(
        describe_model(Path(wheelhouse)),
        Path(models_dir),
        report=lambda stage, _: seen.setdefault(stage.value),
    )
    print(" ".join(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
