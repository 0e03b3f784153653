"""The figures of the summary: the models at a glance, and every comparison on one scale."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.figures.shared.checks import one_row_each, require
from rtxstudy.figures.shared.labels import bare_rows, beside
from rtxstudy.figures.shared.looks import FAINT, GREY, INK, looks
from rtxstudy.figures.shared.notes import count, signed
from rtxstudy.figures.shared.scales import Percent, grid, within_shares
from rtxstudy.figures.shared.style import canvas, styled

PALE = "#b9b9b9"
_CLEAR = "#0072b2"


@styled
def at_a_glance(table: pd.DataFrame, title: str) -> Figure:
    """One row per model: its accuracy with its interval over seeds, and at the right its parameters and its time for a text.

    ``table``: ``model``, ``mean``, ``low``, ``high`` (0..1), ``n`` (seeds), ``parameters``, ``ms_in_batch``, ``learned``, in the
    order of the rows. Hollow: fewer than three seeds, or a baseline, which has none. Pale: not above the majority class.
    Raises ``InputError`` for a missing column, an empty table, or a model that occurs twice.
    """
    require(table, ("model", "mean", "low", "high", "n", "parameters", "ms_in_batch", "learned"), "at_a_glance")
    one_row_each(table, ("model",), "at_a_glance")
    figure, axes = canvas(title, "Times are those of a text in a full batch.", 0.6 + 0.225 * len(table))
    ax, look = axes[0, 0], looks(table["model"])
    for y, row in enumerate(table.itertuples(index=False)):
        colour = look[row.model].colour if row.learned else PALE
        _mark(ax, row.mean, row.low, row.high, y, colour, row.n >= FEWEST_SEEDS, look[row.model].marker)
        time = "–" if np.isnan(row.ms_in_batch) else f"{row.ms_in_batch:.2f} ms"
        _columns(ax, y, f"{100 * row.mean:.1f} %", count(row.parameters), time)
    bare_rows(ax, table["model"])
    _columns(ax, -0.95, "accuracy", "size", "a text", GREY)
    ax.margins(x=0.06)
    within_shares(ax.xaxis)
    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(Percent())
    grid(ax, "x")
    ax.set_xlabel("accuracy on the test texts (%)")
    return figure


def _columns(ax: Axes, y: float, accuracy: str, size: str, time: str, colour: str = INK) -> None:
    """Three columns to the right of the axes, each aligned to the right."""
    for words, right in ((accuracy, 58), (size, 104), (time, 160)):
        ax.annotate(
            words,
            (1, y),
            (right, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center_baseline",
            color=colour,
            annotation_clip=False,
        )


def _mark(
    ax: Axes, mean: float, low: float, high: float, y: float, colour: str, filled: bool, marker: str = "o"
) -> None:
    if np.isfinite(low):
        ax.plot([low, high], [y, y], color=colour, linewidth=2.0, solid_capstyle="butt", zorder=2)
    face = colour if filled else "white"
    ax.plot(mean, y, marker, color=colour, markersize=7, markeredgewidth=1.5, markerfacecolor=face, zorder=3)


@styled
def forest(table: pd.DataFrame, title: str, data: str) -> Figure:
    """Every comparison on one scale: the difference in accuracy of two models with its interval, grouped by the pair.

    ``table``: ``comparison`` ("A − B"), ``data``, ``difference``, ``low``, ``high`` (0.01 = one percentage point), ``n_seeds``
    and ``verdict`` (:data:`rtxstudy.evaluation.glance.VERDICTS`). A row on other data than ``data`` names them, in grey below
    the pair. Filled: the interval excludes zero. Pale: neither model is above the majority class. Raises ``InputError`` for a
    missing column or an empty table.
    """
    require(table, ("comparison", "data", "difference", "low", "high", "n_seeds", "verdict"), "forest")
    one_row_each(table, ("comparison", "data"), "forest")
    rows: list[tuple[str, dict | None]] = []
    for pair, part in table.groupby("comparison", sort=False):
        part = part.sort_values("data", key=lambda names: names != data, kind="stable").to_dict("records")
        if part[0]["data"] == data:
            rows.append((str(pair), part.pop(0)))
        else:
            rows.append((str(pair), None))
        rows += [(f"on {row['data']}", row) for row in part]
    figure, axes = canvas(
        title,
        f"First minus second, in points of accuracy; on {data} unless other data are named. Bars: 95 % intervals over new seeds "
        "and new texts. Filled: zero lies outside."
        + (" Pale: neither model is above the most frequent label." if (table["verdict"] == "not learned").any() else ""),
        0.5 + 0.235 * len(rows),
    )
    ax = axes[0, 0]
    ax.axvline(0, color=INK, linewidth=1, zorder=1)
    ends = table[["difference", "low", "high"]].abs().to_numpy(dtype=float)
    reach = float(np.nanmax(ends)) * 1.05
    for y, (_, row) in enumerate(rows):
        if row is None:
            continue
        colour = {"first": _CLEAR, "second": _CLEAR, "not learned": PALE}.get(row["verdict"], GREY)
        _mark(ax, row["difference"], row["low"], row["high"], y, colour, row["verdict"] in ("first", "second"))
        beside(ax, y, signed(row["difference"]))
    bare_rows(ax, [name for name, _ in rows])
    for label, (name, _) in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_color(GREY if name.startswith("on ") else INK)
    ax.set_xlim(-reach, reach)
    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: signed(value, "0")))
    ax.grid(axis="x", color=FAINT)
    ax.set_xlabel("points of accuracy")
    return figure
