"""Layers of a fine-tuned encoder, passed again: every window on validation texts, and the chosen ones on test texts."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import bare_rows, beside
from rtxstudy.figures.looks import GREY, OKABE
from rtxstudy.figures.style import canvas, styled
from rtxstudy.names import short
from rtxstudy.numbers import with_ends


@styled
def untrained_loop(changes: pd.DataFrame, tried: pd.DataFrame, title: str) -> Figure:
    """Points of accuracy that further passes add to a fine-tuned encoder: a row for each task and way.

    ``changes``: ``data``, ``kind``, ``difference``, ``low``, ``high`` (0.01 = one percentage point), one row for each task and
    kind. ``tried``: ``data``, ``kind`` and ``difference`` of every window on validation texts; a kind may have none. Raises
    ``InputError`` for a missing column, an empty table, or a task and kind that occur twice.
    """
    require(changes, ("data", "kind", "difference", "low", "high"), "untrained_loop")
    one_row_each(changes, ("data", "kind"), "untrained_loop")
    rows = [row for _, task in changes.groupby("data", sort=False) for row in task.itertuples()]  # the kinds of a task together
    figure, axes = canvas(
        title,
        "Large marks: change of test accuracy in points, with 95 % intervals, of the window that validation texts chose. Small "
        "marks: every window and number of passes on validation texts.",
        0.6 + 0.3 * len(rows),
    )
    (ax,) = axes[0]
    ax.axvline(0, color=GREY, lw=1.2)
    for place, row in enumerate(rows):
        few = 100 * tried.loc[(tried["data"] == row.data) & (tried["kind"] == row.kind), "difference"]
        ax.plot(few, [place] * len(few), "|", color=GREY, ms=6, alpha=0.5)
        colour = OKABE["vermillion"]
        full = row.low > 0 or row.high < 0
        ax.plot([100 * row.low, 100 * row.high], [place, place], color=colour, lw=1.6)
        ax.plot(100 * row.difference, place, "D", color=colour, mfc=colour if full else "white", ms=6)
        beside(ax, place, with_ends(row.difference, row.low, row.high))
    bare_rows(ax, [f"{short(row.data)} · {row.kind}" for row in rows])
    ax.set_xlabel("points over the encoder itself")
    return figure
