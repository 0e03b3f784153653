"""The user's own file: CSV, TSV, JSONL or Parquet. Everything that can be wrong with it has its own error sentence."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from rtxlib.checksums import regular
from rtxlib.data.rows import Rows, as_text, label_text, labelled
from rtxlib.errors import InputError, nearest, shortened

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
STARS = {"1": "negative", "2": "negative", "3": "", "4": "positive", "5": "positive"}  # "" drops the row


def existing(path: Path | str) -> Path:
    """The path of an existing file. Raises InputError for a folder, a FIFO, a device, and for a missing file."""
    # For a name that is too long for a file, os.path answers False and Path raises.
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder; name a file in it.")
    if not os.path.exists(path):
        raise InputError(f"There is no file '{shortened(str(path))}'.")
    return regular(Path(path))


def read_bytes(path: Path | str) -> bytes:
    """The content of a file. Raises InputError as ``existing``, and where permissions forbid reading."""
    path = existing(path)
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path} cannot be read ({reason}); see to its permissions, or copy it.") from error


def decode(data: bytes, name: str, what: str = "the file") -> str:
    """UTF-8 as text, without a byte order mark. Raises InputError, which names the file, the bad byte and its line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        line = data.count(b"\n", 0, at) + 1
        raise InputError(
            f"{name} is not UTF-8: byte 0x{data[at]:02X} in line {line} (byte {at} of {what}) is not text; "
            f"convert {what} to UTF-8."
        ) from error


def text_lines(text: str) -> list[str]:
    """One text per line. A line ends with LF or CR LF; Unicode's other line separators are ordinary characters."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def whole(text: str) -> str:
    """The text with U+FFFD in place of lone surrogates, which JSON may contain and which are not characters."""
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)


def require_column(table: pd.DataFrame, column: str, name: str, option: str) -> None:
    """Raises InputError unless the table read from the file ``name`` has exactly one column of that name."""
    found = list(table.columns).count(column)
    if not found:
        raise InputError(
            f"{name} has no column '{shortened(column)}' ({option}); it has {', '.join(map(repr, table.columns))}."
            f"{nearest(column, table.columns)}"
        )
    if found > 1:
        raise InputError(f"{name} has more than one column '{column}'; rename one.")


def read_table(path: Path | str) -> pd.DataFrame:
    """A CSV (comma, semicolon or tab), TSV, JSONL or Parquet file. Every value is text; a missing value is "".

    Raises:
        InputError: the file is missing, a folder, empty, of another kind, unreadable, not UTF-8 (the sentence names the
            byte and its line), or malformed (the sentence names the line).
    """
    path = existing(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path.name} ends in '{suffix}'; a data file is one of {', '.join(SUFFIXES)}.")
    if not path.stat().st_size:
        raise InputError(f"{path.name} is empty.")
    if suffix == ".parquet":
        try:
            table = pd.read_parquet(path)
        except Exception as error:  # pyarrow raises several kinds, and none is a sentence for a user
            raise InputError(f"{path.name} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
        names = [str(name) for name in table.columns]  # a name may occur twice
        values = {i: [as_text(value) for value in table.iloc[:, i]] for i in range(len(names))}
        table = pd.DataFrame(values, dtype=object)
        table.columns = names
    else:
        text = decode(read_bytes(path), path.name)
        table = _jsonl(text, path.name) if suffix in (".jsonl", ".ndjson") else _separated(text, suffix, path.name)
    if table.empty:
        raise InputError(f"{path.name} holds no rows.")
    return table


def _separated(text: str, suffix: str, name: str) -> pd.DataFrame:
    header = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = "\t" if suffix == ".tsv" else max(",;\t", key=header.count)
    limit = csv.field_size_limit(sys.maxsize)
    try:
        try:
            rows = _fields(text, name, delimiter=delimiter, strict=True)
        except InputError:
            # Many programs write tab-separated files without quoting. A quote is then an ordinary character.
            if delimiter != "\t":
                raise
            rows = _fields(text, name, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    finally:
        csv.field_size_limit(limit)
    if not rows:
        raise InputError(f"{name} holds no rows.")
    columns = [column.strip() for column in rows[0]]
    return pd.DataFrame(rows[1:], columns=columns, dtype=object)


def _fields(text: str, name: str, **dialect: Any) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), **dialect)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not row:
                continue
            if rows and len(row) != len(rows[0]):
                raise InputError(
                    f"Line {reader.line_num} of {name} has {len(row)} fields and its header has {len(rows[0])}; "
                    "put a text that holds the separator, a quote or a line break in double quotes."
                )
            rows.append(row)
    except csv.Error as error:
        raise InputError(f"Line {reader.line_num} of {name} is malformed: {error}.") from error
    return rows


def _jsonl(text: str, name: str) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            where = f"Line {number} of {name}"
            raise InputError(f"{where} is not JSON: {error.msg} at character {error.pos + 1}.") from error
        except RecursionError:
            raise InputError(f"Line {number} of {name} is nested too deeply for a row of texts.") from None
        if not isinstance(row, dict):
            raise InputError(f"Line {number} of {name} is not a JSON object with named values.")
        rows.append({whole(key): whole(as_text(value)) for key, value in row.items()})
    return pd.DataFrame(rows, dtype=object).fillna("")


def read_file(
    path: Path | str,
    text_column: str | None = None,
    label_column: str | None = None,
    labels: Mapping[str, str] | None = None,
    stars: bool = False,
) -> Rows:
    """The labelled rows of a user's file.

    Args:
        path: a file as ``read_table`` reads it
        text_column, label_column: their names; None: "text" and "label"
        labels: value in the file -> label name, "" to drop the row; None: the values are the names
        stars: the values are 1 to 5 stars: 1 and 2 negative, 3 dropped, 4 and 5 positive

    Returns:
        Rows with a label, of any number of classes. Label names are sorted, numbers by size.

    Raises:
        InputError: as ``read_table``; a column is missing; or the labels are outside the mapping, do not look like
            labels, or are all the same.
    """
    name, table = Path(path).name, read_table(path)
    text_column, label_column = text_column or "text", label_column or "label"
    for column, option in ((text_column, "text_column"), (label_column, "label_column")):
        require_column(table, column, name, option)
    if text_column == label_column:
        raise InputError(f"'{text_column}' is named as the column of the text and of the label; they must differ.")
    if stars and labels:
        raise InputError("Give either stars or a label mapping, not both.")
    steps = [(f"read from {name}", len(table), 0, len(table))]
    values = table[label_column].map(label_text)
    if not stars and labels is None and (missing := int((values == "").sum())):
        table, values = table[values != ""], values[values != ""]
        steps.append(("rows without a label dropped", len(values) + missing, 0, len(values)))
    mapping = STARS if stars else labels
    if mapping is None:
        mapping = {value: value for value in values.unique()}
        if len(mapping) > max(20, len(values) / 2):
            raise InputError(
                f"The column '{label_column}' of {name} holds {len(mapping)} different values in {len(values)} rows; "
                "is it the label column?"
            )
    texts = pd.DataFrame({"text": table[text_column], "split": "", "domain": ""}).reset_index(drop=True)
    mapping = {label_text(value): str(label).strip() for value, label in mapping.items()}
    rows = labelled(texts, values.reset_index(drop=True), mapping, f"the column '{label_column}' of {name}")
    rows.steps = steps + rows.steps
    return rows
