"""Sentences on where depth pays, and how much of its gain a loop keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from statsmodels.stats.multitest import multipletests

from rtxstudy.evaluation.statistics import CONFIDENCE, FEWEST_SEEDS
from rtxstudy.numbers import counted, margin_points, number, points, signed


def kept(row: Mapping[str, Any]) -> str:
    """What a loop keeps of the depth gain, for a cell of a table; a row of :func:`rtxstudy.evaluation.depth_gain.depth_gain`."""
    if not row["learned"]:
        return "no encoder beats the majority class"
    if math.isnan(row["kept"]):
        return "no depth gain shown"
    ends = f"{number(100 * row['kept_low'], '.0f')} to {number(100 * row['kept_high'], '.0f')} %"
    few = "" if row["n_seeds"] >= FEWEST_SEEDS else f"; fewer than {FEWEST_SEEDS} seeds settle nothing"
    return f"{number(100 * row['kept'], '.0f')} % ({ends}){few}"


def chosen_conversion(table: pd.DataFrame) -> str:
    """Which way to make a loop validation accuracy chooses; ``table`` of :func:`rtxstudy.evaluation.depth_gain.conversions`.

    The first row is the loop of the study; the sentence says so if another one is chosen.
    """
    if len(table) == 1:
        return f"Only one way is tried here: {_way(table.iloc[0])}. Whether another way is better is not measured."
    best, taken, ours = table.loc[table["val_accuracy"].idxmax()], table[table["taken"]].iloc[0], table.iloc[0]
    error, n = number(100 * taken["standard_error"], ".1f"), taken["texts"]
    highest = f"{_way(best).capitalize()} has the highest validation accuracy, {best['val_accuracy']:.3f}"
    if best.name == taken.name:
        said = (
            f"{highest}, on {n:,} texts (standard error {error} points). No way within one standard error has fewer "
            "parameters, so it is taken."
        )
    else:
        said = (
            f"{highest}. With {n:,} texts its standard error is {error} points. Of all ways within one standard error, "
            f"{_way(taken)} has the fewest parameters, so it is taken."
        )
    if not ours["taken"]:
        said += f" **The loop of this study is another one:** {_way(ours)}, with {ours['val_accuracy']:.3f}."
    return said


def found_by_embeddings(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.evaluation.converted_embeddings.differences`: whose neighbours fit better."""
    a, b = row["comparison"].split(" − ")
    if row["low"] <= 0 <= row["high"]:
        shown = "the interval contains zero, so no difference is shown"
    else:
        shown = f"{a if row['low'] > 0 else b} finds more"
    ends = f"95 % interval {signed(row['low'])} to {points(row['high'])}, {row['n']:,} texts"
    return f"**{a}** minus **{b}**, {row['panel']}: {points(row['difference'])} ({ends}): {shown}."


def small_vocabulary(table: pd.DataFrame, margin: float = 0.01) -> str:
    """How many of the smallest loops are as good as the whole encoder, and the smallest of these.

    table: of :func:`rtxstudy.evaluation.small_vocabulary.against_whole`. margin: the accuracy that a replacement may lose.
    """
    near, far = table[table["low"] > -margin], table[table["high"] < -margin]
    limit = margin_points(margin)
    said = f"Of {counted(len(table), 'loop')}, {len(near)} lose less than {limit} to the whole encoder, and {len(far)} lose more."
    if len(table) > len(near) + len(far):
        said += " The others are not settled."
    if len(near):
        least = near.loc[near["small_parameters"].idxmin()]
        said += f" The smallest that loses less has {least['small_parameters'] / 1e6:.1f} million parameters ({least['data']})."
    return said


def deployed(row: Mapping[str, Any]) -> str:
    """One sentence on an arm in eight bits: a row of :func:`rtxstudy.evaluation.deployed.compared`."""
    share, ends = row["bytes"] / row["whole_bytes"], f"{signed(row['low'])} to {signed(row['high'])}"
    n = f"{counted(row['n_seeds'], 'seed')} × {row['n_items']:,} texts"
    return (
        f"**{row['arm'].capitalize()}**, {row['data']}: in eight bits it takes {row['bytes'] / 1e6:.1f} MB, "
        f"{number(100 * share, '.0f')} % of its bytes in float32. Its accuracy changes by {points(row['difference'])} "
        f"({ends}, {n})."
    )


