"""A process that prepares the tiny model on a small disk with less and less of it taken.

Run as ``python full_disk_preparing.py WHEELHOUSE DISK folder|index STEP`` by `run_with_own_disk`; prints
one JSON line an attempt, until one succeeds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from client.models import preparation
from client.models.files import find_prepared
from shared_schema.errors import InterleafError
from tests.client.models.tiny_model import describe_model
from tests.client.own_disk import fill, mount


def main(wheelhouse: str, disk: str, source: str, step: str) -> None:
    model, models_dir = describe_model(Path(wheelhouse)), Path(disk)
    mount(models_dir, "4m")
    # Before anything is written the room is looked at; what is shown here is room that goes meanwhile.
    preparation._ROOM_FACTOR = 0  # type: ignore[misc]
    for left in range(0, 2**22, int(step)):
        filler = fill(models_dir, left)
        error: InterleafError | None = None
        try:
            preparation.prepare_model(
                model, models_dir, model_folder=Path(wheelhouse) if source == "folder" else None
            )
        except InterleafError as raised:
            error = raised
        whole = find_prepared(model, models_dir, verify=True) is not None
        kept = {path.name for path in models_dir.iterdir()} - {".prepare.lock", ".downloads", "filler"}
        print(json.dumps([left, error.code.value if error else None, whole, sorted(kept)]), flush=True)
        if error is None:
            return
        filler.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
