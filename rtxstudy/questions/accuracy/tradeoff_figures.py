"""What accuracy costs: time, parameters and arithmetic, and the models on the Pareto frontier."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rtxlib.errors import InputError
from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import bare_rows, place
from rtxstudy.figures.looks import GREY, family_key, ink, looks, short
from rtxstudy.figures.notes import count, interval_note
from rtxstudy.figures.scales import Percent, grid, logarithmic, wide, within_shares
from rtxstudy.figures.style import canvas, styled
from rtxstudy.pareto import frontier

LARGEST = 17.0  # radius of the largest bubble, points
COSTS = {
    "ms_one": "inference time, one text at a time (ms, median)",
    "ms_in_batch": "inference time, full batches (ms per text)",
    "parameters": "parameters, embeddings included (millions)",
    "non_embedding_parameters": "parameters without the token embedding (millions)",
    "forward_flops": "arithmetic of one forward pass (GFLOP per text)",
}
UNITS = {"parameters": 1e6, "non_embedding_parameters": 1e6, "forward_flops": 1e9}


@styled
def bubble(
    table: pd.DataFrame, cost: str = "ms_one", title: str = "What does accuracy cost in time and in parameters?"
) -> Figure:
    """One bubble per model: inference time across, mean accuracy up, area in proportion to the parameters.

    ``table``: ``model``, ``mean``, ``low``, ``high``, ``n`` (accuracy over seeds, as ``statistics.summarise`` gives
    them), ``parameters`` and ``cost`` (a key of ``COSTS``), one row per model. The vertical line through a bubble is
    the 95 % interval; one seed has none. Raises ``InputError`` for a missing column, an empty table, or a model that
    occurs twice.
    """
    table, left_out = drawable(table, ("parameters", cost), "bubble")
    figure, axes = canvas(
        title,
        "Area, and the number beside each bubble: parameters; "
        f"{interval_note(table['n'], 'upright lines')}.{left_out}",
        4.0 if len(table) < 8 else 4.8,  # more room for more labels
        key=family_key(table["model"]),
    )
    ax, look = axes[0, 0], looks(table["model"])
    radii = LARGEST * np.sqrt(table["parameters"] / table["parameters"].max()).to_numpy()
    x, y = table[cost].to_numpy() / UNITS.get(cost, 1), table["mean"].to_numpy()
    colours = [look[model].colour for model in table["model"]]
    ax.scatter(x, y, s=(2 * radii) ** 2, c=colours, alpha=0.25, linewidths=0, zorder=2)
    ax.scatter(x, y, s=(2 * radii) ** 2, facecolors="none", edgecolors=colours, linewidths=1.2, zorder=3)
    segments = _marks(ax, table, x)
    _frame(ax, x, cost, 0.16)
    words = [f"{short(m)} · {count(p)}" for m, p in zip(table["model"], table["parameters"], strict=True)]
    place(ax, x, y, words, np.maximum(radii, 4), [ink(colour) for colour in colours], segments=segments)
    return figure


@styled
def pareto_frontier(
    table: pd.DataFrame, cost: str = "ms_one", title: str = "Which models are the best for what they cost?"
) -> Figure:
    """Accuracy against one cost. Models on the frontier are solid; the region that they beat is shaded.

    ``table``: ``model``, ``mean``, ``low``, ``high``, ``n``, ``cost`` (a key of ``COSTS``), one row per model. The
    frontier is that of the means. Raises ``InputError`` for a missing column, an empty table, or a model that occurs
    twice.
    """
    table, left_out = drawable(table, (cost,), "pareto_frontier")
    best = frontier(table, minimise=[cost], maximise=["mean"]).to_numpy()
    figure, axes = canvas(
        title,
        "Solid: no other model is at once as cheap and as accurate. Hollow, in the shaded region: another is. "
        f"Marks: mean; {interval_note(table['n'], 'upright lines')}.{left_out}",
        4.0 if len(table) < 8 else 4.8,  # more room for more labels
        key=family_key(table["model"]),
    )
    ax, look = axes[0, 0], looks(table["model"])
    x, y = table[cost].to_numpy() / UNITS.get(cost, 1), table["mean"].to_numpy()
    segments = _marks(ax, table, x, best)
    _frame(ax, x, cost, 0.14)
    right, (bottom, top) = ax.get_xlim()[1], ax.get_ylim()
    order = np.argsort(x[best], kind="stable")
    steps_x, steps_y = np.append(x[best][order], right), np.append(y[best][order], y[best].max())
    ax.fill_between(steps_x, bottom, steps_y, step="post", color="#f3f3f3", linewidth=0, zorder=0.5)
    ax.step(steps_x, steps_y, where="post", color="#8a8a8a", linewidth=1.1, zorder=1.6)
    ax.set(xlim=(None, right), ylim=(bottom, top))
    segments += [((a, h), (b, h)) for a, b, h in zip(steps_x[:-1], steps_x[1:], steps_y[:-1], strict=True)]
    segments += [((b, h), (b, k)) for b, h, k in zip(steps_x[1:], steps_y[:-1], steps_y[1:], strict=True)]
    colours = [ink(look[m].colour) if solid else GREY for m, solid in zip(table["model"], best, strict=True)]
    place(ax, x, y, [short(model) for model in table["model"]], [5.0] * len(x), colours, segments=segments)
    return figure


@styled
def accuracy_per_million(
    table: pd.DataFrame, title: str = "How much accuracy does a million parameters buy?"
) -> Figure:
    """Mean accuracy in percentage points over millions of parameters, counted with and without the token embedding.

    ``table``: ``model``, ``mean``, ``low``, ``high``, ``n``, ``parameters``, ``non_embedding_parameters``, one row
    per model. Raises ``InputError`` for a missing column, an empty table, or a model that occurs twice.
    """
    table, left_out = drawable(table, ("parameters", "non_embedding_parameters"), "accuracy_per_million")
    table = table.assign(
        whole=1e8 * table["mean"] / table["parameters"], bare=1e8 * table["mean"] / table["non_embedding_parameters"]
    ).sort_values("bare", ascending=False, kind="stable")
    figure, axes = canvas(
        title,
        "Mean accuracy in percentage points, divided by millions of parameters. "
        f"Hollow: all parameters; filled: without the token embedding.{left_out}",
        0.45 + 0.36 * len(table),
    )
    ax, look = axes[0, 0], looks(table["model"])
    for y, row in enumerate(table.itertuples(index=False)):
        colour, marker = look[row.model].colour, look[row.model].marker
        ax.plot([row.whole, row.bare], [y, y], color=colour, linewidth=1.6, alpha=0.5, zorder=1)
        ax.plot(row.whole, y, marker, color=colour, markerfacecolor="white", markersize=8, markeredgewidth=1.5)
        ax.plot(row.bare, y, marker, color=colour, markersize=8)
        for value, offset, side in ((row.whole, -8, "right"), (row.bare, 8, "left")):
            alignment = {"textcoords": "offset points", "ha": side, "va": "center_baseline"}
            ax.annotate(f"{value:#.3g}".rstrip("."), (value, y), (offset, 0), **alignment)
    if wide([*table["whole"], *table["bare"]]):
        logarithmic(ax.xaxis)
    ax.margins(x=0.16)
    bare_rows(ax, table["model"])
    ax.set_xlabel("accuracy per million parameters (percentage points)")
    grid(ax, "x")
    return figure


@styled
def latency_against_flops(table: pd.DataFrame, title: str = "Does less arithmetic mean less waiting?") -> Figure:
    """Time for one text against arithmetic: one point per model, with a line from the fastest to the slowest round.

    ``table``: ``model``, ``forward_flops`` (per text), ``ms_one``, ``ms_one_low`` and ``ms_one_high``, one row per model.
    Raises ``InputError`` for a missing column, an empty table, or a model that occurs twice.
    """
    ends = ("model", "ms_one_low", "ms_one_high")
    table, left_out = drawable(table, ("forward_flops", "ms_one"), "latency_against_flops", ends)
    figure, axes = canvas(
        title,
        f"Marks: median of the rounds; lines: the fastest and the slowest round.{left_out}",
        4.0,
        key=family_key(table["model"]),
    )
    ax, look = axes[0, 0], looks(table["model"])
    x, y = table["forward_flops"].to_numpy() / 1e9, table["ms_one"].to_numpy()
    segments = []
    for i, row in enumerate(table.itertuples(index=False)):
        colour, marker = look[row.model].colour, look[row.model].marker
        ax.plot([x[i], x[i]], [row.ms_one_low, row.ms_one_high], color=colour, linewidth=1.4, alpha=0.6)
        segments.append(((x[i], row.ms_one_low), (x[i], row.ms_one_high)))
        ax.plot(x[i], y[i], marker, color=colour, markersize=8, alpha=0.8, markeredgecolor="white", markeredgewidth=0.8)
    for axis, values in ((ax.xaxis, x), (ax.yaxis, y)):
        if wide(values):
            logarithmic(axis)
    ax.margins(0.14)
    ax.set(xlabel=COSTS["forward_flops"], ylabel=COSTS["ms_one"])
    ax.grid(True)
    ax.tick_params(length=0)
    colours = [ink(look[model].colour) for model in table["model"]]
    place(ax, x, y, [short(model) for model in table["model"]], [5.0] * len(x), colours, segments=segments)
    return figure


def drawable(
    table: pd.DataFrame,
    costs: tuple[str, ...],
    figure: str,
    others: tuple[str, ...] = ("model", "mean", "low", "high", "n"),
) -> tuple[pd.DataFrame, str]:
    """The rows that have every cost, and a sentence that names the models left out."""
    require(table, (*others, *costs), figure)
    one_row_each(table, ("model",), figure)
    whole = (table[list(costs)] > 0).all(axis=1)
    if not whole.any():
        raise InputError(f"The figure '{figure}' has no model with a value above zero in {' and '.join(costs)}.")
    missing = ", ".join(table.loc[~whole, "model"])
    return table[whole].reset_index(drop=True), f" Not shown, for want of a cost: {missing}." if missing else ""


def _marks(ax: Axes, table: pd.DataFrame, x: np.ndarray, filled: np.ndarray | None = None) -> list:
    """Draw each mean with its family's mark and its interval as a vertical line; returns the lines, for labels."""
    look, segments = looks(table["model"]), []
    for i, row in enumerate(table.itertuples(index=False)):
        colour, marker = look[row.model].colour, look[row.model].marker
        solid = filled is None or filled[i]
        if np.isfinite(row.low):
            ax.plot([x[i], x[i]], [row.low, row.high], color=colour, linewidth=1.2, alpha=0.55, zorder=2.5)
            segments.append(((x[i], row.low), (x[i], row.high)))
        ax.plot(
            x[i],
            row.mean,
            marker,
            color=colour,
            zorder=4,
            markersize=5.5 if filled is None else 8,
            markerfacecolor=colour if solid else "white",
            markeredgecolor="white" if solid else colour,
            markeredgewidth=0.7 if solid else 1.4,
        )
    return segments


def _frame(ax: Axes, x: np.ndarray, cost: str, margin: float) -> None:
    """The axes of a trade-off: room for the marks, units, and a logarithmic cost if its values are far apart."""
    if wide(x):
        logarithmic(ax.xaxis)
    ax.margins(margin)
    ax.autoscale_view()
    within_shares(ax.yaxis)
    ax.set(xlabel=COSTS[cost], ylabel="accuracy (%)")
    ax.yaxis.set_major_formatter(Percent())
    ax.grid(True)
    ax.tick_params(length=0)
