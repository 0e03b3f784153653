"""Sentences on the passes of a recurrent encoder: early exit, the use of later passes, and the worth of a pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS, mean_interval
from rtxstudy.numbers import counted, interval, number, points

FASTER = 1.5  # early exit aims for at least this throughput, relative to all passes
LOST = 0.002  # early exit may lose at most this accuracy, on average


def leaving_early(table: pd.DataFrame) -> str:
    """What leaving early gains, a line for each model and data set.

    table: of :func:`rtxstudy.evaluation.exits.exit_differences`, with ``learned``. A line names the rules that reach the goal,
    and those that a fixed number of passes beats.
    """
    loops = table.groupby(["model", "data"], sort=False)
    return "\n".join(f"- **{model}** on {data}: {_of_loop(own)}" for (model, data), own in loops)


def _of_loop(rows: pd.DataFrame) -> str:
    if not rows["learned"].all():
        return "not judged, because the loop with all passes is not more accurate than the most frequent label."
    reach = rows.loc[(rows["throughput"] >= FASTER) & (rows["difference"] >= -LOST), "criterion"]
    goal = f"the goal, {FASTER} times the throughput of all passes for a loss of at most {100 * LOST:.1f} points"
    said = f"leaving by {' or '.join(reach)} reaches {goal}." if len(reach) else f"no rule reaches {goal}."
    beaten = rows.loc[rows["fixed_throughput"] >= rows["throughput"], "criterion"]
    if len(beaten):
        which = "each rule" if len(beaten) == len(rows) else " and ".join(beaten)
        said += f" For {which} there is a fixed number of passes that is as accurate and as fast, so leaving early is not needed."
    few = rows["n_seeds"].min() < FEWEST_SEEDS
    return said + (f" Fewer than {FEWEST_SEEDS} seeds settle nothing." if few else "")


def loop_used(first: Sequence[float], last: Sequence[float], model: str, passes: int, texts: int) -> str:
    """Whether a model is more accurate after all its passes than after one; accuracies (seeds,) of the same runs.

    A loop that the model ignores shows first in labels that are as good after one pass as after all. The labels of single texts
    are not kept by pass, so the interval covers new seeds and not new texts; the sentence says so. ``texts``: how many there are.
    """
    gained = mean_interval(np.subtract(last, first))
    on = f"on these {texts:,} texts"
    over = f", {interval(gained.low, gained.high)} over {gained.n} seeds, {on}"
    if gained.n < FEWEST_SEEDS:
        over, shown = f" {on}", f"{counted(gained.n, 'seed')} {'gives' if gained.n == 1 else 'give'} no interval"
    elif gained.low > 0:
        shown = "the later passes raise the accuracy on these texts, and new texts may differ"
    elif gained.high < 0:
        shown = "the later passes lower the accuracy on these texts, and new texts may differ"
    else:
        shown = "the interval contains zero, so the later passes are not shown to help"
    return (
        f"**{model}** reaches an accuracy of {np.mean(first):.3f} after the first pass and of {np.mean(last):.3f} "
        f"after {passes} ({points(gained.mean)}{over}): {shown}."
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
