"""How cost grows: time with the work, memory with the length of a text."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxstudy.figures import lines, style
from rtxstudy.figures.style import GREY, canvas, ink, require, styled

_OKABE = [to_hex(colour) for colour in mpl.color_sequences["okabe_ito"]]
_MARKS = ("o", "D", "s", "^")
_SHADES = (_OKABE[5], _OKABE[6], _OKABE[3], _OKABE[7])


@styled
def time_by_work(table: pd.DataFrame, title: str = "What does eight times the work cost?") -> Figure:
    """Measured time against units of work, a line a kind of work, through a fixed part and a slope fitted to all its points.

    ``table``: ``work`` (rows, iterations, layers, …), ``units`` (of work), ``ms`` (measured), ``fixed_ms`` and ``slope_ms``
    (the fit, the same in all rows of one work). Raises ``InputError`` for a missing column or an empty table.
    """
    require(table, ("work", "units", "ms", "fixed_ms", "slope_ms"), "time_by_work")
    key, drawn = [], []
    for (work, part), shade, marker in zip(table.groupby("work", sort=False), _SHADES, _MARKS, strict=False):
        fixed, slope = part["fixed_ms"].iloc[0], part["slope_ms"].iloc[0]
        label = f"{work}: {fixed:.1f} ms + {slope:.1f} ms a unit"
        key.append(Line2D([], [], color=shade, marker=marker, linewidth=1.6, label=label))
        drawn.append((part, fixed, slope, shade, marker))
    figure, axes = canvas(
        title, "Points: measured; lines: a fixed part and a slope, by least squares.", 3.4, rows=1, key=key
    )
    ax = axes[0, 0]
    for part, fixed, slope, shade, marker in drawn:
        most = part["units"].max()
        ax.plot([0, most], [fixed, fixed + slope * most], color=shade, linewidth=1.6)
        ax.plot(part["units"], part["ms"], marker, color=shade, markersize=7, markeredgecolor="white")
    ax.set(xlabel="units of work (1 = the least)", ylabel="forward and backward (ms)", xlim=(0, None))
    ax.set_ylim(bottom=0)
    style.grid(ax, "y")
    return figure


@styled
def memory_by_length(table: pd.DataFrame, title: str = "How much memory does a long text take?") -> Figure:
    """Memory that attention adds against the length of a text, both axes logarithmic; the slope is the exponent.

    ``table``: ``path`` (how attention is computed), ``tokens``, ``mb`` (positive), ``exponent`` (fitted, the same in all rows
    of one path). Raises ``InputError`` for a missing column, an empty table, or memory not above zero.
    """
    require(table, ("path", "tokens", "mb", "exponent"), "memory_by_length")
    lines.positive(table, ("mb",), "memory_by_length")
    figure, axes = canvas(
        title, "One layer, one text; the exponent is the slope of a straight line through the points.", 3.4, rows=1
    )
    ax = axes[0, 0]
    for (path, part), shade, marker in zip(table.groupby("path", sort=False), _SHADES, _MARKS, strict=False):
        ax.plot(
            part["tokens"], part["mb"], color=shade, marker=marker, linewidth=1.6, markersize=7, markeredgecolor="white"
        )
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
        style.logarithmic(axis)
    tokens = sorted(table["tokens"].unique())
    ax.set_xticks(tokens, [f"{t // 1024}k" if t >= 1024 else str(t) for t in tokens])
    ax.set(xlabel="tokens of the text (k = 1,024)", ylabel="memory added (MB)")
    ax.margins(0.08, 0.12)
    ax.grid(True)
    ax.tick_params(length=0, labelcolor=GREY)
    return figure
