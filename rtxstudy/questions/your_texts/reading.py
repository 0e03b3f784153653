"""The user's file as a table. Of a file that is too large to be read whole, rows are drawn while it is read in pieces."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from rtxlib.data.files import SUFFIXES, column_names, existing, json_row, of_parquet, read_values
from rtxlib.data.separated import read_rows, require_apart, separator
from rtxlib.errors import InputError

LARGEST = 200_000_000  # bytes of a file that is read whole; about so many bytes are drawn from a larger one
PIECE = 1 << 16  # rows that are read at once


def read(path: Path | str) -> tuple[pd.DataFrame, str]:
    """The rows of a file, and a sentence that says how many were drawn ("" when all are there).

    Values and index are those of :func:`rtxlib.data.files.read_values`. Raises InputError as it does.
    """
    path = existing(path)
    share = LARGEST / max(1, path.stat().st_size)
    if share >= 1 or path.suffix.lower() not in SUFFIXES:
        return read_values(path), ""
    try:
        table = _drawn(path, share)
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not UTF-8 ({error.reason}); convert the file to UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path.name} cannot be read ({str(error).splitlines()[0]}); copy or export it again.") from error
    if table.empty:
        raise InputError(f"{path.name} holds no rows.")
    size = f"{path.stat().st_size / 1e9:.1f} GB"
    return table, f"{path.name} has {size}: it was read in pieces, and {len(table):,} of its rows were drawn at random."


def _drawn(path: Path, share: float) -> pd.DataFrame:
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv"):
        return _sample(_parquet(path) if kind == ".parquet" else _lines(path), share)
    with path.open(encoding="utf-8-sig", newline="") as file:
        delimiter = separator(file, kind)
    try:
        return _sample(_separated(path, delimiter), share)
    except InputError:
        if delimiter != "\t":
            raise
        return _sample(_separated(path, delimiter, quoted=False), share)  # as rtxlib.data.files reads a smaller file


def _sample(pieces: Iterable[pd.DataFrame], share: float) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.concat([piece[rng.random(len(piece)) < share] for piece in pieces] or [pd.DataFrame()])


def _separated(path: Path, delimiter: str, quoted: bool = True) -> Iterator[pd.DataFrame]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = read_rows(file, delimiter, path.name, quoted)
        if (header := next(rows, None)) is None:
            return
        names = column_names(header.fields, path.name)
        while piece := list(itertools.islice(rows, PIECE)):
            require_apart(piece, path.name)
            yield pd.DataFrame([row.fields for row in piece], [row.line for row in piece], names, dtype=object)


def _lines(path: Path) -> Iterator[pd.DataFrame]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
        while piece := dict(itertools.islice(lines, PIECE)):
            rows = [json_row(line, f"Line {number} of {path.name}") for number, line in piece.items()]
            yield pd.DataFrame(rows, list(piece), dtype=object)


def _parquet(path: Path) -> Iterator[pd.DataFrame]:
    first = 1
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=PIECE):
            table = of_parquet(batch).astype(object)
            table.columns = list(map(str, table.columns))  # as read_table has them
            table.index = pd.RangeIndex(first, first + len(table), name="row")
            first += len(table)
            yield table

