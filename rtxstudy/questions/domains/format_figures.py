"""The control of the domain task: what format alone and words alone tell."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import bare_rows, beside
from rtxstudy.figures.looks import DASHED, GREY, OKABE
from rtxstudy.figures.scales import Percent, grid
from rtxstudy.figures.style import canvas, styled

_PANELS = {"format": ("format alone, no word", OKABE["purple"], "s"), "words": ("counting words", GREY, "X")}


@styled
def format_control(table: pd.DataFrame, title: str = "What tells the domain: the words, or the format?") -> Figure:
    """One row for each input of a classifier, in a panel for format and one for words; dashed: one label for all texts.

    ``table``: ``of`` ("format", "words", "nothing"), ``input``, ``accuracy``, ``low``, ``high`` (0..1), ``n_test``, ``words``,
    as :func:`rtxstudy.questions.domains.format_control.format_control` gives them. Raises ``InputError`` for a missing column, an
    empty table, or an input that occurs twice.
    """
    require(table, ("of", "input", "accuracy", "low", "high", "n_test", "words"), "format_control")
    one_row_each(table, ("of", "input"), "format_control")
    parts = {kind: table[table["of"] == kind] for kind in _PANELS}
    figure, axes = canvas(
        title,
        f"Marks: accuracy on {table['n_test'].iloc[0]:,} test texts; bars: 95\N{NO-BREAK SPACE}% intervals over texts; dashed: "
        f"one label for all. A few: {table['words'].iloc[0]} words from the middle of each text.",
        1.0 + 0.42 * sum(map(len, parts.values())),
        rows=len(parts),
        sharex=True,
        height_ratios=[len(part) + 0.6 for part in parts.values()],
    )
    for ax, (kind, part) in zip(axes[:, 0], parts.items(), strict=True):
        name, colour, marker = _PANELS[kind]
        for level in table.loc[table["of"] == "nothing", "accuracy"]:
            ax.axvline(level, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
        for y, row in enumerate(part.itertuples(index=False)):
            ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
            ax.plot(row.accuracy, y, marker, color=colour, markersize=8, markeredgecolor="white", markeredgewidth=0.8)
            beside(ax, y, f"{100 * row.accuracy:.1f}")
        bare_rows(ax, part["input"])
        ax.set_title(name, loc="left", weight="bold")
        ax.margins(x=0.08)
        grid(ax, "x")
    last = axes[-1, 0]
    last.locator_params(axis="x", nbins=6)
    last.xaxis.set_major_formatter(Percent())
    last.set_xlabel("accuracy on the test texts (%)")
    return figure
