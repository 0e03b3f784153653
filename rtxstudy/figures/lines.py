"""Lines through means over seeds: the line with its intervals, the seeds as points, and where training ended."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from rtxstudy.figures.looks import GREY, Look


def apart(place: int, lines: int, most: float = 0.07) -> float:
    """The horizontal shift of line number ``place`` of ``lines``, so that no interval hides another."""
    return (place - (lines - 1) / 2) * min(most, 0.4 / lines)


def mean_line(axes: Axes, x: Iterable[float], part: pd.DataFrame, look: Look) -> None:
    """A line through the shares ``part["mean"]`` at ``x``, with bars from ``part["low"]`` to ``part["high"]``, at most 0 to 1."""
    x = np.asarray(x, dtype=float)
    axes.vlines(x, part["low"].clip(0, 1), part["high"].clip(0, 1), color=look.shade, linewidth=1.8, alpha=0.5)
    axes.plot(
        x,
        part["mean"],
        color=look.shade,
        linestyle=look.line,
        linewidth=1.8,
        marker=look.marker,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.8,
    )


def seed_points(axes: Axes, x: Iterable[float], y: Iterable[float], colour: str) -> None:
    """One small point per run, behind the line of their mean."""
    axes.plot(x, y, ".", color=colour, markersize=4.5, alpha=0.55, markeredgewidth=0, zorder=1)


def trained_line(axes: Axes, depth: int, named: bool, units: tuple[str, str] = ("pass", "passes")) -> None:
    """A faint vertical line at the number of passes of the training; if ``named``, the axes grow for its label.

    ``units``: singular and plural of what is counted. Call it when the axes have their scale and their data.
    """
    axes.axvline(depth, color="#bdbdbd", linewidth=1.2, zorder=0.4)
    if not named:
        return
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(axes.get_ylim())
    axes.set_ylim(top=float(scale.inverted().transform(high + 0.12 * (high - low))))
    axes.annotate(
        f"trained up to {depth} {units[int(depth != 1)]}",
        (depth, 1),
        xytext=(4, -1),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        color=GREY,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )
