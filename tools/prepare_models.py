"""Prepares the default model in the cache, so that no test has to wait for a download."""

from __future__ import annotations

from client.models.catalog import MULTILINGUAL_E5_SMALL
from client.models.files import default_models_dir, find_prepared
from client.models.preparation import prepare_model
from client.models.progress import Stage


def main() -> None:
    """Prepare it and say so; a prepared one is found at once."""
    folder = default_models_dir()
    if find_prepared(MULTILINGUAL_E5_SMALL, folder) is None:
        print(f"preparing the model in {folder}", flush=True)
    shown: list[Stage] = []

    def report(stage: Stage, _bytes: int) -> None:
        if shown[-1:] != [stage]:
            shown.append(stage)
            print(f"  {stage.value}", flush=True)

    prepare_model(MULTILINGUAL_E5_SMALL, folder, report=report)


if __name__ == "__main__":
    main()
