"""Transfer: the accuracy of models on data they were not trained on."""

from __future__ import annotations

from textwrap import fill

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import bare_rows, beside
from rtxstudy.figures.looks import looks, on
from rtxstudy.figures.notes import interval_note, with_interval
from rtxstudy.figures.scales import grid, percent_below
from rtxstudy.figures.style import BODY, canvas, styled


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
            if np.isfinite(row.low):
                ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
            face = "white" if source == target else colour
            ax.plot(row.mean, y, marker, color=colour, markersize=8, markeredgewidth=1.6, markerfacecolor=face)
            beside(ax, y, with_interval(row.mean, row.low, row.high))
        bare_rows(ax, part["model"])
        ax.set_title(f"{source} → {target}", loc="left", weight="bold")
        ax.margins(x=0.08)
        grid(ax, "x")
    percent_below(axes[-1, 0], "accuracy on the test texts (%)")
    return figure


@styled
def cross_domain(table: pd.DataFrame, title: str = "Which training data carry to which texts?") -> Figure:
    """Mean accuracy by training data (rows) and test data (columns): one matrix per model, its own texts framed.

    ``table``: ``model``, ``trained_on``, ``tested_on``, ``mean``, ``n``, one row for each triple of the first three. A triple
    without a row is grey. Raises ``InputError`` for a missing column, an empty table, or a triple that occurs twice.
    """
    require(table, ("model", "trained_on", "tested_on", "mean", "n"), "cross_domain")
    one_row_each(table, ("model", "trained_on", "tested_on"), "cross_domain")
    panels, names = list(table.groupby("model", sort=False)), list(dict.fromkeys(table["trained_on"]))
    tests = list(dict.fromkeys([*names, *table["tested_on"]]))
    least, most = float(table["mean"].min()), float(table["mean"].max())
    figure, axes = canvas(
        title,
        "Mean accuracy (%). The same shade is the same accuracy in every panel; frames: tested on the data of training.",
        len(panels) * (0.55 + 0.42 * len(names)) + 0.9,
        rows=len(panels),
        sharex=True,
    )
    shade = colormaps["YlGnBu"].resampled(256)
    for ax, (model, part) in zip(axes[:, 0], panels, strict=True):
        values = part.pivot(index="trained_on", columns="tested_on", values="mean").reindex(index=names, columns=tests)
        depth = (values.to_numpy() - least) / max(most - least, 1e-9) * 0.85 + 0.05  # neither white nor black at the ends
        style = {"vmin": 0, "vmax": 1, "cmap": shade, "cbar": False, "linewidths": 1.5, "linecolor": "white"}
        across, down = ([fill(name, width) for name in labels] for labels, width in ((tests, 16), (names, 24)))
        sns.heatmap(depth, ax=ax, xticklabels=across, yticklabels=down, **style)
        for i, j in np.argwhere(np.isfinite(depth)):
            words, ink = f"{100 * values.iloc[i, j]:.1f}", on(shade(depth[i, j])[:3])
            ax.text(j + 0.5, i + 0.5, words, ha="center", va="center", color=ink, size=BODY)
            if names[i] == tests[j]:
                frame = {"fill": False, "edgecolor": "#d55e00", "linewidth": 2.0}
                ax.add_patch(Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, **frame))
        ax.set_facecolor("#ededed")  # the colour of cells without a run
        ax.set(xlabel="", ylabel="trained on")
        n = part["n"].max()
        ax.set_title(f"{model} ({n} seed{'s' if n > 1 else ''})" if n > 1 else str(model), loc="left", weight="bold")
        ax.tick_params(length=0, rotation=0, labelbottom=ax is axes[-1, 0])
    axes[-1, 0].set_xlabel("tested on")
    return figure
