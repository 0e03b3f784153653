"""The checks that a figure makes on its table before it draws. Each raises ``InputError`` and names the figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from rtxlib.errors import InputError, nearest


def require(table: pd.DataFrame, columns: Iterable[str], figure: str) -> None:
    """Raise ``InputError`` when the table of ``figure`` is empty or lacks one of ``columns``."""
    for column in columns:
        if column not in table:
            raise InputError(f"The figure '{figure}' needs a column '{column}'.{nearest(column, table.columns)}")
    if table.empty:
        raise InputError(f"The figure '{figure}' has no rows to draw; its table is empty.")


def one_row_each(table: pd.DataFrame, columns: Sequence[str], figure: str) -> None:
    """Raise ``InputError`` when two rows have the same ``columns``, since one would be drawn on top of the other."""
    twice = table[table.duplicated(list(columns))]
    if len(twice):
        name = ", ".join(str(twice.iloc[0][column]) for column in columns)
        raise InputError(
            f"The figure '{figure}' holds '{name}' twice; summarise the runs or tell the rows apart by name."
        )


def positive(table: pd.DataFrame, columns: Iterable[str], figure: str) -> None:
    """Raise ``InputError`` when a value for a logarithmic axis is missing, infinite or not above zero."""
    for column in columns:
        if not (np.isfinite(table[column]) & (table[column] > 0)).all():
            raise InputError(f"The figure '{figure}' needs finite values above zero in '{column}'.")


def known(words: Iterable[object], choices: Iterable[str]) -> None:
    """Raise ``InputError`` when a word is not among ``choices``."""
    if unknown := sorted(set(words) - set(choices), key=str):
        raise InputError(f"'{unknown[0]}' is none of {', '.join(choices)}.{nearest(str(unknown[0]), choices)}")
