"""CSV and TSV files: the separator, the rows, and a sentence for whatever is wrong with a row."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rtxlib.errors import InputError, counted, shortened

_SEPARATORS = ",;\t"
_EXCEL = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # the first line of some files; it names the separator for Excel
_REPEATS = 5  # rows for each value of a column whose values repeat


@dataclass(frozen=True)
class Row:
    """One row of a file.

    Attributes:
        line: of the file, at which the row begins; the first is 1
        fields: its values
        lines: the fields of each of its lines, if it has several and each looks like a row of its own
    """

    line: int
    fields: list[str]
    lines: list[list[str]] = field(default_factory=list)


def separator(lines: Iterable[str], suffix: str) -> str:
    """What separates the fields: what Excel's line ``sep=;`` names, a tab in a .tsv file, else what the header has most of."""
    first = next((line for line in lines if line.strip("\r\n")), "")
    if named := _EXCEL.fullmatch(first):
        return named[1]
    return "\t" if suffix == ".tsv" else max(_SEPARATORS, key=first.count)


def read_rows(lines: Iterable[str], delimiter: str, name: str, quoted: bool = True) -> Iterator[Row]:
    """The rows of a file, the header first; empty lines are left out.

    Args:
        lines: of the file, with their ends
        delimiter: the character between two fields
        name: of the file, for sentences
        quoted: whether a field in double quotes may hold separators and line breaks; if not, a quote is an ordinary character

    Raises InputError for a row that has another number of fields than the header, and for quotes that are no quoting.
    """
    taken: list[str] = []
    dialect: dict[str, Any] = {"strict": True} if quoted else {"quoting": csv.QUOTE_NONE}
    reader = csv.reader(_remembered(lines, taken), delimiter=delimiter, **dialect)
    header: list[str] = []
    limit, end = csv.field_size_limit(sys.maxsize), 0
    try:
        for fields in reader:
            begin, end = end + 1, reader.line_num
            if header and fields and len(fields) != len(header):
                raise InputError(_another_width(begin, name, fields, header))
            if fields:
                yield Row(begin, fields, _like_rows(taken, delimiter, len(header)) if len(taken) > 1 else [])
                header = header or fields
            taken.clear()
    except csv.Error as error:
        where = f"The row that begins in line {end + 1} of {name}"
        if "unexpected end of data" in str(error):
            raise InputError(
                f"{where} has a quote that is never closed; close it, or double it if it is a part of the text."
            ) from error
        raise InputError(
            f"{where} is malformed in line {reader.line_num} ({error}); put its texts in double quotes, and double each quote "
            "inside."
        ) from error
    finally:
        csv.field_size_limit(limit)


def require_apart(rows: Sequence[Row], name: str) -> None:
    """Raise InputError for a row that two stray quotes have made of several rows.

    Such a row is formally right. It is told by its lines: each has as many fields as the header, and in some column whose values
    repeat, such as that of the labels, each has a value that other rows have too. name: of the file.
    """
    joined = [row for row in rows if row.lines]
    if not joined:
        return
    others = [row.fields for row in rows if not row.lines]
    known = [_repeating(column) for column in zip(*others, strict=True)]
    for row in joined:
        if any(all(line[i] in values for line in row.lines) for i, values in enumerate(known)):
            raise InputError(
                f"A quote in line {row.line} of {name} and another in line {row.line + len(row.lines) - 1} join {len(row.lines)} "
                "lines that look like rows into one; double a quote that is part of a text, or write the rows as JSONL."
            )


def _remembered(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    """The lines, which are also added to ``taken``. Excel's line about the separator becomes an empty one."""
    begun = False
    for line in lines:
        if not begun and line.strip("\r\n"):
            begun = True
            line = "\n" if _EXCEL.fullmatch(line) else line
        taken.append(line)
        yield line


def _another_width(line: int, name: str, fields: list[str], header: list[str]) -> str:
    if len(fields) < len(header):
        instead = f"write all of {shortened(', '.join(header))}, and nothing between two separators where a value is missing"
    else:
        instead = "put a text that holds the separator, a quote or a line break in double quotes"
    return f"Line {line} of {name} has {counted(len(fields), 'field')} and its header has {len(header)}; {instead}."


def _like_rows(lines: list[str], delimiter: str, width: int) -> list[list[str]]:
    """The fields of each line of a row, if each line has as many as the header; else nothing."""
    split = [line.rstrip("\r\n").replace('"', "").split(delimiter) for line in lines]
    return split if {len(fields) for fields in split} == {width} else []


def _repeating(column: Sequence[str]) -> set[str]:
    """The values of a column that repeats a few values; nothing of another column, such as one of texts."""
    values = {*column} - {""}
    return values if _REPEATS * len(values) <= len(column) else set()
