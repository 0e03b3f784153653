"""Sentences on the claims of the proposal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.numbers import counted, number, points, signed

OUTCOMES = ("holds", "does not hold", "not settled", "not measured")


def measured(row: Mapping[str, Any]) -> str:
    """The measured value of a row of :func:`rtxstudy.evaluation.claims.claims`, with its interval and n; – if there is none."""
    if row["outcome"] == "not measured":
        return "–"
    if row["unit"] != "points":
        return f"{number(row['value'], '.2f')} {row['unit']}".strip()
    n = f"{counted(int(row['n_seeds']), 'seed')} × {row['n_items']:,.0f} texts"
    if pd.isna(row["low"]):
        return f"{points(row['value'])} ({n}; no interval)"
    return f"{points(row['value'])} (95 % interval {signed(row['low'])} to {points(row['high'])}, {n})"


def region(row: Mapping[str, Any]) -> str:
    """Where the measured value must lie for the claim to hold: "at most 30 minutes", "3.23 to 3.57 million".

    row: of :func:`rtxstudy.evaluation.claims.claims`.
    """
    least, most = (signed(end) if row["unit"] == "points" else number(end, ".4g") for end in (row["least"], row["most"]))
    if math.isinf(row["most"]):
        return f"at least {least} {row['unit']}".strip()
    ends = f"at most {most}" if math.isinf(row["least"]) else f"{least} to {most}"
    return f"{ends} {row['unit']}".strip()


def claims(table: pd.DataFrame) -> str:
    """How many claims of the proposal hold. ``table``: of :func:`rtxstudy.evaluation.claims.claims`."""
    counts = table["outcome"].value_counts()
    found = [name for name in OUTCOMES if name in counts]
    return "\n".join(f"- **{name.capitalize()}**: {counts[name]} of {len(table)} rows of the table." for name in found)
