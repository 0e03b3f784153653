"""A shard in Parquet, read and written a piece at a time. Its columns keep their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from rtx.shards.piece import BYTES, ROWS, Columns, require_free
from rtxlib.data.files import require_text
from rtxlib.data.rows import as_text
from rtxlib.errors import InputError

# Without a buffer of its own, and with pre_buffer, pyarrow reads a whole row group at once, which may be the whole file.
BUFFER = 1 << 20  # bytes of each column
FEW = 64  # rows that are read at once


class ParquetShard:
    """A Parquet file. A piece is the number of its first row, from 1, and a record batch.

    Raises InputError when it cannot be read, here and while its pieces are read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._sentence():
            self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER)
        self.columns = [field.name for field in self.file.schema_arrow]

    def close(self) -> None:
        self.file.close()

    def pieces(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        metadata, begin, rows, held = self.file.metadata, 1, 0, 0
        waiting: list[pa.RecordBatch] = []
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        row = max([group.total_byte_size / group.num_rows for group in groups if group.num_rows], default=1)
        few = max(1, min(FEW, int(BYTES / max(row, 1))))  # a row may be far larger than its share of the file
        batches = self.file.iter_batches(batch_size=few)
        while True:
            with self._sentence():
                batch = next(batches, None)
            added, size = (0, 0) if batch is None else (len(batch), batch.nbytes)
            if waiting and (batch is None or rows + added > ROWS or held + size > BYTES):
                joined = pa.concat_batches(waiting)
                waiting.clear()
                yield begin, joined
                begin, rows, held = begin + rows, 0, 0
            if batch is None:
                return
            waiting.append(batch)
            rows, held = rows + added, held + size

    def texts(self, piece: tuple[int, pa.RecordBatch], column: str) -> list[str]:
        """The texts of a column of a piece; a missing value is "". Raises InputError for a value that is no text."""
        begin, batch = piece
        values = batch.column(self.columns.index(column)).to_pandas().tolist()
        for row, value in enumerate(values, begin):
            require_text(value, column, f"Row {row} of {self.path.name}")
        return [value if type(value) is str else as_text(value) for value in values]

    @contextmanager
    def writing(self, out: Path, nothing: Columns, record: Mapping[str, str]) -> Iterator[Callable[[Any, Columns], None]]:
        """A function that writes a piece with the columns that are added to it.

        nothing: what is added to no rows, for its types. record: goes into the metadata of the file.
        """
        require_free(self.columns, nothing, self.path.name)
        schema = self.file.schema_arrow
        for name, values in nothing.items():
            schema = schema.append(pa.field(name, _arrow(values).type))
        schema = schema.with_metadata({**(schema.metadata or {}), **record})
        with parquet.ParquetWriter(out, schema) as writer:

            def write(piece: tuple[int, pa.RecordBatch], added: Columns) -> None:
                columns = [*piece[1].columns, *map(_arrow, added.values())]
                # write_batch would keep a million rows in memory before it writes them
                writer.write_table(pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=schema)]))

            yield write

    @contextmanager
    def _sentence(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # pyarrow raises several kinds, and none is a sentence for a user
            raise InputError(f"{self.path.name} cannot be read as Parquet: {str(error).splitlines()[0]}") from error


def _arrow(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray):
        flat = pa.array(values.ravel())
        return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return pa.array(values, pa.string())
