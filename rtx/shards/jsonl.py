"""A shard in JSONL, read and written a piece at a time. What a line holds is not changed; the answers follow in its object."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rtx.shards.piece import BYTES, ROWS, Columns, require_free
from rtxlib.data.files import json_row, require_text, whole
from rtxlib.data.rows import as_text
from rtxlib.errors import InputError

LONGEST_LINE = 1 << 28  # bytes; a longer line is refused, because it would be in memory several times
FIRST = 100  # lines; a column that a row may lack is looked for in so many of them
_BOM = b"\xef\xbb\xbf"

Line = tuple[int, str, dict[str, Any]]  # its number, from 1; the line; its object


class JsonlShard:
    """A JSONL file. A piece is a list of lines; empty lines are left out.

    Raises InputError when it cannot be read, here and while its pieces are read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.file = path.open("rb")
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}); see to its permissions, or copy it.") from error
        try:
            first = itertools.islice(self._lines(), FIRST)
            self.columns = list({column: None for _, _, row in first for column in row})
        except InputError:
            self.file.close()
            raise
        self.file.seek(0)

    def close(self) -> None:
        self.file.close()

    def pieces(self) -> Iterator[list[Line]]:
        piece: list[Line] = []
        size = 0
        for line in self._lines():
            piece.append(line)
            size += len(line[1])
            if len(piece) == ROWS or size >= BYTES:
                yield piece
                piece, size = [], 0
        if piece:
            yield piece

    def _lines(self) -> Iterator[Line]:
        number = 0
        while data := self.file.readline(LONGEST_LINE):
            number += 1
            where = f"Line {number} of {self.path.name}"
            if len(data) == LONGEST_LINE:
                raise InputError(f"{where} is longer than {LONGEST_LINE >> 20} MB; cut its texts.")
            try:
                line = data.removeprefix(_BOM if number == 1 else b"").decode("utf-8").strip()
            except UnicodeDecodeError:
                raise InputError(f"{where} is not UTF-8; convert the shard to UTF-8.") from None
            if line:
                yield number, line, json_row(line, where)

    def texts(self, piece: list[Line], column: str) -> list[str]:
        """The texts of a column of a piece; a missing value is "". Raises InputError for a value that is no text."""
        for number, _, row in piece:
            require_text(row.get(column), column, f"Line {number} of {self.path.name}")
        return [whole(as_text(row.get(column))) for _, _, row in piece]

    @contextmanager
    def writing(self, out: Path, nothing: Columns, record: Mapping[str, str]) -> Iterator[Callable[[Any, Columns], None]]:
        """A function that writes a piece with the values that are added to it. nothing: what is added to no rows."""
        with out.open("w", encoding="utf-8", newline="\n") as file:

            def write(piece: list[Line], added: Columns) -> None:
                for (number, line, row), *values in zip(piece, *map(_plain, added.values()), strict=True):
                    require_free(row, added, f"Line {number} of {self.path.name}")
                    object_ = json.dumps(dict(zip(added, values, strict=True)), ensure_ascii=False)
                    comma = ", " if row else ""
                    file.write(f"{line[:-1].rstrip()}{comma}{object_[1:]}\n")

            yield write


def _plain(values: Any) -> list[Any]:
    """Values as JSON takes them. A number has as many digits as tell it from every other number in float32."""
    return values.astype(str).astype(float).tolist() if isinstance(values, np.ndarray) else values
