"""Titles of figures that state what was found, in a line. Each is computed from the table that the figure draws.

Notebooks import this module itself. A title names an id; the figure writes the name (:mod:`rtxstudy.names`).
"""

from __future__ import annotations

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.words.numbers import counted

_ALIKE = 0.01  # accuracies that differ by less are called alike


def accuracy(runs: pd.DataFrame, value: str = "accuracy") -> str:
    """Which model is the most accurate, and how far the others are. ``runs``: ``model`` and ``value``, one row per run."""
    means = runs.groupby("model")[value].mean().sort_values(ascending=False)
    means = means.drop("majority class", errors="ignore")
    if len(means) < 2:
        return f"{means.index[0]} reaches {_percent(means.iloc[0])}"
    behind = means.iloc[0] - means.iloc[1]
    if means.iloc[0] - means.iloc[-1] < _ALIKE:
        return f"The models lie within {_points(means.iloc[0] - means.iloc[-1])} of each other"
    if behind < _ALIKE:
        return f"{means.index[0]} and {means.index[1]} lead, {_points(behind)} apart"
    return f"{means.index[0]} leads by {_points(behind)}"


def frontier(table: pd.DataFrame, on: pd.Series, cost: str) -> str:
    """Who stands on the frontier. ``table``: ``model``, ``family``; ``on``: whether each is; ``cost``: what is paid, in words."""
    families = table.loc[on, "family"].value_counts()
    named = " and ".join(f"{number} {family}" for family, number in families.items())
    return f"No other encoder is as accurate for less {cost}: {named} of {len(table)}"


def best_cell(table: pd.DataFrame) -> str:
    """The best cell of the grid. ``table``: ``model``, ``mean``."""
    best = table.sort_values("mean", ascending=False).iloc[0]
    spread = table["mean"].max() - table["mean"].min()
    return f"{best['model']} is the best, and the worst is {_points(spread)} behind"


def by_size(table: pd.DataFrame) -> str:
    """What more training texts gain. ``table``: ``model``, ``train_rows``, ``mean``."""
    ends = table.sort_values("train_rows").groupby("model", sort=False)["mean"].agg(["first", "last"])
    gains = 100 * (ends["last"] - ends["first"])
    least, most = table["train_rows"].min(), table["train_rows"].max()
    gained = f"{gains.min():.0f}" if round(gains.min()) == round(gains.max()) else f"{gains.min():.0f} to {gains.max():.0f}"
    return f"From {least:,} to {most:,} texts the encoders gain {gained} points".replace("-", "−")


def by_length(table: pd.DataFrame) -> str:
    """Who leads on which lengths. ``table``: ``model``, ``lengths``, ``mean``."""
    wins = table.loc[table.groupby("lengths", sort=False)["mean"].idxmax()].set_index("lengths")["model"]
    if wins.nunique() == 1:
        return f"{wins.iloc[0]} has the higher mean at every length"
    return "; ".join(f"{model} leads on the {lengths} texts" for lengths, model in wins.items() if lengths != "all")


def carried(table: pd.DataFrame, home: str, away: str) -> str:
    """How much accuracy changes from home to away. ``table``: ``model``, ``tested_on``, ``mean``."""
    means = table.pivot_table(index="model", columns="tested_on", values="mean")
    change = 100 * (means[away] - means[home])
    low, high = f"{change.min():+.0f}".replace("-", "−"), f"{change.max():+.0f}".replace("-", "−")
    return f"From {home} to {away} accuracy changes by {low if low == high else f'{low} to {high}'} points"


def differences(table: pd.DataFrame, against: str) -> str:
    """How many changes differ from a base. ``table``: ``low``, ``high``, ``n_seeds``."""
    better = ((table["low"] > 0) & (table["n_seeds"] >= FEWEST_SEEDS)).sum()
    worse = ((table["high"] < 0) & (table["n_seeds"] >= FEWEST_SEEDS)).sum()
    return f"Of {counted(len(table), 'change')} to {against}, {better or 'none'} {_is(better)} better and {worse or 'none'} worse"


def _is(n: int) -> str:
    return "is" if n <= 1 else "are"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(difference: float) -> str:
    return f"{100 * difference:.1f} points"
