"""Writing what a person asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rtxlib.errors import InputError, disk_full

FORMATS = {  # ending -> how a table is written; each gives the same bytes for the same table
    "csv": lambda table, file: table.to_csv(file, index=False, lineterminator="\n"),
    "jsonl": lambda table, file: table.to_json(file, orient="records", lines=True, force_ascii=False),
    "parquet": lambda table, file: table.to_parquet(file, index=False),
}


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path`` that takes its place when it is whole; otherwise nothing is left.

    Raises InputError when the disk is full or the place cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = "the disk is full" if disk_full(error) else error.strerror or error
        raise InputError(f"{path} could not be written: {reason}.") from error
