"""The recipe search: the validation accuracy of every trial, in the first round and in the finals."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.figures.checks import require
from rtxstudy.figures.labels import bare_rows, beside
from rtxstudy.figures.looks import DASHED, GREY, looks, square
from rtxstudy.figures.scales import grid, percent_below
from rtxstudy.figures.style import canvas, styled


@styled
def trials(table: pd.DataFrame, title: str = "Which recipe does validation choose for each encoder?") -> Figure:
    """One panel for each arm, one row for each trial: hollow marks are the first round, filled marks the mean of the finals.

    ``table``: ``arm``, ``round`` ("first" or "final"), ``trial``, ``recipe``, ``seed``, ``val_accuracy`` (0..1),
    ``standard_error`` and ``chosen``, one row per run, as :func:`rtxstudy.questions.recipes.recipe_search.trials` gives them.
    The bar is one standard error to each side, ticks are the seeds of the finals, and the dashed line is the first trial, which
    is the recipe before the search, in the finals. Raises ``InputError`` for a missing column or an empty table.
    """
    columns = ("arm", "round", "trial", "recipe", "seed", "val_accuracy", "standard_error", "chosen")
    require(table, columns, "recipe search")
    look = looks(table["arm"])
    panels = list(table.groupby("arm", sort=False))
    sizes = [part["trial"].nunique() for _, part in panels]
    key = [
        square(GREY, "first round, a share of the texts", "o"),
        square(GREY, "finals, all texts: the mean", "o"),
    ]
    key[0].set_markerfacecolor("white")
    figure, axes = canvas(
        title,
        "Validation accuracy. Ticks: seeds of the finals; bars: one standard error to each side, over new texts; dashed: the "
        "recipe before the search. Numbers: the finals, or else the first round. The name of the chosen recipe is bold.",
        0.3 + 0.33 * len(panels) + 0.34 * sum(sizes),
        rows=len(panels),
        sharex=True,
        height_ratios=[size + 0.6 for size in sizes],
        key=key,
    )
    for ax, (arm, part) in zip(axes[:, 0], panels, strict=True):
        colour, marker = look[arm].colour, look[arm].marker
        names = part.sort_values("trial").drop_duplicates("trial").set_index("trial")["recipe"]
        for y, trial in enumerate(names.index):
            rounds = dict(list(part[part["trial"] == trial].groupby("round")))
            style = {"color": colour, "markersize": 7.5, "markeredgewidth": 1.5}
            if (first := rounds.get("first")) is not None:
                ax.plot(first["val_accuracy"].mean(), y, marker, markerfacecolor="white", zorder=2, **style)
            last = rounds.get("final")
            if last is None:
                beside(ax, y, f"{100 * first['val_accuracy'].mean():.1f}")
                continue
            mean, error = last["val_accuracy"].mean(), last["standard_error"].mean()
            ax.plot([mean - error, mean + error], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt", zorder=1)
            ax.plot(
                last["val_accuracy"], [y] * len(last), "|", color=colour, markersize=11, markeredgewidth=1.5, zorder=3
            )
            ax.plot(mean, y, marker, zorder=4, **style)
            beside(ax, y, f"{100 * mean:.1f}")
            if trial == 0:
                ax.axvline(mean, color=GREY, linewidth=1, linestyle=DASHED, zorder=0)
        bare_rows(ax, names)
        winners = set(part.loc[(part["round"] == "final") & part["chosen"], "trial"])
        for trial, name in zip(names.index, ax.get_yticklabels(), strict=True):
            name.set_weight("bold" if trial in winners else "normal")
        ax.set_title(arm, loc="left", weight="bold")
        ax.margins(x=0.08)
        grid(ax, "x")
    percent_below(axes[-1, 0], "validation accuracy (%)")
    return figure
