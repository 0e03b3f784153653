"""Sentences that compare the accuracy of two models, or of one model with an aim."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.numbers import counted, points, signed


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


def smallest(row: Mapping[str, Any]) -> str:
    """One sentence on the smallest difference that a comparison could detect; it stands before the result.

    row: of the functions that also compare. The smallest detectable difference is computed from the spread over seeds (or blocks)
    and texts, and not from the difference itself. Without a spread there is no estimate, and no difference of accuracies is
    larger than 100 points.
    """
    unit = counted(row["n_seeds"], "seed") if "n_seeds" in row else counted(row["blocks"], "block")
    name = row["comparison"] if "comparison" in row else f"{row['passes']} passes − {row['against']}"
    if row["smallest"] == 0:
        shown = "the difference is the same for every seed and text, so the smallest detectable difference cannot be estimated"
    elif row["smallest"] > 1:
        shown = "no difference would be shown four times in five"
    else:
        shown = f"a true difference of {100 * row['smallest']:.1f} points would be shown four times in five"
    return f"**{name}** ({unit} × {row['n_items']:,} texts of {row['data']}): {shown}."


def beside_words(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.evaluation.further_data.against_best_words`: whether a model is at or above it."""
    a, b = row["comparison"].split(" − ")
    n = f"{counted(row['n_seeds'], 'seed')} × {row['n_items']:,} texts of {row['data']}"
    measured = f"**{a}** minus **{b}**, the best classical baseline at the same rows: {points(row['difference'])} of accuracy"
    if row["low"] > 0:
        shown = f"{a} is above it"
    elif row["high"] < 0:
        shown = f"{a} is below it"
    else:
        shown = f"on average {a} is {'at it or above' if row['difference'] >= 0 else 'below it'}, and the interval contains zero"
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
        if row.get("seeds", 1) < FEWEST_SEEDS:  # tables of earlier reports have no such column; their blocks had one seed
            shown += f", but fewer than {FEWEST_SEEDS} seeds of a block settle nothing"
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


def away_from_home(matrix: pd.DataFrame) -> str:
    """What each model keeps on data of another source; columns model, trained_on, tested_on, mean."""
    lines = []
    for model, own in matrix.groupby("model", sort=False):
        home = own["trained_on"] == own["tested_on"]
        worst = own[~home].loc[own.loc[~home, "mean"].idxmin()]
        lines.append(
            f"- **{model}**: {own.loc[home, 'mean'].mean():.1%} on average on the test texts of its training data, "
            f"{own.loc[~home, 'mean'].mean():.1%} on the other data. The lowest accuracy is {worst['mean']:.1%}, trained on "
            f"{worst['trained_on']} and tested on {worst['tested_on']}."
        )
    return "\n".join(lines)


def carried(transfer: pd.DataFrame, home: str, away: str) -> str:
    """What each model keeps on other data; columns model, tested_on, mean."""
    means = transfer.pivot(index="model", columns="tested_on", values="mean")
    return "\n".join(
        f"- **{model}**: {row[home]:.1%} on {home}, {row[away]:.1%} on {away}: {points(row[away] - row[home])}."
        for model, row in means.iterrows()
    )
