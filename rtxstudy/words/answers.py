"""The answer of the headline comparison, in Markdown."""

from __future__ import annotations

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.numbers import number, points


def answer(standard: str, recurrent: str, comparisons: pd.DataFrame, margin: float) -> str:
    """Whether the recurrent encoder replaces the standard one, and on which data.

    ``comparisons``: rows of :func:`rtxstudy.evaluation.comparisons.compare`, the one with the most seeds first. ``margin``: the
    loss of accuracy that a replacement may have.

    The answer for a data set is yes if the whole interval lies above −margin, and no if it lies below. Any other interval
    settles nothing, and neither do fewer than three seeds.
    """
    rows = comparisons[comparisons["comparison"] == f"{recurrent} − {standard}"].drop_duplicates("data")
    if rows.empty:
        return f"No run has compared **{recurrent}** with **{standard}** yet."
    limit = f"{number(-100 * margin, 'g')} percentage point{'' if margin == 0.01 else 's'}"
    lines = [
        f"Does **{recurrent}** replace **{standard}**? "
        f"The answer is yes where the whole interval lies above {limit}, and no where it lies below. "
        f"Fewer than {FEWEST_SEEDS} seeds settle nothing.",
        "",
        *_replaced(rows, margin),
    ]
    return "\n".join(lines)


def _replaced(rows: pd.DataFrame, margin: float) -> list[str]:
    """The data sets on which the answer is yes, no or open, and each yes that one seed decides."""
    settled = rows[rows["n_seeds"] >= FEWEST_SEEDS]  # with fewer seeds an interval says little about new ones
    yes, no = settled[settled["low"] > -margin], settled[settled["high"] < -margin]
    undecided = rows[~rows["data"].isin([*yes["data"], *no["data"]])]
    lines = [
        f"- **{word}**: {', '.join(part['data'])}"
        for word, part in (("yes", yes), ("no", no), ("not settled by these runs", undecided))
        if len(part)
    ]
    narrow = yes[yes["low_without"] <= -margin]
    return lines + [
        f"- The yes on {data} is narrow: without one of its seeds the interval can begin at {points(low)}."
        for data, low in zip(narrow["data"], narrow["low_without"], strict=True)
    ]
