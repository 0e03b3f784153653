"""Growth of cost: time by the amount of work, memory by the length of a text."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxstudy.figures.checks import positive, require
from rtxstudy.figures.looks import GREY, OKABE, ink
from rtxstudy.figures.scales import grid, logarithmic
from rtxstudy.figures.style import canvas, styled

_MARKS = ("o", "D", "s", "^")
_SHADES = (OKABE["blue"], OKABE["vermillion"], OKABE["green"], OKABE["purple"])


@styled
def time_by_work(table: pd.DataFrame, title: str = "What does eight times the work cost?") -> Figure:
    """Measured time against units of work: one line per kind of work, the fit of a fixed time and a slope.

    ``table``: ``work`` (rows, passes, layers, …), ``units`` (of work), ``ms`` (measured), ``fixed_ms`` and
    ``slope_ms`` (the fit, the same in all rows of one kind of work). Raises ``InputError`` for a missing column or an
    empty table.
    """
    require(table, ("work", "units", "ms", "fixed_ms", "slope_ms"), "time_by_work")
    key, lines = [], []
    for (work, part), shade, marker in zip(table.groupby("work", sort=False), _SHADES, _MARKS, strict=False):
        fixed, slope = part["fixed_ms"].iloc[0], part["slope_ms"].iloc[0]
        label = f"{work}: {fixed:.1f} ms + {slope:.1f} ms a unit"
        key.append(Line2D([], [], color=shade, marker=marker, linewidth=1.6, label=label))
        lines.append((part, fixed, slope, shade, marker))
    figure, axes = canvas(
        title, "Points: measured; lines: a fixed part and a slope, by least squares.", 3.4, rows=1, key=key
    )
    ax = axes[0, 0]
    for part, fixed, slope, shade, marker in lines:
        most = part["units"].max()
        ax.plot([0, most], [fixed, fixed + slope * most], color=shade, linewidth=1.6)
        ax.plot(part["units"], part["ms"], marker, color=shade, markersize=7, markeredgecolor="white")
    ax.set(xlabel="units of work (1 = the least)", ylabel="forward and backward (ms)", xlim=(0, None))
    ax.set_ylim(bottom=0)
    grid(ax, "y")
    return figure


@styled
def memory_by_length(table: pd.DataFrame, title: str = "How much memory does a long text take?") -> Figure:
    """The memory that attention adds, by the length of a text. Both axes are logarithmic; the slope is the exponent.

    ``table``: ``path`` (how attention is computed), ``tokens``, ``mb`` (positive), ``exponent`` (fitted, the same in
    all rows of one path). Raises ``InputError`` for a missing column, an empty table, or memory not above zero.
    """
    require(table, ("path", "tokens", "mb", "exponent"), "memory_by_length")
    positive(table, ("mb",), "memory_by_length")
    figure, axes = canvas(
        title, "One layer, one text; the exponent is the slope of a straight line through the points.", 3.4, rows=1
    )
    ax = axes[0, 0]
    for (path, part), shade, marker in zip(table.groupby("path", sort=False), _SHADES, _MARKS, strict=False):
        mark = {"marker": marker, "markersize": 7, "markeredgecolor": "white"}
        ax.plot(part["tokens"], part["mb"], color=shade, linewidth=1.6, **mark)
        last = part.iloc[-1]
        ax.annotate(
            f"{path}: N^{last['exponent']:.2f}",
            (last["tokens"], last["mb"]),
            xytext=(-8, 6),
            textcoords="offset points",
            ha="right",
            color=ink(shade),
            weight="bold",
        )
    for axis in (ax.xaxis, ax.yaxis):
        logarithmic(axis)
    tokens = sorted(table["tokens"].unique())
    ax.set_xticks(tokens, [f"{t // 1024}k" if t >= 1024 else str(t) for t in tokens])
    ax.set(xlabel="tokens of the text (k = 1,024)", ylabel="memory added (MB)")
    ax.margins(0.08, 0.12)
    ax.grid(True)
    ax.tick_params(length=0, labelcolor=GREY)
    return figure
