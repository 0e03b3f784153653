"""Sentences that compare the accuracy of two models, or of one model with an aim."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.words.numbers import counted, points, signed

FEWEST_SEEDS = 3  # for a yes or a no


def verdict(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.evaluation.comparisons.compare`: what it measures and what it shows."""
    a, b = row["comparison"].split(" − ")
    n = f"{counted(row['n_seeds'], 'seed')} × {row['n_items']:,} texts of {row['data']}"
    measured = f"**{a}** minus **{b}**: {points(row['difference'])} of accuracy"
    if math.isnan(row["low"]):
        return f"{measured} ({n}; no interval)."
    if row["low"] <= 0 <= row["high"]:
        shown = "the interval contains zero, so no difference is shown"
    else:
        shown = f"{a if row['low'] > 0 else b} is more accurate"
        if row["n_seeds"] < FEWEST_SEEDS:
            shown += f", but fewer than {FEWEST_SEEDS} seeds settle nothing"
    return f"{measured} (95 % interval {signed(row['low'])} to {points(row['high'])}, {n}): {shown}."


def over_blocks(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.evaluation.comparisons.over_blocks`: what more passes change."""
    passes = row["passes"]
    other = "one pass through them" if row["against"] == "one pass" else f"{passes} times as many separate layers"
    if row["low"] <= 0 <= row["high"]:
        shown = "the interval contains zero, so no difference is shown"
    else:
        shown = f"{passes} passes are {'more' if row['low'] > 0 else 'less'} accurate"
    return (
        f"**{passes} passes** through the same layers minus **{other}**: {points(row['difference'])} of accuracy on "
        f"average over {counted(row['blocks'], 'block')} (95 % interval {signed(row['low'])} to {points(row['high'])}, "
        f"{row['n_items']:,} texts of {row['data']}): {shown}."
    )


def reached(runs: pd.DataFrame, model: str, value: str, aim: float) -> str:
    """One sentence on whether the mean ``value`` (0..1) of a model's runs reaches an aim, with every run's value."""
    own = runs.loc[runs["model"] == model, value]
    verb = "reaches" if own.mean() >= aim else "does not reach"
    each = ", ".join(f"{score:.3f}" for score in own)
    return f"**{model}** {verb} the aim of {aim:.2f} on average: {value} {own.mean():.3f} (n = {len(own)}: {each})."


def carried(transfer: pd.DataFrame, home: str, away: str) -> str:
    """What each model keeps on other data; columns model, tested_on, mean."""
    means = transfer.pivot(index="model", columns="tested_on", values="mean")
    return "\n".join(
        f"- **{model}**: {row[home]:.1%} on {home}, {row[away]:.1%} on {away}: {points(row[away] - row[home])}."
        for model, row in means.iterrows()
    )
