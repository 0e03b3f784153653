"""What a command prints and the files that its ``--out`` names."""

from __future__ import annotations

import csv
import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtxlib.atomic import replacing
from rtxlib.errors import STEERING, InputError, disk_full

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {  # ending → how a table is written; each gives the same bytes for the same table
    "csv": lambda table, file: _csv(table, file),
    "jsonl": lambda table, file: table.to_json(file, orient="records", lines=True, force_ascii=False),
    "parquet": lambda table, file: table.to_parquet(file, index=False),
}

# A spreadsheet computes a cell that starts like this (OWASP, "CSV injection"), unless it is a plain number, a sign alone, or a
# sign before a comma and a space.
_FORMULA = re.compile(r"(?![+-]?\d+(\.\d*)?([eE][+-]?\d+)?\Z)(?![+-](\Z|, ))[=+\-@\t\r\n＝＋－＠]")

force_option = click.option("--force", is_flag=True, help="Replace the file that --out names.")


def inert(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The table with an apostrophe before every text that a spreadsheet would take for a formula, and how many these are.

    Column names count too. Numbers stay as they are, also those that are written as text ("-5").
    """
    import pandas as pd

    changed, names = 0, list(table.columns)

    def quoted(cell: Any) -> Any:
        nonlocal changed
        if not (isinstance(cell, str) and _FORMULA.match(cell)):
            return cell
        changed += 1
        return f"'{cell}"

    def of(column: pd.Series) -> pd.Series:
        before = changed
        cells = pd.Series([] if column.dtype.kind in "biuf" else [*map(quoted, column)], dtype=object)
        return column if changed == before else cells.set_axis(table.index)

    cells = [of(column) for _, column in table.items()]
    table = pd.DataFrame(dict(enumerate(cells)), index=table.index)  # one by one, thousands of columns would take quadratic time
    return table.set_axis([quoted(name) for name in names], axis=1), changed


def _csv(table: pd.DataFrame, file: Any) -> int:
    """Write CSV, and return how many cells :func:`inert` changed.

    Python's writer leaves a lone carriage return unquoted, which readers take for the end of a row.
    """
    table, changed = inert(table)
    texts = (column for _, column in table.items() if column.dtype.kind not in "biuf")
    returns = any(isinstance(cell, str) and "\r" in cell for column in texts for cell in column)
    quoting = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
    # pandas would write 100,000 cells at once, which are five rows of 20,000 columns.
    table.to_csv(file, index=False, lineterminator="\n", quoting=quoting, chunksize=1000)
    return changed


def json_line(record: Any) -> str:
    """A record as one line of JSON, letters of all scripts as they are. No character in it steers a terminal."""
    text = json.dumps(record, ensure_ascii=False)  # escapes control characters, but neither DEL, C1 nor directions
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def check_out(out: Path | str, force: bool, file: str | None = None) -> None:
    """Raise InputError when ``--out`` names something that must not be replaced. file: the file that is read, if there is one.

    The file that is read, a folder, a pipe and a device are never replaced; another file or a link only with ``force``. A link
    itself is then replaced, and not the file that it points to.
    """
    if file is not None and os.path.realpath(out) == os.path.realpath(file):
        raise InputError(f"--out would replace {file}, which is read; name another file.")
    try:
        mode = os.lstat(out).st_mode
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise _in_a_file(out) from None
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise InputError(f"--out {out} is not a plain file; name another.")
    if not force:
        what = "is a link" if stat.S_ISLNK(mode) else "exists already"
        raise InputError(f"{out} {what}; name another file, or replace it with --force.")


def _in_a_file(path: Path | str) -> InputError:
    return InputError(f"{path} cannot be written, because a part of its path is a file and no folder; name another.")


def write_whole(path: Path, write: Callable[[Path], Any]) -> Any:
    """Let ``write`` make a temporary file that replaces ``path`` once it is complete. A failure leaves nothing behind.

    Returns what ``write`` returns. Raises InputError when the disk is full or the place cannot be written to.
    """
    try:
        with replacing(path) as temporary:
            return write(temporary)
    except (FileExistsError, NotADirectoryError) as error:
        raise _in_a_file(path) from error
    except OSError as error:
        reason = "the disk is full" if disk_full(error) else error.strerror or error
        raise InputError(f"{path} could not be written: {reason}.") from error


def write_table(out: Path, table: pd.DataFrame) -> None:
    """Write a table in the format of its ending, as :func:`write_whole`. Says on stderr how many cells of a CSV were changed."""
    if changed := write_whole(out, lambda path: FORMATS[out.suffix[1:].lower()](table, path)):
        click.echo(formula_note(changed), err=True)


def formula_note(changed: int) -> str:
    """The line that says how many cells of a CSV file have an apostrophe."""
    cells = "1 cell starts" if changed == 1 else f"{changed:,} cells start"
    return (
        f"{cells} like a formula of a spreadsheet and got an apostrophe in front; .jsonl and .parquet files keep texts exact."
    )
