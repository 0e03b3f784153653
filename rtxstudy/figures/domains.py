"""Does what was learned on one kind of text hold on another?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.figures import style
from rtxstudy.figures.style import canvas, looks, require, styled


@styled
def transfer(table: pd.DataFrame, title: str = "Does it carry from one domain to another?") -> Figure:
    """Mean accuracy of each model where it was trained (hollow) and where it was not (filled), a panel a test set.

    ``table``: ``model``, ``trained_on``, ``tested_on``, ``mean``, ``low``, ``high``, ``n`` (as
    ``statistics.summarise`` gives them), one row a triple. A panel is a pair of training and test set, those that
    agree first. Raises ``InputError`` for a missing column, an empty table, or a triple that stands twice.
    """
    require(table, ("model", "trained_on", "tested_on", "mean", "low", "high", "n"), "transfer")
    style.one_row_each(table, ("model", "trained_on", "tested_on"), "transfer")
    look = looks(table["model"])
    home = table["trained_on"] == table["tested_on"]
    panels = list(pd.concat([table[home], table[~home]]).groupby(["trained_on", "tested_on"], sort=False))
    figure, axes = canvas(
        title,
        "Panels: trained on → tested on. Hollow: on the same kind of text; filled: on another. "
        f"Marks: mean accuracy; {style.interval_note(table['n'])}.",
        0.3 + 0.33 * len(panels) + 0.34 * len(table),
        rows=len(panels),
        sharex=True,
        height_ratios=[len(part) + 0.6 for _, part in panels],
    )
    for ax, ((source, target), part) in zip(axes[:, 0], panels, strict=True):
        for y, row in enumerate(part.itertuples(index=False)):
            colour, marker = look[row.model].colour, look[row.model].marker
            words = f"{100 * row.mean:.1f}"
            if np.isfinite(row.low):
                ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
                words += f" ± {100 * (row.high - row.mean):.1f}"
            face = "white" if source == target else colour
            ax.plot(row.mean, y, marker, color=colour, markersize=8, markeredgewidth=1.6, markerfacecolor=face)
            style.beside(ax, y, words)
        style.bare_rows(ax, part["model"])
        ax.set_title(f"{source} → {target}", loc="left", weight="bold")
        ax.margins(x=0.08)
        style.grid(ax, "x")
    last = axes[-1, 0]
    last.locator_params(axis="x", nbins=6)
    last.xaxis.set_major_formatter(style.Percent())
    last.set_xlabel("accuracy on the test texts (%)")
    return figure
