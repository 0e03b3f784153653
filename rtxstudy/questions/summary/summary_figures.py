"""The figures of the summary: accuracy against time and size, and every comparison on two scales."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rtxstudy.figures.checks import one_row_each, positive, require
from rtxstudy.figures.labels import beside, place
from rtxstudy.figures.looks import FAINT, GREY, INK, family_key, ink, looks
from rtxstudy.figures.notes import signed
from rtxstudy.figures.scales import Percent, logarithmic, wide
from rtxstudy.figures.style import WIDE, canvas, styled
from rtxstudy.names import said, short
from rtxstudy.numbers import megabytes
from rtxstudy.statistics import MARGIN

PALE = "#b9b9b9"
_CLEAR = "#0072b2"
LARGEST = 15.0  # radius of the largest bubble, points
NEAR, FAR = 0.035, 0.16  # ends of the two panels of the forest, where no difference is larger


@styled
def accuracy_for_cost(table: pd.DataFrame, title: str) -> Figure:
    """One bubble per model: time for a text across, test accuracy up, area in proportion to the megabytes of the weights.

    ``table``: ``model``, ``mean``, ``text_low``, ``text_high`` (0..1, over new seeds and new texts), ``ms_in_batch``,
    ``megabytes``, ``frontier``, one row per model, as :mod:`rtxstudy.questions.summary.glance` gives them. Models that are
    worth their cost on validation texts (``frontier``) are filled. Models without a time are left out and named. Raises
    ``InputError`` for a missing column, an empty table, or a model that occurs twice.
    """
    require(table, ("model", "mean", "text_low", "text_high", "ms_in_batch", "megabytes", "frontier"), "accuracy_for_cost")
    one_row_each(table, ("model",), "accuracy_for_cost")
    missing = table.loc[table["ms_in_batch"].isna(), "model"]
    table = table.dropna(subset="ms_in_batch").reset_index(drop=True)
    positive(table, ("ms_in_batch", "megabytes"), "accuracy_for_cost")
    left_out = f" Without a time: {'; '.join(map(short, missing))}." if len(missing) else ""
    figure, axes = canvas(
        title,
        f"Filled: worth its cost on validation texts. Lines: 95\xa0% intervals over new seeds and new texts.{left_out}",
        2.8,
        key=family_key(table["model"]),
        width=WIDE,
    )
    ax, look = axes[0, 0], looks(table["model"])
    radii = np.maximum(LARGEST * np.sqrt(table["megabytes"] / table["megabytes"].max()).to_numpy(), 2.5)
    x, y = table["ms_in_batch"].to_numpy(), table["mean"].to_numpy()
    colours = [look[model].colour for model in table["model"]]
    faces = [colour if on else "white" for colour, on in zip(colours, table["frontier"], strict=True)]
    segments = []
    for i, row in enumerate(table.itertuples(index=False)):
        ax.plot([x[i], x[i]], [row.text_low, row.text_high], color=colours[i], linewidth=1.1, alpha=0.45, zorder=2)
        segments.append(((x[i], row.text_low), (x[i], row.text_high)))
    ax.scatter(x, y, s=(2 * radii) ** 2, c=faces, alpha=0.35, linewidths=0, zorder=3)
    ax.scatter(x, y, s=(2 * radii) ** 2, facecolors="none", edgecolors=colours, linewidths=1.3, zorder=4)
    if wide(x):
        logarithmic(ax.xaxis)
    ax.margins(0.1, 0.06)
    ax.set(xlabel="time for a text in a full batch (ms)", ylabel="accuracy on test texts (%)")
    ax.yaxis.set_major_formatter(Percent())
    ax.grid(True)
    ax.tick_params(length=0)
    words = [f"{short(row.model)} · {megabytes(row.megabytes)}" for row in table.itertuples()]
    place(ax, x, y, words, radii, [ink(colour) for colour in colours], segments=segments)
    return figure


@styled
def forest(table: pd.DataFrame, title: str, data: str) -> Figure:
    """Every comparison: the difference in accuracy of two models with its interval, narrow intervals apart from wide ones.

    ``table``: ``comparison`` ("A − B"), ``data``, ``difference``, ``low``, ``high`` (0.01 = one percentage point) and ``verdict``
    (:data:`rtxstudy.questions.summary.glance.VERDICTS`). A row on other data than ``data`` names them. A dashed line marks
    :data:`MARGIN`, what a replacement may lose. Filled: the interval excludes zero. Pale: neither model is above the majority
    class. Raises ``InputError`` for a missing column, an empty table, or a comparison that occurs twice.
    """
    require(table, ("comparison", "data", "difference", "low", "high", "verdict"), "forest")
    one_row_each(table, ("comparison", "data"), "forest")
    ends = table[["difference", "low", "high"]].abs().max(axis=1)
    order = table.assign(other=table["data"] != data).sort_values(["other", "comparison"], kind="stable")
    parts = [order[ends[order.index] <= NEAR], order[ends[order.index] > NEAR]]
    panels = [
        (part, max(least, 1.08 * float(part["difference"].abs().max())))  # bars may be cut at the frame, and marks may not
        for part, least in zip(parts, (NEAR, FAR), strict=True)
        if len(part)
    ]
    figure, axes = canvas(
        title,
        f"First minus second, in points of accuracy; on {data} unless other data are named. Bars: 95\xa0% intervals over new "
        "seeds and new texts, cut at the frame. Filled: zero lies outside, from three seeds on. Dashed: what a replacement "
        "may lose.",
        0.55 * len(panels) + 0.235 * len(table),
        rows=len(panels),
        width=WIDE,
        height_ratios=[len(part) + 1.5 for part, _ in panels],
    )
    for ax, (part, reach) in zip(axes[:, 0], panels, strict=True):
        _comparisons(ax, part, reach, data)
    axes[-1, 0].set_xlabel("points of accuracy")
    return figure


def _comparisons(ax: Axes, table: pd.DataFrame, reach: float, data: str) -> None:
    """The rows of one panel, whose axis reaches so far to either side; a wider interval is cut there."""
    ax.axvline(0, color=INK, linewidth=1, zorder=1)
    ax.axvline(-MARGIN, color=GREY, linewidth=1, linestyle=(0, (4, 2.5)), zorder=1)
    for y, row in enumerate(table.to_dict("records")):
        colour = {"first": _CLEAR, "second": _CLEAR, "not learned": PALE}.get(row["verdict"], GREY)
        if np.isfinite(row["low"]):
            ends = np.clip([row["low"], row["high"]], -reach, reach)
            ax.plot(ends, [y, y], color=colour, linewidth=2.0, solid_capstyle="butt", zorder=2)
        face = colour if row["verdict"] in ("first", "second") else "white"
        ax.plot(row["difference"], y, "o", color=colour, markersize=6, markeredgewidth=1.4, markerfacecolor=face, zorder=3)
        beside(ax, y, signed(row["difference"]))
    names = [row.comparison if row.data == data else f"{row.comparison}, {row.data}" for row in table.itertuples()]
    ax.set_yticks(range(len(names)), [said(name) for name in names], size=9)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_xlim(-reach, reach)
    ax.tick_params(axis="both", length=0)
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=5)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: signed(value, "0").removesuffix(".0")))
    ax.grid(axis="x", color=FAINT)

