"""The user's own file: CSV, TSV, JSONL or Parquet. Everything that can be wrong with it has its own error sentence."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import sys
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from rtxlib.checksums import regular
from rtxlib.data import memory
from rtxlib.data.rows import FEWEST, PAIR, Rows, as_text, label_text, labelled
from rtxlib.errors import InputError, few, nearest, shortened, shown, visible

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
# types of values → their name
_NO_TEXT = {bytes: "bytes", list: "a list", np.ndarray: "a list", dict: "a dictionary", pd.Timedelta: "a duration"}
MOST_ROWS = 10_000_000  # of a file; more are refused, because nobody would wait for them
_MISSING = ("nan", "nat", "none", "null", "nil", "n/a", "na", "#n/a", "<na>", "-", "?")  # what programs write for a missing value
_RARE = 3  # rows of a label that can be in training, validation and test
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
    """The content of a text file.

    Raises InputError as ``existing``, where permissions forbid reading, and for a file that is too large for the memory.
    """
    path = existing(path)
    memory.require_memory(memory.READING * path.stat().st_size, f"Reading {path.name}", "split the file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def sha256(path: Path | str) -> str:
    """The SHA-256 of a file. Raises InputError as ``read_bytes``, but only for a file that is larger than the memory."""
    path = existing(path)
    memory.require_memory(path.stat().st_size, f"Reading {path.name}", "split the file")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be read ({error.strerror or error}); see to its permissions, or copy it.")


def decode(data: bytes, name: str, what: str = "the file") -> str:
    """UTF-8 as text, without a byte order mark. Raises InputError, which names the file, the bad byte and its line."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or 3 * data[:1000].count(0) > len(data[:1000]):
        raise InputError(f"{name} is not UTF-8 but probably UTF-16, as some programs write; convert {what} to UTF-8.")
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
    if column not in table.columns:
        raise InputError(
            f"{name} has no column '{shortened(column)}' ({option}); it has {few(table.columns, 12)}."
            f"{nearest(column, table.columns)}"
        )
    _require_once(table.columns, column, name)


def _require_once(columns: Iterable[str], column: str, name: str) -> None:
    if list(columns).count(column) > 1:
        raise InputError(f"{name} has more than one column '{shortened(column)}'; rename one.")


def _require_few(rows: int, name: str) -> None:
    if rows > MOST_ROWS:
        raise InputError(f"{name} has more than {MOST_ROWS:,} rows, which would take hours; take fewer of them.")


def read_table(path: Path | str, used: Collection[str] = ()) -> pd.DataFrame:
    """A CSV (comma, semicolon or tab), TSV, JSONL or Parquet file. Every value is text; a missing value is "".

    Args:
        path: the file
        used: columns that are used as texts or labels; other columns may hold lists, dictionaries and bytes

    Returns:
        A table. Its index is the line at which each row begins in the file, and in Parquet the number of the row; the first
        is 1.

    Raises:
        InputError: the file is missing, a folder, empty, of another kind, unreadable, too large for the memory, not UTF-8 (the
            sentence names the byte and its line), or malformed, or a value of a used column is no text (the sentence names the
            line).
    """
    path = existing(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path.name} ends in '{suffix}'; a data file is one of {', '.join(SUFFIXES)}.")
    if not path.stat().st_size:
        raise InputError(f"{path.name} is empty.")
    if suffix == ".parquet":
        table = _parquet(path, used)
    else:
        text = decode(read_bytes(path), path.name)
        table = _jsonl(text, path.name, used) if suffix in (".jsonl", ".ndjson") else _separated(text, suffix, path.name)
    if table.empty:
        raise InputError(f"{path.name} holds no rows.")
    return table


