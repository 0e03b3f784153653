"""Scales and ticks: shares in per cent, logarithmic axes with plain numbers, faint grid lines."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, NullLocator


class Percent(Formatter):
    """Ticks of a share of 0..1 in per cent. All ticks have as many decimals as the finest of them needs."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        percent = np.multiply(self.locs if len(self.locs) else [value], 100)
        decimals = next((d for d in range(4) if np.allclose(np.round(percent, d), percent)), 4)
        return f"{100 * value:.{decimals}f}"


def grid(axes: Axes, which: str) -> None:
    """Faint lines along one axis ("x" or "y") instead of its ticks."""
    axes.grid(axis=which)
    axes.tick_params(axis=which, length=0)


def within_shares(axis: Axis) -> None:
    """End an axis of shares where the quantity ends, at 0 and at 1. A mark at the end is drawn whole."""
    name = axis.axis_name
    low, high = getattr(axis.axes, f"get_{name}lim")()
    getattr(axis.axes, f"set_{name}lim")(max(low, 0.0), min(high, 1.0))
    if high > 1 or low < 0:
        for mark in (line for line in axis.axes.get_lines() if len(line.get_xdata()) == 1):
            mark.set_clip_on(False)


def percent_below(axes: Axes, words: str) -> None:
    """A few ticks in per cent below a panel with a row for each model, and what they are."""
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.set_major_formatter(Percent())
    axes.set_xlabel(words)


def wide(values: Iterable[float], factor: float = 5.0) -> bool:
    """Whether the largest value is more than ``factor`` times the least, so that a logarithmic axis reads better.

    False when a value is not positive.
    """
    values = np.asarray(list(values), dtype=float)
    return bool((values > 0).all() and values.max() / values.min() > factor)


def logarithmic(axis: Axis) -> None:
    """A logarithmic axis with plain numbers at 1, 2 and 5 of each decade, or at 1 alone above three decades."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_data_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 1000 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_locator(NullLocator())


def log_axis(axes: Axes) -> None:
    """A logarithmic vertical axis of a small panel: one tick per decade when it spans more than a factor of thirty."""
    logarithmic(axes.yaxis)
    low, high = axes.get_ylim()  # of all panels that share the axis
    if high > 30 * low:
        axes.yaxis.get_major_locator().set_params(subs=(1.0,))


def percent_axis(axes: Axes) -> None:
    """A vertical axis of shares in per cent without a tick above 100. Call it when the limits are final."""
    axes.locator_params(axis="y", nbins=6)
    axes.yaxis.set_major_formatter(Percent())
    low, high = axes.get_ylim()
    if high > 1:
        axes.set_yticks([tick for tick in axes.get_yticks() if low <= tick <= 1 + 1e-9])
        axes.set_ylim(low, high)
