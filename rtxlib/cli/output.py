"""Writing the files that a command's ``--out`` names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rtxlib.atomic import replacing
from rtxlib.errors import InputError, disk_full

FORMATS = {  # ending → how a table is written; each gives the same bytes for the same table
    "csv": lambda table, file: table.to_csv(file, index=False, lineterminator="\n"),
    "jsonl": lambda table, file: table.to_json(file, orient="records", lines=True, force_ascii=False),
    "parquet": lambda table, file: table.to_parquet(file, index=False),
}


def refuse_to_replace(file: str, out: Path | str) -> None:
    """Raise InputError when ``--out`` is the file that is read, under whatever name."""
    if os.path.realpath(out) == os.path.realpath(file):
        raise InputError(f"--out would replace {file}, which is read; name another file.")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a temporary file that replaces ``path`` once it is complete. A failure leaves nothing behind.

    Raises InputError when the disk is full or the place cannot be written to.
    """
    try:
        with replacing(path) as temporary:
            write(temporary)
    except OSError as error:
        reason = "the disk is full" if disk_full(error) else error.strerror or error
        raise InputError(f"{path} could not be written: {reason}.") from error
