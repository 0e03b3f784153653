"""Sentences on the passes of a recurrent encoder: early exit, the use of later passes, and the worth of a pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtxstudy.evaluation.statistics import FEWEST_SEEDS, mean_interval
from rtxstudy.words.numbers import counted, higher, number, points, signed

FASTER = 1.5  # early exit aims for at least this throughput, relative to all passes
LOST = 0.002  # early exit may lose at most this accuracy, on average


def leaving_early(row: Mapping[str, Any]) -> str:
    """A row of :func:`rtxstudy.evaluation.exits.exit_differences` in words, with ``learned``.

    It says what was measured, whether that reaches the goal, and whether a fixed number of passes does as well.
    """
    if not row["learned"]:
        return (
            f"Early exit by **{row['criterion']}** ({row['model']} on {row['data']}) is not judged: with all passes the loop is "
            "not more accurate than the most frequent label."
        )
    interval = "" if math.isnan(row["low"]) else f" (95 % interval {signed(row['low'])} to {signed(row['high'])})"
    goal = row["throughput"] >= FASTER and row["difference"] >= -LOST
    few = "" if row["n_seeds"] >= FEWEST_SEEDS else f", but fewer than {FEWEST_SEEDS} seeds settle nothing"
    if math.isnan(row["fixed_passes"]):
        instead = "No fixed number of passes is as accurate."
    else:
        instead = (
            f"The smallest fixed number of passes that is at least as accurate as this exit is {row['fixed_passes']:.0f} "
            f"(chosen on the test texts). It has {row['fixed_throughput']:.2f} times the throughput of all passes, and its "
            f"accuracy minus theirs is {points(row['fixed_difference'])}"
            + ("; early exit is not needed." if row["fixed_throughput"] >= row["throughput"] else ".")
        )
    return (
        f"Early exit by **{row['criterion']}** ({row['model']} on {row['data']}, {counted(row['n_seeds'], 'seed')}) "
        f"has {row['throughput']:.2f} times the throughput of all passes, {row['throughput_least']:.2f} times in the "
        f"slowest seed, and takes {row['passes']:.2f} passes on average. Its accuracy is {higher(row['difference'])}"
        f"{interval}. The goal, {FASTER} times the throughput for a loss of at most {100 * LOST:.1f} points, is "
        f"{'reached' if goal else 'not reached'}{few}. {instead}"
    )


def loop_used(first: Sequence[float], last: Sequence[float], model: str, passes: int) -> str:
    """Whether a model is more accurate after all its passes than after one; accuracies (seeds,) of the same runs.

    A loop that the model ignores shows first in labels that are as good after one pass as after all.
    """
    gained = mean_interval(np.subtract(last, first))
    interval = f", 95 % interval over {gained.n} seeds {signed(gained.low)} to {signed(gained.high)}"
    if gained.n == 1:
        interval, shown = "", "one seed gives no interval"
    elif gained.low > 0:
        shown = "the later passes help on these texts"
    elif gained.high < 0:
        shown = "the later passes harm on these texts"
    else:
        shown = "the interval contains zero, so the later passes are not shown to help"
    if 1 < gained.n < FEWEST_SEEDS and not gained.low <= 0 <= gained.high:
        shown += f", but fewer than {FEWEST_SEEDS} seeds settle nothing"
    return (
        f"**{model}** reaches an accuracy of {np.mean(first):.3f} after the first pass and of {np.mean(last):.3f} "
        f"after {passes} ({points(gained.mean)}{interval}): {shown}."
    )


def worth(fit: Mapping[str, Any]) -> str:
    """Two sentences on φ: what it is, and how much it depends on single models.

    ``fit`` holds the fields of :class:`rtxstudy.evaluation.worth.Worth`, the name of its ``data``, and ``least`` and
    ``largest`` of :func:`rtxstudy.evaluation.worth.without_one_model`, ``seeds``, the fewest of a model, and ``learned``.
    """
    low, high = fit["low"], fit["high"]
    if not fit["learned"]:
        return (
            f"φ on **{fit['data']}** is withheld: not every encoder is more accurate than the most frequent label, so the errors "
            "do not say what a pass is worth."
        )
    if math.isnan(fit["phi"]):
        ends = [("at least", low), ("at most", high)]
        ends = [f"{word} {number(end, '.2f')}" for word, end in ends if math.isfinite(end)]
        known = f"; it is {' and '.join(ends)}" if ends else "; its interval has no limits"
        return f"These {fit['n']} runs on **{fit['data']}** do not determine φ{known}."
    ends = " to ".join(number(end, ".2f") if math.isfinite(end) else "no bound" for end in (low, high))
    if low > 1:
        shown = "more passes are worth more than as many separate layers"
    elif high < 0:
        shown = "more passes lower the accuracy"
    elif low > 0 and high < 1:
        shown = "more passes help, but less than as many separate layers"
    elif low > 0:
        shown = "more passes help; it is open whether they help as much as separate layers"
    elif high < 1:
        shown = "more passes are not shown to help, and they are worth less than as many separate layers"
    else:
        shown = "more passes are not shown to help"
    few = ""
    if fit.get("seeds", FEWEST_SEEDS) < FEWEST_SEEDS:  # tables of earlier reports do not have the number
        few = f", but fewer than {FEWEST_SEEDS} seeds of a model settle nothing"
    if math.isnan(fit["least"]):
        depends = "φ is undetermined if the runs of one of the models are left out"
    else:
        least, largest = (number(fit[end], ".2f") for end in ("least", "largest"))
        depends = f"If the runs of one model are left out, φ is between {least} and {largest}"
    return (
        f"On **{fit['data']}** φ = {number(fit['phi'], '.2f')} (95 % interval {ends}, n = {fit['n']} runs): {shown}{few}. "
        f"{depends}."
    )
