"""Sentences on the tasks composed of real phrases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.numbers import interval, points, signed

AT_CHANCE = 0.5  # of two labels that are equally frequent
NO_POINTERS = (  # for a profile whose composed tasks have no pointers
    "A second composed task asks a model to follow pointers from phrase to phrase. It was tried once, with one seed, and it was "
    "not learned: [LOG.md](../LOG.md) has the result (2026-11-23)."
)


def by_steps(accuracy: pd.DataFrame, gains: pd.DataFrame) -> str:
    """One line per task and number of steps: what is learned, and what depth and the loop gain there.

    ``accuracy``: of :func:`rtxstudy.evaluation.composed.by_steps`; ``gains``: of ``gains_by_steps`` there, of the same tasks.
    """
    lines = []
    for row in gains.to_dict("records"):
        own = accuracy[(accuracy["data"] == row["data"]) & (accuracy["steps"] == row["steps"])].set_index("arm")
        if row["n_seeds"] < FEWEST_SEEDS:
            shown = f"fewer than {FEWEST_SEEDS} seeds settle nothing"
        elif not (own["low"] > AT_CHANCE).any():
            shown = "no encoder is shown to do better than chance"
        elif row["depth_low"] > 0:
            shown = "depth pays" + (", and the loop keeps some of it" if row["kept_low"] > 0 else "")
        else:
            shown = "depth is not shown to pay"
        reached = ", ".join(f"{arm} {own.loc[arm, 'mean']:.3f}" for arm in ("deep", "shallow", "loop"))
        gained = f"{points(row['depth_gain'])} ({signed(row['depth_low'])} to {signed(row['depth_high'])})"
        lines.append(f"- **{row['data']}**, k = {row['steps']}: {reached}; deep − shallow {gained}: {shown}.")
    return "\n".join(lines)


def answered(gains: pd.DataFrame, untried: str = "") -> str:
    """Whether depth pays on each composed task, and whether the loop does: a paragraph each, and ``untried`` as the last one.

    ``gains``: of :func:`rtxstudy.evaluation.composed.gains`, with the column ``learned``.
    """
    return "\n\n".join([*(_answer(row) for row in gains.to_dict("records")), *([untried] if untried else [])])


def _answer(row: Mapping[str, Any]) -> str:
    if not row["learned"]:
        return f"On **{row['data']}** no encoder is shown to beat the most frequent label, so the task says nothing about depth."
    depth, loop = (
        f"{points(row[f'{of}_gain'])} ({interval(row[f'{of}_low'], row[f'{of}_high'])})"
        for of in ("depth", "loop")
    )
    said = f"On **{row['data']}** the deep encoder gains {depth} over the shallow one, and the loop {loop}."
    if row["n_seeds"] < FEWEST_SEEDS:
        return f"{said} Fewer than {FEWEST_SEEDS} seeds settle nothing."
    if row["depth_low"] <= 0:
        return f"{said} So depth is not shown to pay here."
    kept = "the loop keeps at least a part of its gain"
    return f"{said} So depth pays here, and {kept if row['kept_low'] > 0 else 'the loop is not shown to keep any of its gain'}."


def same_level(reached: pd.DataFrame, p: float, bound: float) -> str:
    """What the encoders reach on *same*, beside two judgements of single phrases.

    ``reached``: rows of *same* of :func:`rtxstudy.evaluation.composed.by_steps`. ``p``: how often counting words is right about
    one phrase. ``bound``: how often it is then right about a pair.
    """
    best = reached.loc[reached["mean"].idxmax()]
    ends = f"{best['low']:.3f} to {best['high']:.3f}"
    above = "does better than chance" if best["low"] > AT_CHANCE else "is not shown to do better than chance"
    return (
        f"Counting words tells the sentiment of one short phrase with an accuracy of {p:.3f}. Judging both phrases so well and "
        f"comparing them gives {bound:.3f} on **{best['data']}**. The best arm, {best['arm']}, reaches {best['mean']:.3f} "
        f"({ends}, n = {best['n']:.0f} seeds): it {above}."
    )


def further_passes(table: pd.DataFrame) -> str:
    """Whether more passes than in training help on more steps than in training, one line per loop.

    ``table``: of :func:`rtxstudy.evaluation.composed.by_passes`.
    """
    beyond = table[table["steps"] > table["trained_steps"]]
    lines = []
    for (model, steps, passes), own in beyond.groupby(["model", "trained_steps", "trained_passes"], sort=False):
        means = own.groupby("passes")["mean"].mean()
        best = means.idxmax()
        ends = own[own["passes"] == best]
        if own["n"].min() < FEWEST_SEEDS:
            shown = f"Fewer than {FEWEST_SEEDS} seeds settle nothing."
        elif not (ends["low"] > AT_CHANCE).any():
            shown = "It is not shown to be above chance for any number of steps."
        else:
            clear = ", ".join(str(k) for k in ends.loc[ends["low"] > AT_CHANCE, "steps"])
            shown = f"It is above chance for k = {clear}."
        lines.append(
            f"- **{model}** reaches {means[passes]:.3f} on texts of more than {steps} steps after the {passes} passes of its "
            f"training. The highest accuracy, {means[best]:.3f}, is that of R = {best}. {shown}"
        )
    return "\n".join(lines)
