"""The figure that carries the study: where depth pays, and how much of it a loop keeps."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.figures.shared.checks import one_row_each, require
from rtxstudy.figures.shared.labels import place
from rtxstudy.figures.shared.looks import DASHED, GREY, ink, square
from rtxstudy.figures.shared.scales import Percent, grid
from rtxstudy.figures.shared.style import canvas, styled

# Okabe and Ito's colours, which colour-blind readers tell apart, with a marker each
FURTHEST = 0.03  # to which an interval widens the frame on one side of its mark (0.01 = one percentage point)
LOOKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#e69f00", "v"), ("#56b4e9", "P"))


@styled
def depth_gains(table: pd.DataFrame, title: str = "Where does depth pay, and how much of it does a loop keep?") -> Figure:
    """One mark per task and regime: what depth gains across, what a loop gains up, both with their 95 % intervals.

    ``table``: ``regime``, ``data``, ``depth_gain``, ``depth_low``, ``depth_high``, ``loop_gain``, ``loop_low``, ``loop_high``
    (0.01 = one percentage point), as :func:`rtxstudy.evaluation.depth_gain.depth_gain` gives them, one row for each pair of the
    first two. A mark is filled where the interval of the depth gain lies above zero, so where depth pays,
    and rests on three seeds or more. An optional column
    ``learned`` says whether an encoder is better than the majority class; other marks are grey. Raises ``InputError``
    for a missing column, an empty table, or a pair that occurs twice.
    """
    ends = ("depth_gain", "depth_low", "depth_high", "loop_gain", "loop_low", "loop_high")
    require(table, ("regime", "data", *ends), "depth_gains")
    one_row_each(table, ("regime", "data"), "depth_gains")
    table = table if "learned" in table else table.assign(learned=True)
    (left, right), (bottom, top) = frame = [_frame(table, of) for of in ("depth", "loop")]
    cut = any(
        (table[f"{of}_low"] < low).any() or (table[f"{of}_high"] > high).any()
        for of, (low, high) in zip(("depth", "loop"), frame, strict=True)
    )
    regimes = dict(zip(table["regime"].unique(), LOOKS, strict=False))
    figure, axes = canvas(
        title,
        "Points of accuracy. On the diagonal a loop keeps all that depth gains; on the level line it keeps nothing. "
        "Filled: depth pays (its interval lies above zero). Lines: 95 % intervals over new seeds and new texts."
        + (" A line that reaches the frame goes on beyond it." if cut else "")
        + ("" if table["learned"].all() else " Grey: no encoder is better than the majority class."),
        4.6,
        key=[square(colour, regime, marker) for regime, (colour, marker) in regimes.items()],
    )
    ax = axes[0, 0]
    colours = [regimes[row.regime][0] if row.learned else GREY for row in table.itertuples()]
    for row, colour in zip(table.itertuples(index=False), colours, strict=True):
        marker = regimes[row.regime][1]
        ax.plot([row.depth_low, row.depth_high], [row.loop_gain] * 2, color=colour, linewidth=1.2, alpha=0.5)
        ax.plot([row.depth_gain] * 2, [row.loop_low, row.loop_high], color=colour, linewidth=1.2, alpha=0.5)
        few = getattr(row, "n_seeds", FEWEST_SEEDS) < FEWEST_SEEDS
        face = colour if row.depth_low > 0 and row.learned and not few else "white"
        ax.plot(row.depth_gain, row.loop_gain, marker, color=colour, markersize=7.5, markerfacecolor=face, zorder=3)
    low, high = min(left, bottom), max(right, top)
    ax.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    ax.axhline(0, color=GREY, linewidth=1, zorder=1)
    ax.axvline(0, color=GREY, linewidth=0.8, alpha=0.6, zorder=1)
    ax.set(xlim=(left, right), ylim=(bottom, top))
    for axis, words in ((ax.xaxis, "depth gain: deep − shallow (points)"), (ax.yaxis, "loop gain: loop − shallow (points)")):
        axis.set_major_formatter(Percent())
        axis.set_label_text(words)
    grid(ax, "both")
    segments = [((low, low), (high, high)), ((left, 0), (right, 0))]
    x, y = table["depth_gain"].to_numpy(), table["loop_gain"].to_numpy()
    place(ax, x, y, table["data"].tolist(), np.full(len(table), 5.0), list(map(ink, colours)), segments=segments)
    return figure


def _frame(table: pd.DataFrame, of: str) -> tuple[float, float]:
    """The ends of an axis: all marks and zero with a margin, and of each interval at most :data:`FURTHEST` on each side."""
    marks = table[f"{of}_gain"]
    low = min(0.0, np.maximum(table[f"{of}_low"], marks - FURTHEST).min())
    high = max(0.0, np.minimum(table[f"{of}_high"], marks + FURTHEST).max())
    margin = 0.08 * (high - low)
    return low - margin, high + margin