def _parquet(path: Path, used: Collection[str]) -> pd.DataFrame:
    try:
        _require_memory_of_parquet(path, used)
        table = pd.read_parquet(path)
    except InputError:
        raise
    except Exception as error:  # pyarrow raises several kinds, and none is a sentence for a user
        raise InputError(f"{path.name} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    names = [str(name) for name in table.columns]  # a name may occur twice
    for i, name in enumerate(names):
        for number, value in enumerate(table.iloc[:, i] if name in used else (), 1):
            require_text(value, name, f"Row {number} of {path.name}")
    values = {
        i: [value if type(value) is str else as_text(value) for value in table.iloc[:, i]] for i in range(len(names))
    }
    table = pd.DataFrame(values, index=pd.RangeIndex(1, len(table) + 1, name="row"), dtype=object)
    table.columns = names
    return table


def _require_memory_of_parquet(path: Path, used: Collection[str]) -> None:
    """Raise InputError for a Parquet file that has a used column twice, too many rows, or values that do not fit into memory.

    A Parquet file keeps a repeated value once, and its metadata count it once: a kilobyte can hold gigabytes. Texts are
    therefore first read as numbers of distinct texts, a part of the file at a time, and their lengths are added up.
    """
    what, instead = f"Reading {path.name}", "take fewer rows or columns of it"
    with parquet.ParquetFile(path) as file:
        metadata, fields = file.metadata, list(file.schema_arrow)
    for column in used:
        _require_once([field.name for field in fields], column, path.name)
    _require_few(metadata.num_rows, path.name)
    chunks = [metadata.row_group(i).column(j) for i in range(metadata.num_row_groups) for j in range(metadata.num_columns)]
    size = memory.VALUE * sum(chunk.num_values for chunk in chunks)
    memory.require_memory(size + sum(chunk.total_uncompressed_size for chunk in chunks), what, instead)
    texts = [field.name for field in fields if _is_text(field.type)]
    # Values inside lists, dictionaries and arrays of bytes are read as they are, so only a few rows at a time.
    plain = all(_is_text(field.type) or pa.types.is_primitive(field.type) for field in fields)
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        for batch in file.iter_batches(batch_size=1 << 16 if plain else 128):
            for column in batch.columns:
                if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
                    found = pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0
                else:
                    found = column.nbytes
                size += memory.READING_PARQUET * found
            memory.require_memory(size, what, instead)


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def require_text(value: Any, column: str, where: str) -> None:
    """Raise InputError for bytes, a duration, a list or a dictionary, which are neither a text nor a label."""
    if type(value) in _NO_TEXT:
        raise InputError(
            f"{where} has {_NO_TEXT[type(value)]} in the column '{shortened(column)}', where a text or a label belongs; write "
            "it as one string, or name another column."
        )


def _separated(text: str, suffix: str, name: str) -> pd.DataFrame:
    header = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = "\t" if suffix == ".tsv" else max(",;\t", key=header.count)
    limit = csv.field_size_limit(sys.maxsize)
    try:
        try:
            rows, lines = _fields(text, name, delimiter=delimiter, strict=True)
        except InputError:
            # Many programs write tab-separated files without quoting. A quote is then an ordinary character.
            if delimiter != "\t":
                raise
            rows, lines = _fields(text, name, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    finally:
        csv.field_size_limit(limit)
    if not rows:
        raise InputError(f"{name} holds no rows.")
    columns = [column.strip() for column in rows[0]]
    if columns != rows[0]:
        spaced = shown(next(column for column in rows[0] if column != column.strip()))
        print(f"{visible(name)} has spaces around names of columns, such as {spaced}; they are left out.", file=sys.stderr)
    return pd.DataFrame(rows[1:], pd.Index(lines[1:], name="line"), columns, dtype=object)


def _fields(text: str, name: str, **dialect: Any) -> tuple[list[list[str]], list[int]]:
    """The rows with the header, and the line at which each begins."""
    reader = csv.reader(io.StringIO(text, newline=""), **dialect)
    rows: list[list[str]] = []
    lines, end = [], 0
    try:
        for row in reader:
            begin, end = end + 1, reader.line_num
            if not row:
                continue
            if rows and len(row) != len(rows[0]):
                many = "1 field" if len(row) == 1 else f"{len(row)} fields"
                instead = (
                    f"write all of {shortened(', '.join(rows[0]))}, and nothing between two separators where a value is missing"
                    if len(row) < len(rows[0])
                    else "put a text that holds the separator, a quote or a line break in double quotes"
                )
                raise InputError(f"Line {begin} of {name} has {many} and its header has {len(rows[0])}; {instead}.")
            rows.append(row)
            lines.append(begin)
            _require_few(len(rows) - 1, name)
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
    return rows, lines


def json_row(line: str, where: str, used: Collection[str] = ()) -> dict[str, Any]:
    """The object in a line of JSONL. used: columns that are used as texts or labels.

    Raises InputError, which calls the line ``where``, when it is no JSON object, or when it has a name twice or no text in a used
    column.
    """
    twice: str | None = None

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice  # the outermost object is the last
        keys = [key for key, _ in found]
        twice = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
        return dict(found)

    try:
        row = json.loads(line, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON: {error.msg} at character {error.pos + 1}.") from error
    except RecursionError:
        raise InputError(f"{where} is nested too deeply for a row of texts.") from None
    except ValueError:  # of Python's int
        most = f"{sys.get_int_max_str_digits():,}"
        raise InputError(f"{where} has a whole number of more than {most} digits; put it in quotes.") from None
    if not isinstance(row, dict):
        raise InputError(f"{where} is not a JSON object with named values.")
    if twice is not None:
        raise InputError(f"{where} has the name '{shortened(twice)}' more than once; rename one.")
    for column in used:
        require_text(row.get(column), column, where)
    return row


def _jsonl(text: str, name: str, used: Collection[str]) -> pd.DataFrame:
    rows, lines = [], []
    _require_few(text.count("\n") - 1, name)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"Line {number} of {name}"
        row = json_row(line, where, used)
        try:
            rows.append({whole(key): whole(as_text(value)) for key, value in row.items()})
        except RecursionError:
            raise InputError(f"{where} is nested too deeply for a row of texts.") from None
        lines.append(number)
    return pd.DataFrame(rows, pd.Index(lines, name="line"), dtype=object).fillna("")


def read_file(
    path: Path | str,
    text_column: str | None = None,
    label_column: str | None = None,
    labels: Mapping[str, str] | None = None,
    stars: bool = False,
    text_pair_column: str | None = None,
) -> Rows:
    """The labelled rows of a user's file.

    Args:
        path: a file as ``read_table`` reads it
        text_column, label_column: their names; None: "text" and "label"
        labels: value in the file -> label name, "" to drop the row; None: the values are the names
        stars: the values are 1 to 5 stars: 1 and 2 negative, 3 dropped, 4 and 5 positive
        text_pair_column: the column of the second text, where a row is a pair of texts

    Returns:
        Rows with a label, of any number of classes. Label names are sorted, numbers by size.

    Raises:
        InputError: as ``read_table``; a column is missing; or the labels are outside the mapping, do not look like
            labels, or are all the same; or without a mapping a label is so rare that it may be a typing error.
    """
    text_column, label_column = text_column or "text", label_column or "label"
    named = {"text_column": text_column, "label_column": label_column}
    if text_pair_column is not None:
        named["text_pair_column"] = text_pair_column
    name, table = Path(path).name, read_table(path, named.values())
    for option, column in named.items():
        require_column(table, column, name, option)
    if len(set(named.values())) < len(named):
        raise InputError(f"{', '.join(named)} must differ; they are {', '.join(map(repr, named.values()))}.")
    if stars and labels:
        raise InputError("Give either stars or a label mapping, not both.")
    steps = [(f"read from {name}", len(table), 0, len(table))]
    values = table[label_column].map(label_text)
    if not stars and labels is None and (missing := int((values == "").sum())):
        table, values = table[values != ""], values[values != ""]
        steps.append(("rows without a label dropped", len(values) + missing, 0, len(values)))
    mapping, notes = STARS if stars else labels, []
    if mapping is None:
        mapping = {value: value for value in values.unique()}
        if len(mapping) > max(20, len(values) / 2):
            raise InputError(
                f"The column '{label_column}' of {name} holds {len(mapping)} different values in {len(values)} rows; "
                "is it the label column?"
            )
        _require_frequent(values, name)
        notes = doubtful_labels(values, "; --labels can join them", "; --labels can leave its rows out")
    texts = {"text": table[text_column]} | ({PAIR: table[text_pair_column]} if text_pair_column else {})
    texts = pd.DataFrame(texts | {"split": "", "domain": ""}).reset_index(drop=True)
    mapping = {label_text(value): str(label).strip() for value, label in mapping.items()}
    rows = labelled(texts, values.reset_index(drop=True), mapping, f"the column '{label_column}' of {name}")
    rows.steps, rows.notes = steps + rows.steps, notes
    return rows


def doubtful_labels(values: pd.Series, join: str = "", leave_out: str = "") -> list[str]:
    """A sentence for each set of labels that differ only in case or space, and for each label that may be a missing value.

    join, leave_out: what the user can do about either.
    """
    counts = values.value_counts().sort_index()
    folded = [" ".join(unicodedata.normalize("NFKC", label).casefold().split()) for label in counts.index]
    notes = []
    for key, alike in counts.groupby(folded):
        named = " and ".join(f"'{shortened(label)}' ({n:,} row{'' if n == 1 else 's'})" for label, n in alike.items())
        if len(alike) > 1:
            notes.append(f"The labels {named} differ only in case or space and are taken for different{join}.")
        if key in _MISSING:
            notes.append(f"{named} may be a missing value and is taken for a label{leave_out}.")
    return notes


def _require_frequent(values: pd.Series, name: str) -> None:
    """Raise InputError for a label that is too rare to be in all three splits, and name the first row that has it.

    It may be a typing error of a frequent label. A mapping of the labels says that it is not; so it is not judged here.
    """
    counts = values.value_counts()
    rare = values[values.map(counts) < _RARE]
    if len(values) < FEWEST or not len(rare):
        return
    label, where = rare.iloc[0], f"{rare.index.name} {rare.index[0]}"
    frequent = counts.index[counts >= _RARE]
    close = next(filter(None, (nearest(spelt, frequent) for spelt in (label, label.lower(), label.upper()))), "")
    times = "once, in" if counts[label] == 1 else "only twice, first in"
    raise InputError(
        f"The label '{shortened(label)}' occurs {times} {where} of {name}, which is too rare for three splits.{close} Correct "
        "it, or map the labels with --labels (to \"\" to leave its rows out)."
    )
