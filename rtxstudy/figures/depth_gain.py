"""The figure that carries the study: where depth pays, and how much of it a loop keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.figures.shared.checks import one_row_each, require
from rtxstudy.figures.shared.labels import place
from rtxstudy.figures.shared.looks import DASHED, FAINT, GREY, ink, square
from rtxstudy.figures.shared.scales import Percent, grid
from rtxstudy.figures.shared.style import canvas, styled

FURTHEST = 0.02  # to which an interval widens the frame on one side of its mark (0.01 = one percentage point)
NEAR = 0.04  # gains up to this are shown enlarged where others are larger
# Okabe and Ito's colours, which colour-blind readers tell apart, with a marker each
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
    near = (table[["depth_gain", "loop_gain"]].abs() <= NEAR).all(axis=1)
    apart = near.any() and not near.all()  # one far mark would press all others into a corner
    panels = [table[near], table] if apart else [table]
    cut = any(_cut(panel) for panel in panels)
    regimes = dict(zip(table["regime"].unique(), LOOKS, strict=False))
    figure, axes = canvas(
        title,
        f"Dashed: the loop keeps all. Filled: depth pays. Lines: 95\xa0%\xa0intervals{', cut at the frame' if cut else ''}."
        + ("" if table["learned"].all() else " Grey: no better than one label.")
        + (" Left: the square enlarged." if apart else ""),
        4.3 if apart else 4.6,
        columns=len(panels),
        key=[square(colour, regime, marker) for regime, (colour, marker) in regimes.items()],
        width_ratios=[2.3, 1][: len(panels)],
    )
    for ax, panel in zip(axes[0], panels, strict=True):
        _panel(ax, panel, regimes)
    axes[0, 0].xaxis.set_label_text("depth gain: deep − shallow (points)")
    axes[0, 0].yaxis.set_label_text("loop gain: loop − shallow (points)")
    _names(axes[0, 0], panels[0], panels[0], regimes)
    if apart:
        low, high = _frame(panels[0])
        axes[0, 1].add_patch(Rectangle((low, low), high - low, high - low, color=FAINT, zorder=0))
        _names(axes[0, 1], table[~near], table, regimes)
    return figure


Looks = Mapping[str, tuple[str, str]]  # regime → the colour and the marker of its marks


def _panel(ax: Axes, table: pd.DataFrame, regimes: Looks) -> None:
    """The marks with their intervals, the diagonal and the lines at zero."""
    for row in table.itertuples(index=False):
        colour, marker = _colour(row, regimes), regimes[row.regime][1]
        ax.plot([row.depth_low, row.depth_high], [row.loop_gain] * 2, color=colour, linewidth=1.1, alpha=0.4)
        ax.plot([row.depth_gain] * 2, [row.loop_low, row.loop_high], color=colour, linewidth=1.1, alpha=0.4)
        few = getattr(row, "n_seeds", FEWEST_SEEDS) < FEWEST_SEEDS
        face = colour if row.depth_low > 0 and row.learned and not few else "white"
        ax.plot(row.depth_gain, row.loop_gain, marker, color=colour, markersize=7.5, markerfacecolor=face, zorder=3)
    ends = _frame(table)
    ax.set(xlim=ends, ylim=ends, box_aspect=1, anchor="N")
    ax.plot(ends, ends, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    ax.axhline(0, color=GREY, linewidth=1, zorder=1)
    ax.axvline(0, color=GREY, linewidth=0.8, alpha=0.6, zorder=1)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(Percent())
    grid(ax, "both")


def _names(ax: Axes, table: pd.DataFrame, drawn: pd.DataFrame, regimes: Looks) -> None:
    """The task of each mark of ``table`` beside it, where none of the marks and lines that are ``drawn`` is in the way."""
    colours = [ink(_colour(row, regimes)) for row in table.itertuples(index=False)]
    low, high = ax.get_xlim()
    segments = [((low, low), (high, high)), ((low, 0), (high, 0)), ((0, low), (0, high))]
    for row in drawn.itertuples(index=False):
        segments.append(((max(row.depth_low, low), row.loop_gain), (min(row.depth_high, high), row.loop_gain)))
        segments.append(((row.depth_gain, max(row.loop_low, low)), (row.depth_gain, min(row.loop_high, high))))
    x, y = table["depth_gain"].to_numpy(), table["loop_gain"].to_numpy()
    others = drawn.loc[drawn.index.difference(table.index), ["depth_gain", "loop_gain"]].to_numpy()
    place(ax, x, y, table["data"].tolist(), np.full(len(table), 5.0), colours, segments=segments, others=others)


def _colour(row: Any, regimes: Looks) -> str:
    return regimes[row.regime][0] if row.learned else GREY


def _frame(table: pd.DataFrame) -> tuple[float, float]:
    """The ends of both axes: all marks and zero with a margin, and of each interval at most :data:`FURTHEST` on each side."""
    lows, highs = [0.0], [0.0]
    for of in ("depth", "loop"):
        marks = table[f"{of}_gain"]
        lows.append(np.maximum(table[f"{of}_low"], marks - FURTHEST).min())
        highs.append(np.minimum(table[f"{of}_high"], marks + FURTHEST).max())
    margin = 0.08 * (max(highs) - min(lows))
    return min(lows) - margin, max(highs) + margin


def _cut(table: pd.DataFrame) -> bool:
    """Whether an interval reaches beyond the frame."""
    low, high = _frame(table)
    lows, highs = (table[[f"depth_{end}", f"loop_{end}"]] for end in ("low", "high"))
    return bool((lows < low).any(axis=None) or (highs > high).any(axis=None))
