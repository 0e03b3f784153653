"""The user's own file: CSV, TSV, JSONL or Parquet. Everything that can be wrong with it has its own error sentence."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import re
import sys
import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyarrow import parquet

from rtxlib import memory
from rtxlib.checksums import regular
from rtxlib.data.rows import FEWEST, INVISIBLE, PAIR, Rows, as_text, label_text, labelled
from rtxlib.data.separated import Row, read_rows, require_apart, separator
from rtxlib.errors import InputError, few, nearest, shortened, shown, visible

_JSON = (".jsonl", ".ndjson")
SUFFIXES = (".csv", ".tsv", *_JSON, ".parquet")
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
        position = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        line = data.count(b"\n", 0, position) + 1
        raise InputError(
            f"{name} is not UTF-8: byte 0x{data[position]:02X} in line {line} (byte {position} of {what}) is not text; "
            f"convert {what} to UTF-8."
        ) from error


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
    if list(table.columns).count(column) > 1:
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
    table = read_values(path)
    require_texts(table, used, Path(path).name)
    return as_texts(table, Path(path).name)


def read_values(path: Path | str) -> pd.DataFrame:
    """A file as :func:`read_table` reads it, with the values as they are: a JSONL or Parquet file may hold lists and numbers."""
    path = existing(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path.name} ends in '{suffix}'; a data file is one of {', '.join(SUFFIXES)}.")
    if not path.stat().st_size:
        raise InputError(f"{path.name} is empty.")
    if suffix == ".parquet":
        table = _parquet(path)
    else:
        text = decode(read_bytes(path), path.name)
        table = _jsonl(text, path.name) if suffix in _JSON else _separated(text, suffix, path.name)
    if table.empty:
        raise InputError(f"{path.name} holds no rows.")
    return table


def as_texts(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table of :func:`read_values` with every value as text. name: of its file."""
    columns = {}
    for i in range(table.shape[1]):  # a name may occur twice
        try:
            texts = [value if type(value) is str else as_text(value) for value in table.iloc[:, i]]
        except RecursionError:
            raise InputError(f"A row of {name} is nested too deeply for a row of texts; give its values as strings.") from None
        columns[i] = [*map(whole, texts)] if Path(name).suffix.lower() in _JSON else texts
    return pd.DataFrame(columns, table.index, dtype=object).set_axis(table.columns, axis=1)


def require_texts(table: pd.DataFrame, used: Collection[str], name: str) -> None:
    """Raise InputError for the first value of a used column of :func:`read_values` that is no text. name: of the file."""
    kind = "Row" if table.index.name == "row" else "Line"
    for i, column in enumerate(table.columns):
        for number, value in table.iloc[:, i].items() if column in used else ():
            require_text(value, column, f"{kind} {number} of {name}")


def of_parquet(rows: Any) -> pd.DataFrame:
    """The columns of a Table or RecordBatch of pyarrow. An index with a name is a column like any other."""
    table = rows.to_pandas(integer_object_nulls=True)  # a float has too few digits for an id
    named = [name for name in table.index.names if name is not None]
    return table.reset_index(named, allow_duplicates=True) if named else table


def _parquet(path: Path) -> pd.DataFrame:
    try:
        with parquet.ParquetFile(path) as file:  # pd.read_parquet takes no file that has a column twice
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
            size = sum(memory.VALUE * chunk.num_values + chunk.total_uncompressed_size for chunk in chunks)
            _require_few(file.metadata.num_rows, path.name)
            memory.require_memory(size, f"Reading {path.name}", "take fewer rows or columns of it")
            table = of_parquet(file.read())
    except InputError:
        raise
    except Exception as error:  # pyarrow raises several kinds, and none is a sentence for a user
        raise InputError(f"{path.name} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    table.index = pd.RangeIndex(1, len(table) + 1, name="row")
    return table.set_axis([str(name) for name in table.columns], axis=1)


def require_text(value: Any, column: str, where: str) -> None:
    """Raise InputError for bytes, a duration, a list or a dictionary, which are neither a text nor a label."""
    if type(value) in _NO_TEXT:
        raise InputError(
            f"{where} has {_NO_TEXT[type(value)]} in the column '{shortened(column)}', where a text or a label belongs; write "
            "it as one string, or name another column."
        )


def _separated(text: str, suffix: str, name: str) -> pd.DataFrame:
    delimiter = separator(io.StringIO(text, newline=""), suffix)

    def rows(quoted: bool) -> list[Row]:
        return [*itertools.islice(read_rows(io.StringIO(text, newline=""), delimiter, name, quoted), MOST_ROWS + 2)]

    try:
        records = rows(quoted=True)
        require_apart(records[1:], name)
    except InputError:
        # Many programs write tab-separated files without quoting.
        if delimiter != "\t":
            raise
        records = rows(quoted=False)
    if not records:
        raise InputError(f"{name} holds no rows.")
    _require_few(len(records) - 1, name)
    lines = pd.Index([row.line for row in records[1:]], name="line")
    return pd.DataFrame([row.fields for row in records[1:]], lines, column_names(records[0].fields, name), dtype=object)


def column_names(header: list[str], name: str) -> list[str]:
    """The names without spaces around them. A line on standard error says so."""
    names = [column.strip() for column in header]
    if names != header:
        spaced = shown(next(column for column in header if column != column.strip()))
        print(f"{visible(name)} has spaces around names of columns, such as {spaced}; they are left out.", file=sys.stderr)
    return names


def json_row(line: str, where: str) -> dict[str, Any]:
    """The object in a line of JSONL. Raises InputError, which calls the line ``where``, if it is none or has a name twice."""
    twice: str | None = None

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice  # the outermost object is the last
        keys = [key for key, _ in members]
        twice = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
        return dict(members)

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
    return {whole(key): value for key, value in row.items()}


def _jsonl(text: str, name: str) -> pd.DataFrame:
    _require_few(text.count("\n") - 1, name)
    lines = {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    rows = [json_row(line, f"Line {number} of {name}") for number, line in lines.items()]
    return pd.DataFrame(rows, pd.Index(lines, name="line"), dtype=object)


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
    steps = [(f"read from {visible(name)}", len(table), 0, len(table))]
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
    """A sentence for each set of labels that look alike, and for each label that may be a missing value.

    Labels look alike if they differ only in case, space or characters that nobody sees. join, leave_out: what the user can do
    about either.
    """
    counts = values.value_counts().sort_index()
    folded = [" ".join(unicodedata.normalize("NFKC", INVISIBLE.sub("", label)).casefold().split()) for label in counts.index]
    notes = []
    for key, alike in counts.groupby(folded):
        named = " and ".join(f"{shown(label)} ({n:,} row{'' if n == 1 else 's'})" for label, n in alike.items())
        if len(alike) > 1:
            what = "case, space or invisible characters" if any(map(INVISIBLE.search, alike.index)) else "case or space"
            notes.append(f"The labels {named} differ only in {what} and are taken for different{join}.")
        if key in _MISSING:
            notes.append(f"{named} may be a missing value and is taken for a label{leave_out}.")
    return notes


def _require_frequent(values: pd.Series, name: str) -> None:
    """Raise InputError for a label that is too rare to be in all three splits, and name the first row that has it.

    It may be a typing error of a frequent label. Labels that the user mapped are meant, so they are not judged here.
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
