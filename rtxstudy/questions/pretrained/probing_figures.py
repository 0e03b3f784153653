"""What the states of encoders know after each layer or pass, beside encoders with random weights."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.looks import DASHED, GREY, looks
from rtxstudy.figures.scales import grid, percent_axis, within_shares
from rtxstudy.figures.style import BODY, canvas, styled
from rtxstudy.names import said

_CHANCE = 0.5  # of a question whose two answers are equally frequent


@styled
def probes(table: pd.DataFrame, title: str = "What do the states know?") -> Figure:
    """Accuracy of linear probes by depth: a row of panels for each task, a column for each encoder.

    ``table``: ``model``, ``by`` ("layer" or "pass"), ``weights`` ("trained" or "random"), ``depth``, ``task``, ``asked``,
    ``accuracy``, ``low`` and ``high`` (0..1), as :func:`rtxstudy.questions.pretrained.probing.probes` gives them. Raises
    ``InputError`` for a missing column, an empty table, or a depth that occurs twice.
    """
    columns = ("model", "by", "weights", "depth", "task", "asked", "accuracy", "low", "high")
    require(table, columns, "probes")
    one_row_each(table, ("model", "weights", "task", "depth"), "probes")
    models, tasks = list(table["model"].unique()), list(table["task"].unique())
    figure, axes = canvas(
        title,
        "Accuracy of a linear probe on the mean state of a text; bars: 95\xa0% interval over texts. Solid: trained weights; "
        "dashed: random weights; grey line: chance.",
        1.75 * len(tasks) + 0.3,
        rows=len(tasks),
        columns=len(models),
        sharex="col",
        sharey=True,
        width_ratios=[max(3, table.loc[table["model"] == model, "depth"].max()) for model in models],
    )
    look = looks(models)
    for j, model in enumerate(models):
        of_model = table[table["model"] == model]
        for i, task in enumerate(tasks):
            ax, panel = axes[i, j], of_model[of_model["task"] == task]
            for weights, part in panel.groupby("weights", sort=False):
                part = part.sort_values("depth")
                trained = weights == "trained"
                colour = look[model].colour if trained else GREY
                ax.errorbar(
                    part["depth"],
                    part["accuracy"],
                    yerr=[part["accuracy"] - part["low"], part["high"] - part["accuracy"]],
                    color=colour,
                    linestyle="-" if trained else DASHED,
                    marker=look[model].marker if trained else "x",
                    markersize=5.5,
                    linewidth=1.7,
                    elinewidth=1.0,
                    clip_on=False,
                )
            ax.axhline(_CHANCE, color=GREY, linewidth=1.1, zorder=1)
            ax.set_title(task if j else f"{task}: {_shortened(panel['asked'].iloc[0])}", loc="left", size=BODY)
            ax.xaxis.get_major_locator().set_params(integer=True)
            grid(ax, "y")
        axes[-1, j].set_xlabel(f"{of_model['by'].iloc[0]} of {said(model)}")
    for ax in axes[:, 0]:
        ax.set_ylabel("accuracy (%)")
        within_shares(ax.yaxis)
        percent_axis(ax)
    return figure


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