def rounding(table: pd.DataFrame) -> str:
    """How large the error of eight bits is; ``table`` of :func:`rtxstudy.evaluation.deployed.rounding`."""
    said = []
    for arm, rows in table.groupby("arm", sort=False):
        errors = " and ".join(number(error, ".3f") for error in rows.sort_values("passes")["error"])
        passes = "" if len(rows) == 1 else f" after {' and '.join(map(str, sorted(rows['passes'])))} passes"
        said.append(f"{arm} {errors}{passes}")
    return (
        "The error of rounding in the mean state of a text, as a share of the spread of the states: " + "; ".join(said) + "."
    )


def _way(row: pd.Series) -> str:
    words = f"{row['start']} layers, {row['layers']}×{row['passes']}"
    return f"{words}, {row['beside']}" if row["beside"] else words


def where_depth_pays(rows: pd.DataFrame) -> str:
    """The answer of all rows in a few sentences: where depth pays, where a loop keeps it, and where it does not."""
    enough = rows[rows["n_seeds"] >= FEWEST_SEEDS]
    if enough.empty:
        return f"Fewer than {FEWEST_SEEDS} seeds settle nothing."
    settled = enough[enough["learned"]]
    pays = settled[settled["kept"].notna()]
    lines = [f"Depth pays in {len(pays)} of {counted(len(settled), 'comparison')}."]
    if len(pays):
        after = pays[multipletests(settled["depth_p"], method="holm")[1][settled["kept"].notna()] < 1 - CONFIDENCE]
        where = f": {named(after)}" if len(after) else ""
        lines.append(f"With Holm's correction for the number of comparisons it is shown in {len(after) or 'none'}{where}.")
    some, whole = pays["kept_low"] > 0, pays["kept_high"] >= 1
    for words, chosen in (
        ("The loop keeps a part of the gain, but not all of it", some & ~whole),
        ("It keeps a part of the gain, and perhaps all of it", some & whole),
        ("These runs do not show that the loop gains anything", ~some),
    ):
        if chosen.any():
            lines.append(f"{words}: {named(pays[chosen])}.")
    costs = settled["depth_high"] < 0
    for words, chosen in (
        ("No gain from depth is shown", settled["kept"].isna() & ~costs),
        ("The deep encoder is less accurate than the shallow one", costs),
    ):
        if chosen.any():
            lines.append(f"{words}: {named(settled[chosen])}.")
    if len(enough) > len(settled):
        not_learned = named(enough[~enough["learned"]])
        lines.append(f"Not counted, because no encoder is better than the majority class: {not_learned}.")
    return " ".join(lines)


def what_to_use(rows: pd.DataFrame, margin: float = 0.01) -> str:
    """Which of the three encoders to take on each task, as a list. margin: the accuracy that a replacement may lose."""
    settled = rows[(rows["n_seeds"] >= FEWEST_SEEDS) & rows["learned"]]
    pays, flat = settled[settled["kept"].notna()], settled[settled["kept"].isna()]
    limit = margin_points(margin)
    groups = (
        (f"Take the shallow encoder, because the deep one is less than {limit} better", flat[flat["depth_high"] < margin]),
        (
            f"No gain from depth is shown, but a gain of {limit} or more is not ruled out. The shallow encoder is cheaper",
            flat[flat["depth_high"] >= margin],
        ),
        (
            f"Take the loop if memory counts, because it loses less than {limit} to the deep encoder",
            pays[replacing(pays, margin)],
        ),
        (
            f"The loop loses less than {limit} to the deep encoder, but it is not shown to be better than the shallow one, which "
            "takes less time. Take the deep encoder if its gain counts, and the shallow one if not",
            pays[(pays["sharing_low"] > -margin) & ~replacing(pays, margin)],
        ),
        (f"Take the deep encoder, because the loop loses more than {limit}", pays[pays["sharing_high"] < -margin]),
        (
            f"These runs do not settle whether the loop loses more than {limit} to the deep encoder",
            pays[(pays["sharing_low"] <= -margin) & (pays["sharing_high"] >= -margin)],
        ),
    )
    return "\n".join(f"- {words}: {named(chosen)}." for words, chosen in groups if len(chosen))


def replacing(pays: pd.DataFrame, margin: float) -> pd.Series:
    """For each row where depth pays, whether the loop loses less than the margin to the deep encoder and beats the shallow one.

    A loop that is not shown to gain replaces nothing: the shallow encoder may be as good, and takes less time.
    """
    return (pays["sharing_low"] > -margin) & (pays["loop_low"] > 0)


def named(rows: pd.DataFrame) -> str:
    """The tasks of some rows, each with its ways of training: "a (x; y), b (x)"."""
    return ", ".join(f"{data} ({'; '.join(of['regime'])})" for data, of in rows.groupby("data", sort=False))
