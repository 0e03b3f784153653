"""Claims: sentences that a person has written, each with named numbers and the condition under which it is true.

    claim(
        "Depth pays on {task}: six layers are {gain:points} points better than four ({low:signed} to {high:signed}).",
        holds=row.depth_low > 0, task=name(row.data), gain=row.depth_gain, low=row.depth_low, high=row.depth_high)

A claim whose condition fails is not printed; the report lists it under :data:`UNTRUE`. A claim whose numbers are not there (NaN
or None) has no data and appears nowhere. The claims of a question stand in :mod:`rtxstudy.questions`, one module a question.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rtxstudy.numbers import NBSP, number, percent, signed

UNTRUE = "Written for other results, and not true of these"


@dataclass(frozen=True)
class Claim:
    """A sentence with its numbers filled in, and whether it is true; ``holds`` is None where there are no data for it."""

    sentence: str
    holds: bool | None
    kind: str = "sentence"  # or "title", of a figure


def claim(text: str, *, holds: Any = True, **numbers: Any) -> Claim:
    """A sentence with named numbers, and the condition under which it is true.

    ``text`` names its numbers in braces, with a format after a colon: those of :class:`_Numbers`, or Python's. The claim has no
    data where a number or the condition is missing (None or NaN).
    """
    if any(_missing(value) for value in (holds, *numbers.values())):
        return Claim(text, None)
    return Claim(_Numbers().vformat(text, (), numbers), bool(holds))


def first(*claims: Claim) -> Claim:
    """The first claim that holds, of several that were written for different results; if none does, the first one with data."""
    with_data = [claim for claim in claims if claim.holds is not None]
    return next((claim for claim in with_data if claim.holds), with_data[0] if with_data else claims[0])


def sentences(claims: Iterable[Claim]) -> list[str]:
    """The sentences that are true."""
    return [claim.sentence for claim in claims if claim.holds]


def untrue(claims: Iterable[Claim]) -> list[str]:
    """The sentences that have data and are not true."""
    return [claim.sentence for claim in claims if claim.holds is False]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "A", "A and B", "A; B and C"."""
    if len(names) < 2:
        return "".join(names)
    return f"{'; '.join(names[:-1])} and {names[-1]}"


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


class _Numbers(string.Formatter):
    """Formats of numbers in claims.

    - ``signed``: a difference of accuracies in percentage points, +1.3; ``points``: the same without its sign, 1.3
    - ``percent``: an accuracy, 89.4 %; ``share``: a share, 84 %
    - ``word``: a small whole number, three
    """

    _WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "signed":
            return signed(value)
        if format_spec == "points":
            return f"{100 * abs(value):.1f}"
        if format_spec == "percent":
            return percent(value)
        if format_spec == "share":
            return f"{number(100 * value, '.0f')}{NBSP}%"
        if format_spec == "word":
            return self._WORDS[value] if 0 <= value < len(self._WORDS) else str(value)
        return number(value, format_spec) if not isinstance(value, str) else format(value, format_spec)


class Row:
    """One row of a table. Its columns are attributes; of the row that no table has, every one is NaN."""

    def __init__(self, values: dict[str, Any] | None) -> None:
        self._values = values

    def __getattr__(self, column: str) -> Any:
        if column.startswith("__"):
            raise AttributeError(column)
        if self._values is None:
            return math.nan
        if column not in self._values:
            raise AttributeError(f"The row has no column '{column}'; it has {', '.join(map(str, self._values))}.")
        return self._values[column]

    def __bool__(self) -> bool:
        return self._values is not None


def row(table: pd.DataFrame | None, **where: Any) -> Row:
    """The row of a table whose columns have these values; the absent row where there is none. Raises ValueError for several."""
    if table is None or table.empty:
        return Row(None)
    chosen = table
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    if len(chosen) > 1:
        raise ValueError(f"{len(chosen)} rows have {where}; a claim speaks of one.")
    return Row(chosen.iloc[0].to_dict() if len(chosen) else None)
