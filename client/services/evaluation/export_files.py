"""Exports on disk: readable by their owner only, complete or not there, nothing overwritten unasked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from client.disk import is_full
from client.services.evaluation.sets import CORPUS, JUDGMENTS, QUERIES
from shared_schema.errors import ErrorCode, InterleafError

_PARTS = (CORPUS, QUERIES, JUDGMENTS)


def check_free(file: str | None, folder: Path | None, *, force: bool) -> None:
    """Refuse, before anything is measured, what would overwrite something.

    Raises:
        InterleafError: ``already_exists``.
    """
    if force:
        return
    if file is not None and file != "-" and os.path.lexists(file):
        raise _exists(Path(file))
    if folder is not None and folder.is_dir() and any(folder.iterdir()):
        raise _exists(folder)


def write_export(whole: Mapping[str, Any], path: Path, *, force: bool) -> dict[str, Any]:
    """Write a whole export; return where it is and how much it holds.

    Raises:
        InterleafError: ``already_exists``, and ``storage_full`` or ``invalid_arguments`` when it cannot
            be written.
    """
    _write(path, json.dumps(whole, ensure_ascii=False, indent=1) + "\n", force=force)
    return {
        "file": str(path.resolve()),
        "cases": len(whole["cases"]),
        "corpora": len(whole["corpora"]),
        "documents": len(whole["documents"]),
        "bytes": path.stat().st_size,
    }


def write_sets(sets: Mapping[str, Mapping[str, list[Any]]], folder: Path, *, force: bool) -> dict[str, Any]:
    """Write sets into ``folder``: one into itself, several into folders named after their corpora.

    Raises as `write_export` does.
    """
    written = []
    for memory_hash, found in sets.items():
        place = folder if len(sets) == 1 else folder / memory_hash.removeprefix("sha256:")[:12]
        texts = {
            CORPUS: _lines(found["corpus"]),
            QUERIES: _lines(found["queries"]),
            JUDGMENTS: "".join(f"{query}\t{each}\t{grade}\n" for query, each, grade in found["judgments"]),
        }
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _not_written(place, error) from None
        for name, text in texts.items():
            _write(place / name, text, force=force)
        written.append(
            {
                "folder": str(place),
                "corpus": memory_hash,
                "queries": len(found["queries"]),
                "documents": len(found["corpus"]),
            }
        )
    return {"sets": written}


def _lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write(path: Path, text: str, *, force: bool) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            if not force:
                # Taken before it is filled: a rename alone would overwrite what came meanwhile.
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise _not_written(path, error) from None


def _exists(path: Path) -> InterleafError:
    return InterleafError(
        ErrorCode.ALREADY_EXISTS,
        f"{path} is there already; nothing was written to it.",
        details={"path": str(path), "next": "Name another place, or add --force."},
    )


def _not_written(path: Path, error: OSError) -> InterleafError:
    code = ErrorCode.STORAGE_FULL if is_full(error) else ErrorCode.INVALID_ARGUMENTS
    return InterleafError(code, f"{path} cannot be written: {error.strerror}. Name another place.")
