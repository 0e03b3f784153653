"""What does the proposal claim, and what is measured of it?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxlib.errors import counted
from rtxstudy.claims import Claim, claim
from rtxstudy.numbers import number, signed


def measured(row: Mapping[str, Any]) -> str:
    """The measured value of a row of :mod:`~rtxstudy.questions.proposal.proposal_measured`, with its interval and n; – if there
    is none.
    """
    if row["outcome"] == "not measured":
        return "–"
    if row["unit"] != "points":
        return f"{number(row['value'], '.2f')} {row['unit']}".strip()
    n = f"{counted(int(row['n_seeds']), 'seed')} × {row['n_items']:,.0f} texts"
    if pd.isna(row["low"]):
        return f"{signed(row['value'])} points ({n}; no interval)"
    return f"{signed(row['value'])} points ({signed(row['low'])} to {signed(row['high'])}, {n})"


def region(row: Mapping[str, Any]) -> str:
    """Where the measured value must lie for the claim to hold: "at most 30 minutes", "3.23 to 3.57 million"."""
    least, most = (
        signed(end) if row["unit"] == "points" else number(end, ".4g") for end in (row["least"], row["most"])
    )
    if math.isinf(row["most"]):
        return f"at least {least} {row['unit']}".strip()
    ends = f"at most {most}" if math.isinf(row["least"]) else f"{least} to {most}"
    return f"{ends} {row['unit']}".strip()


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A table of the claims, each once; the outcome stands second, where a phone still shows it.

    A claim on parameters is measured twice, because the proposal does not say whether the embedding matrix counts. Its row
    has both.
    """
    without = "; without the embedding matrix "
    rows = []
    for name, part in table.groupby("claim", sort=False):
        each = part.to_dict("records")
        outcomes = [one["outcome"] for one in each]
        rows.append(
            {
                "claim": name,
                "outcome": outcomes[0] if len(set(outcomes)) == 1 else without.join(outcomes),
                "measured": without.join(measured(one) for one in each),
                "counts as true if": region(each[0]),
                "what is measured": each[0]["how"],
            }
        )
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> list[Claim]:
    whole = table.drop_duplicates("claim")  # with the embedding matrix, as somebody who counts parameters would
    many = whole["outcome"].value_counts()
    return [
        claim(
            "Of {n} claims {right} hold, {wrong} do not hold, {open} are not settled, and {unmeasured} are not measured.",
            holds=len(whole) > 0,
            n=len(whole),
            right=int(many.get("holds", 0)),
            wrong=int(many.get("does not hold", 0)),
            open=int(many.get("not settled", 0)),
            unmeasured=int(many.get("not measured", 0)),
        )
    ]
