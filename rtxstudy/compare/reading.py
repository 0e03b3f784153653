"""The user's file as a table. Of a file that is too large to be read whole, rows are drawn while it is read in pieces."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from rtxlib.data.files import existing, read_table, whole
from rtxlib.data.rows import as_text
from rtxlib.errors import InputError

LARGEST = 200_000_000  # bytes of a file that is read whole; about so many bytes are drawn from a larger one
PIECE = 1 << 16  # rows of a Parquet file that are read at once


def read(path: Path | str) -> tuple[pd.DataFrame, str]:
    """The rows of a file as text, and a sentence that says how many were drawn ("" when all are there).

    The index of the table is the line or the row of the file. Raises InputError as :func:`rtxlib.data.files.read_table`.
    """
    path = existing(path)
    share = LARGEST / max(1, path.stat().st_size)
    kind = path.suffix.lower()
    if share >= 1 or kind not in _PIECES:
        return read_table(path), ""
    rng = np.random.default_rng(0)
    try:
        table = pd.concat([piece[rng.random(len(piece)) < share] for piece in _PIECES[kind](path)]).fillna("")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not UTF-8 ({error.reason}); convert the file to UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path.name} cannot be read ({str(error).splitlines()[0]}); copy or export it again.") from error
    if table.empty:
        raise InputError(f"{path.name} holds no rows.")
    size = f"{path.stat().st_size / 1e9:.1f} GB"
    return table, f"{path.name} has {size}: it was read in pieces, and {len(table):,} of its rows were drawn at random."


def _separated(path: Path) -> Iterator[pd.DataFrame]:
    limit = csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = next((line for line in file if line.strip()), "")
            delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
            file.seek(0)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(row for row in reader if row)]
            rows: list[list[str]] = []
            lines: list[int] = []
            for row in reader:
                if row and len(row) != len(names):
                    where = f"The row that ends in line {reader.line_num} of {path.name}"
                    raise InputError(
                        f"{where} has {len(row)} fields and its header {len(names)}; quote texts with separators."
                    )
                if row:
                    rows.append(row)
                    lines.append(reader.line_num)
                if len(rows) == PIECE:
                    yield pd.DataFrame(rows, lines, names, dtype=object)
                    rows, lines = [], []
            yield pd.DataFrame(rows, lines, names, dtype=object)
    except csv.Error as error:
        raise InputError(f"{path.name} is malformed near line {reader.line_num} ({error}); quote its texts.") from error
    finally:
        csv.field_size_limit(limit)


def _lines(path: Path) -> Iterator[pd.DataFrame]:
    rows, numbers = [], []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(f"Line {number} of {path.name} is not JSON ({error}).") from error
            if not isinstance(row, dict):
                raise InputError(f"Line {number} of {path.name} is not a JSON object with named values.")
            rows.append({whole(name): whole(as_text(value)) for name, value in row.items()})
            numbers.append(number)
            if len(rows) == PIECE:
                yield pd.DataFrame(rows, numbers, dtype=object)
                rows, numbers = [], []
    yield pd.DataFrame(rows, numbers, dtype=object)


def _parquet(path: Path) -> Iterator[pd.DataFrame]:
    first = 1
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=PIECE):
            table = batch.to_pandas().map(as_text)
            table.index = range(first, first + len(table))
            first += len(table)
            yield table.astype(object)


_PIECES = {".csv": _separated, ".tsv": _separated, ".jsonl": _lines, ".ndjson": _lines, ".parquet": _parquet}
