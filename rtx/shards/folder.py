"""The shards of a folder, and those that are finished."""

from __future__ import annotations

import os
from pathlib import Path

from rtx.shards.jsonl import JsonlShard
from rtx.shards.parquet import ParquetShard
from rtxlib.checksums import regular
from rtxlib.data.files import SUFFIXES
from rtxlib.errors import InputError, shortened

COARSE = 2_000_000_000  # nanoseconds: some file systems keep times of change to two seconds
KINDS = {".parquet": ParquetShard, ".jsonl": JsonlShard, ".ndjson": JsonlShard}


def opened(path: Path) -> ParquetShard | JsonlShard:
    """A shard, by the ending of its name. Raises InputError when it cannot be read."""
    try:
        return KINDS[path.suffix.lower()](regular(path))
    except FileNotFoundError as error:
        raise InputError(f"{path.name} is gone, or a link to nothing.") from error


def shards(folder: Path) -> list[str]:
    """The names of the Parquet or JSONL files of a folder, sorted.

    Subfolders are not read, nor hidden files and those that begin with "_", as Spark's _SUCCESS.

    Raises InputError when there is no shard, or when there are tables of several kinds.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not entry.is_dir() and entry.name[0] not in "._")
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}); see to its permissions.") from error
    tables = {name: Path(name).suffix.lower() for name in names if Path(name).suffix.lower() in SUFFIXES}
    kinds = sorted({*tables.values()})
    if len(kinds) > 1:
        some = " and ".join(shortened(next(name for name in tables if tables[name] == kind), 60) for kind in kinds[:2])
        raise InputError(f"{folder} holds files of several kinds, such as {some}; keep shards of one kind in a folder.")
    if not kinds or kinds[0] not in KINDS:
        raise InputError(f"{folder} is a folder without shards; a shard is a file that ends in {', '.join(KINDS)}.")
    return list(tables)


def finished(source: Path, out: Path) -> bool:
    """Whether the shard ``source`` is written to ``out`` and has not changed since. Both files have the same time of change."""
    try:
        return abs(out.stat().st_mtime_ns - source.stat().st_mtime_ns) < COARSE
    except FileNotFoundError:
        return False
