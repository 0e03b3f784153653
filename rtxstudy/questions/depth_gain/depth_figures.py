"""The figure that carries the study: where depth pays, and how much of it a loop keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.looks import FAINT, GREY, INK, OKABE, square
from rtxstudy.figures.scales import Percent
from rtxstudy.figures.style import WIDE, canvas, styled
from rtxstudy.numbers import number, with_ends

NEAR = 0.05  # gains up to this share a panel; larger ones have a panel with a scale of its own
LOWEST = 1.3  # inches of the axes, in which the heads of the columns and the ticks of a single row find room
FURTHEST = 0.02  # to which an interval widens the frame of its panel (0.01 = one percentage point)
DEEP, LOOP = OKABE["blue"], OKABE["vermillion"]
_ARMS = (("depth", DEEP, "o", -0.17), ("loop", LOOP, "D", 0.17))  # columns of the table, colour, marker, shift of the mark
_SMALL = 9.0  # points, of the columns of words


@styled
def depth_gains(table: pd.DataFrame, title: str) -> Figure:
    """One row per task and way of training: the gain of the deep encoder and of the loop over the shallow one, which is zero.

    ``table``: rows of :func:`rtxstudy.questions.depth_gain.verdicts.judged` with the columns of
    :func:`rtxstudy.questions.depth_gain.gains.beside_words` and ``way``, the short name of the way of training; one row for
    each pair of ``data`` and ``way``. The rows are sorted by depth gain. At the right stand loop − deep, the share of the depth
    gain that the loop keeps, and loop − counting words (TF-IDF). Marks are filled where depth pays. Rows in which no encoder
    learned, or with fewer than three seeds, are left out and named in the note. Raises ``InputError`` for a missing column, an
    empty table, or a pair that occurs twice.
    """
    ends = [f"{name}_{end}" for name in ("depth", "loop", "sharing", "loop_words") for end in ("gain", "low", "high")]
    require(table, ("data", "way", "verdict", "pays", "kept", *ends), "depth_gains")
    one_row_each(table, ("data", "way"), "depth_gains")
    figure_rows = table[~table["verdict"].isin(["not learned", "few seeds"])].sort_values("depth_gain", ascending=False)
    left_out = table.drop(figure_rows.index)
    far = figure_rows["depth_gain"].abs().gt(NEAR) | figure_rows["loop_gain"].abs().gt(NEAR)
    panels = [part for part in (figure_rows[far], figure_rows[~far]) if len(part)] or [figure_rows]
    cut = any(_cut(part) for part in panels)
    heights = [len(part) + 0.9 for part in panels]
    figure, axes = canvas(
        title,
        "Points of accuracy over the shallow encoder, with 95\xa0% intervals. Filled: depth pays (Holm)."
        + (" Wider intervals are cut at the frame." if cut else "")
        + (f" Left out: {_named(left_out)}." if len(left_out) else ""),
        max(LOWEST, 0.4 * len(panels) + 0.205 * sum(heights)),
        rows=len(panels),
        key=[square(DEEP, "deep: layers of its own", "o"), square(LOOP, "loop: the shallow encoder's layers, passed again", "D")],
        width=WIDE,
        height_ratios=heights,
    )
    for place, (ax, part) in enumerate(zip(axes[:, 0], panels, strict=True)):
        _panel(ax, part)
        if place == 0:
            _columns(ax, -0.95, ("loop − deep", "kept", "loop − TF-IDF"), GREY)
    axes[-1, 0].set_xlabel("points over the shallow encoder")
    return figure


def _named(rows: pd.DataFrame) -> str:
    why = {"not learned": "no encoder learned", "few seeds": "too few seeds"}
    return "; ".join(f"{row.data}, {row.way} ({why[row.verdict]})" for row in rows.itertuples())


def _panel(ax: Axes, table: pd.DataFrame) -> None:
    """The marks of some rows, the first on top, and their words at the right."""
    low, high = _frame(table)
    ax.set_xlim(low, high)
    ax.axvline(0, color=INK, linewidth=1, zorder=1)
    for y, row in enumerate(table.to_dict("records")):
        for name, colour, marker, shift in _ARMS:
            start, end = row[f"{name}_low"], row[f"{name}_high"]
            ax.plot([max(start, low), min(end, high)], [y + shift] * 2, color=colour, linewidth=1.4, alpha=0.55, zorder=2)
            ax.plot(
                row[f"{name}_gain"],
                y + shift,
                marker,
                color=colour,
                markersize=5.5,
                markeredgewidth=1.2,
                markerfacecolor=colour if row["pays"] else "white",
                zorder=3,
            )
        share = f"{number(100 * row['kept'], '.0f')}\xa0%" if row["pays"] else "–"
        words = tuple(
            with_ends(row[f"{name}_gain"], row[f"{name}_low"], row[f"{name}_high"])
            for name in ("sharing", "loop_words")
        )
        _columns(ax, y, (words[0], share, words[1]), INK if row["pays"] else GREY)
    ax.set_yticks(range(len(table)), [f"{row.data} · {row.way}" for row in table.itertuples()], size=_SMALL)
    for label, pays in zip(ax.get_yticklabels(), table["pays"], strict=True):
        label.set_color(INK if pays else GREY)
    ax.set_ylim(len(table) - 0.45, -0.55)
    ax.tick_params(axis="both", length=0)
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=6)
    ax.xaxis.set_major_formatter(Percent())
    ax.grid(axis="x", color=FAINT)


def _columns(ax: Axes, y: float, words: Sequence[str], colour: str) -> None:
    """Three columns to the right of the axes, each aligned to the right."""
    for text, right in zip(words, (112, 156, 270), strict=True):
        ax.annotate(
            text,
            (1, y),
            (right, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center_baseline",
            color=colour,
            size=_SMALL,
            annotation_clip=False,
        )


def _cut(table: pd.DataFrame) -> bool:
    """Whether an interval reaches beyond the frame."""
    low, high = _frame(table)
    return any((table[f"{name}_low"] < low).any() or (table[f"{name}_high"] > high).any() for name in ("depth", "loop"))


def _frame(table: pd.DataFrame) -> tuple[float, float]:
    """The ends of the axis: all marks and zero with a margin, and of each interval at most :data:`FURTHEST` on each side."""
    lows, highs = [0.0], [0.0]
    for name in ("depth", "loop"):
        marks = table[f"{name}_gain"]
        lows.append(np.maximum(table[f"{name}_low"], marks - FURTHEST).min())
        highs.append(np.minimum(table[f"{name}_high"], marks + FURTHEST).max())
    margin = 0.04 * (max(highs) - min(lows))
    return min(lows) - margin, max(highs) + margin
