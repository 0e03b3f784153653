"""Transfer: the accuracy of models on data they were not trained on."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.figures.shared.checks import one_row_each, require
from rtxstudy.figures.shared.labels import bare_rows, beside
from rtxstudy.figures.shared.looks import looks
from rtxstudy.figures.shared.notes import interval_note
from rtxstudy.figures.shared.scales import Percent, grid
from rtxstudy.figures.shared.style import canvas, styled


@styled
def transfer(table: pd.DataFrame, title: str = "Does it carry from one domain to another?") -> Figure:
    """Mean accuracy of each model on the data of its training (hollow) and on other data (filled).

    ``table``: ``model``, ``trained_on``, ``tested_on``, ``mean``, ``low``, ``high``, ``n`` (as
    ``statistics.summarise`` gives them), one row for each triple of the first three. Each pair of training and test
    set has a panel; the pairs of the same data come first. Raises ``InputError`` for a missing column, an empty
    table, or a triple that occurs twice.
    """
    require(table, ("model", "trained_on", "tested_on", "mean", "low", "high", "n"), "transfer")
    one_row_each(table, ("model", "trained_on", "tested_on"), "transfer")
    look = looks(table["model"])
    home = table["trained_on"] == table["tested_on"]
    panels = list(pd.concat([table[home], table[~home]]).groupby(["trained_on", "tested_on"], sort=False))
    figure, axes = canvas(
        title,
        "Panels: trained on → tested on. Hollow: on the same kind of text; filled: on another. "
        f"Marks: mean accuracy; {interval_note(table['n'])}.",
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
            beside(ax, y, words)
        bare_rows(ax, part["model"])
        ax.set_title(f"{source} → {target}", loc="left", weight="bold")
        ax.margins(x=0.08)
        grid(ax, "x")
    last = axes[-1, 0]
    last.locator_params(axis="x", nbins=6)
    last.xaxis.set_major_formatter(Percent())
    last.set_xlabel("accuracy on the test texts (%)")
    return figure
