"""Lines through means over seeds: the line with its intervals, the seeds as points, and where training ended."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from rtxlib.errors import InputError
from rtxstudy.figures import style
from rtxstudy.figures.style import GREY, Look


def apart(place: int, lines: int, most: float = 0.07) -> float:
    """How far the line at this place among ``lines`` stands aside, so that no interval hides another's."""
    return (place - (lines - 1) / 2) * min(most, 0.4 / lines)


def mean_line(axes: Axes, x: Iterable[float], part: pd.DataFrame, seen: Look, size: float = 6.0) -> None:
    """A line through ``part["mean"]`` at ``x`` in this look, with bars from ``part["low"]`` to ``part["high"]``."""
    x = np.asarray(x, dtype=float)
    axes.vlines(x, part["low"], part["high"], color=seen.shade, linewidth=1.8, alpha=0.5)
    axes.plot(
        x,
        part["mean"],
        color=seen.shade,
        linestyle=seen.line,
        linewidth=1.8,
        marker=seen.marker,
        markersize=size,
        markeredgecolor="white",
        markeredgewidth=0.8,
    )


def seed_points(axes: Axes, x: Iterable[float], y: Iterable[float], colour: str) -> None:
    """A small point a run, behind the line of their mean."""
    axes.plot(x, y, ".", color=colour, markersize=4.5, alpha=0.55, markeredgewidth=0, zorder=1)


def seeds_note(counts: Iterable[int]) -> str:
    """``small points: each seed (n = 5)``; or that there is one seed each."""
    several = sorted({int(number) for number in counts})
    if several == [1]:
        return "one seed each"
    n = f"{several[0]}" if len(several) == 1 else f"{several[0]} to {several[-1]}"
    return f"small points: each seed (n\xa0=\xa0{n})"


def trained_line(axes: Axes, depth: int, named: bool) -> None:
    """A faint upright line at the passes trained; its name stands at its top, where the axes grow to hold it.

    Call it once the axis has its scale and its data.
    """
    axes.axvline(depth, color="#bdbdbd", linewidth=1.2, zorder=0.4)
    if not named:
        return
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(axes.get_ylim())
    axes.set_ylim(top=float(scale.inverted().transform(high + 0.12 * (high - low))))
    axes.annotate(
        f"trained up to {depth} pass{'es' if depth != 1 else ''}",
        (depth, 1),
        xytext=(4, -1),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        va="top",
        color=GREY,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],
    )


def log_axis(axes: Axes) -> None:
    """A logarithmic vertical axis of a small panel: above a span of thirty it has a tick a decade and no more."""
    style.logarithmic(axes.yaxis)
    low, high = axes.get_ylim()  # of all panels that share the axis
    if high > 30 * low:
        axes.yaxis.get_major_locator().set_params(subs=(1.0,))


def percent_axis(axes: Axes) -> None:
    """A vertical axis of shares in per cent without a tick above 100; call it once the limits are known."""
    axes.locator_params(axis="y", nbins=6)
    axes.yaxis.set_major_formatter(style.Percent())
    low, high = axes.get_ylim()
    if high > 1:
        axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= 1 + 1e-9])
        axes.set_ylim(low, high)


def positive(table: pd.DataFrame, columns: Iterable[str], figure: str) -> None:
    """Raise ``InputError`` where a value that a logarithmic axis shall show is missing or not above zero."""
    for column in columns:
        if not (np.isfinite(table[column]) & (table[column] > 0)).all():
            raise InputError(f"The figure '{figure}' needs finite values above zero in '{column}'.")
