"""Training curves: loss and validation accuracy by epoch."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxlib.errors import InputError
from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import at_line_ends, spread
from rtxstudy.figures.looks import DOTTED, GREY, ink, looks
from rtxstudy.figures.scales import Percent, grid
from rtxstudy.figures.style import canvas, styled


@styled
def training_curves(table: pd.DataFrame, title: str = "Do the models learn, and when do they stop?") -> Figure:
    """Loss (above) and validation accuracy (below) by epoch: thin lines are seeds, thick lines the mean of a model.

    ``table``: ``model``, ``seed``, ``epoch``, ``train_loss``, ``val_loss`` (nats), ``val_accuracy`` (0..1), one row
    per evaluation. The mean ends where the first seed stops, so that it is always over the same seeds. Raises
    ``InputError`` for a missing column, an empty table, two rows of one model, seed and epoch, or seeds without a
    common epoch.
    """
    require(table, ("model", "seed", "epoch", "train_loss", "val_loss", "val_accuracy"), "training_curves")
    one_row_each(table, ("model", "seed", "epoch"), "training_curves")
    look = looks(table["model"])
    seeds = table.groupby("model", sort=False)["seed"].nunique()
    n = " to ".join(str(number) for number in sorted({seeds.min(), seeds.max()}))
    key = [
        Line2D([], [], color=GREY, linewidth=2, label="validation"),
        Line2D([], [], color=GREY, linewidth=1.4, linestyle=DOTTED, label="training"),
    ]
    figure, axes = canvas(
        title,
        f"Thin lines: each seed (n\xa0=\xa0{n}); thick lines: their mean for as long as all of them train."
        if seeds.max() > 1
        else "One seed each.",
        max(4.3, 0.95 + 0.35 * len(look)),  # every model has a label at the right of each panel
        rows=2,
        sharex=True,
        key=key,
    )
    labels = []
    for ax, column in zip(axes[:, 0], ("val_loss", "val_accuracy"), strict=True):
        ends = []
        for name, part in table.groupby("model", sort=False):
            colour, marker = look[name].shade, look[name].marker
            shared = part.groupby("epoch").filter(lambda rows, n=seeds[name]: len(rows) == n)
            if shared.empty:
                raise InputError(f"The seeds of '{name}' were never evaluated at the same epoch; they have no mean.")
            mean = shared.groupby("epoch")[[column, "train_loss"]].mean()
            if seeds[name] > 1:
                for _, run in part.sort_values("epoch").groupby("seed", sort=False):
                    ax.plot(run["epoch"], run[column], color=colour, alpha=0.35, linewidth=0.8)
            if column == "val_loss":
                ax.plot(mean.index, mean["train_loss"], color=colour, linewidth=1.4, linestyle=DOTTED)
            ax.plot(mean.index, mean[column], color=colour, linewidth=2, marker=marker, markevery=[-1], markersize=5.5)
            ends.append((mean[column].iloc[-1], name, ink(colour)))
        labels.append((ax, at_line_ends(ax, *zip(*ends, strict=True))))
        grid(ax, "y")
    loss, accuracy = axes[:, 0]
    loss.set_ylabel("loss (nats)")
    accuracy.set(xlabel="epoch", ylabel="validation accuracy (%)")
    accuracy.xaxis.get_major_locator().set_params(integer=True)
    accuracy.yaxis.set_major_formatter(Percent())
    for ax, notes in labels:
        spread(ax, notes)
    return figure
