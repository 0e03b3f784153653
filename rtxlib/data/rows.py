"""Rows on their way from a source to token ids, with a record of what each step changed and dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from rtxlib.errors import InputError, few

SPLITS = ("train", "validation", "test")
PAIR = "text_pair"  # the column of second texts; only pairs have it
Text = str | tuple[str, str]  # one text, or a pair of a first and a second text
FEWEST = 20  # rows that can be split three ways
# Soft hyphen, zero-width characters, marks of direction, variation selectors, byte order mark.
_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
INVISIBLE, _BLANK = re.compile(f"[{_INVISIBLE}]+"), re.compile(rf"[\s{_INVISIBLE}]*")


@dataclass
class Rows:
    """The rows of a data set between two steps of ``prepare``; every step changes them in place.

    Attributes:
        table: columns text, label (its name), domain and split; pairs also have text_pair, and embedded rows depth.
            ``split`` is first the source's own name for the part that a row comes from, and after splitting one of ``SPLITS``.
        label_names: in the order of the label numbers
        steps: what was done so far, in order: (step, rows in, rows changed, rows out)
        notes: plain sentences for the report
    """

    table: pd.DataFrame
    label_names: list[str]
    steps: list[tuple[str, int, int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def keep(self, step: str, chosen: np.ndarray) -> None:
        """Keep the rows of a mask or of an index array. A step that drops nothing is not recorded."""
        before = len(self.table)
        self.table = self.table.iloc[np.flatnonzero(chosen) if chosen.dtype == bool else chosen].reset_index(drop=True)
        if len(self.table) < before:
            self.steps.append((step, before, 0, len(self.table)))

    def changed(self, step: str, rows: int) -> None:
        """Record that a step changed so many rows and dropped none."""
        self.steps.append((step, len(self.table), rows, len(self.table)))

    @property
    def text_columns(self) -> list[str]:
        """The columns of the table that hold texts: one, or two for pairs."""
        return [column for column in ("text", PAIR) if column in self.table]

    def where(self, split: str) -> np.ndarray:
        """The indices of the rows of one split."""
        return np.flatnonzero(self.table["split"] == split)

    def part(self, split: str) -> pd.DataFrame:
        """The rows of one split, numbered from 0."""
        return self.table.iloc[self.where(split)].reset_index(drop=True)


def texts_of(table: pd.DataFrame) -> list[Text]:
    """The texts of a table: strings, or (text, text_pair) where the table has pairs."""
    return list(zip(table["text"], table[PAIR], strict=True)) if PAIR in table else table["text"].tolist()


def sides(text: Text) -> tuple[str, ...]:
    """The one text or the two texts of a row."""
    return (text,) if isinstance(text, str) else text


def cut(text: Text, most: int | None) -> Text:
    """The beginning of a text, or of both texts of a pair: at most so many characters; None: all of it."""
    return text[:most] if isinstance(text, str) else (text[0][:most], text[1][:most])


def spread(count: int, most: int) -> np.ndarray:
    """The numbers of at most ``most`` of ``count`` rows, evenly spread, because a file may be sorted by its labels."""
    return np.linspace(0, count - 1, min(count, most)).astype(int)


def one_side(texts: Sequence[Text], side: int) -> Sequence[str]:
    """The texts, or the first (0) or second (1) text of each pair."""
    return texts if isinstance(texts[0], str) else [pair[side] for pair in texts]


def as_text(value: object) -> str:
    """A value of a file as text: 1 and 1.0 are "1", true is "true", a missing value (None, NaN) is "".

    Lists and dictionaries are JSON, and bytes are hexadecimal digits.
    """
    if isinstance(value, np.ndarray | list | tuple | dict):
        inside = lambda part: part.tolist() if isinstance(part, np.ndarray) else as_text(part)  # noqa: E731
        return json.dumps(value, ensure_ascii=False, default=inside)
    if isinstance(value, bytes):
        return value.hex()
    if value is None or (isinstance(value, float) and np.isnan(value)) or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def blank(text: str) -> bool:
    """Whether nobody sees anything of a text: it is empty, or white space and :data:`INVISIBLE` characters."""
    return _BLANK.fullmatch(text) is not None


def label_text(value: object) -> str:
    """A label as text: as ``as_text``, and "1.0" is "1". A label that nobody sees is "", as a missing one."""
    text = as_text(value).strip()
    return "" if blank(text) else re.sub(r"^([+-]?\d+)\.0+$", r"\1", text)


def labelled(table: pd.DataFrame, values: pd.Series, mapping: Mapping[str, str], where: str) -> Rows:
    """Rows whose labels are the names that a mapping gives to the values of a file.

    Args:
        table: columns text, domain and split
        values: one for each row
        mapping: value as text -> label name; "" drops the row
        where: what the error sentences call the origin of the values

    Raises:
        InputError: a value is outside the mapping, or fewer than two classes are left.
    """
    values = values.map({value: label_text(value) for value in values.unique()})
    unknown = values[~values.isin(list(mapping))].value_counts()
    if len(unknown):
        raise InputError(
            f"Labels outside the mapping in {where}: {few(unknown.index)}; the mapping has {few(mapping)}. Map every value, "
            "to '' those to drop."
        )
    names = values.map(mapping)
    label_names = sorted(set(names) - {""}, key=_natural)
    if len(label_names) < 2:
        raise InputError(
            f"There must be at least two classes to tell apart; {where} gives "
            f"{f'only {label_names[0]!r}' if label_names else 'none'}."
        )
    rows = Rows(table.assign(label=names), label_names)
    rows.keep("rows whose label is mapped to nothing dropped", (names != "").to_numpy())
    return rows


def _natural(name: str) -> tuple[bool, float, str]:
    """The sorting key of label names: numbers first, by size."""
    number = re.fullmatch(r"[+-]?\d+(?:\.\d+)?", name)
    return (not number, float(name) if number else 0.0, name)
