"""What recurrence does to training: how much of the gradient each iteration of the block contributes."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.evaluation.statistics import summarise
from rtxstudy.figures import style
from rtxstudy.figures.labels import at_line_ends, spread
from rtxstudy.figures.style import canvas, ink, looks, require, styled


@styled
def gradient_by_pass(
    table: pd.DataFrame, title: str = "Does every iteration take part in learning, or only the last?"
) -> Figure:
    """Gradient norm (above) and share of the whole gradient (below) at each iteration, a line a model.

    ``table``: ``model``, ``seed``, ``iteration`` (1..R), ``norm`` (positive) and ``share`` (of the summed gradient;
    all of a run add up to one), one row a run and iteration, as ``dynamics.gradients_by_pass`` gives them.
    Small points are seeds, bars 95 % intervals over them; the dashed line is an equal share, where all models
    iterate equally often. Raises ``InputError`` for a missing column, an empty table, or a run that stands twice.
    """
    require(table, ("model", "seed", "iteration", "norm", "share"), "gradient_by_pass")
    look = looks(table["model"])
    depths = table.groupby("model", sort=False)["iteration"].max()
    summaries = {column: summarise(table, ["model", "iteration"], column) for column in ("norm", "share")}
    figure, axes = canvas(
        title,
        f"Large marks: mean; small points: each seed; {style.interval_note(summaries['norm']['n'])}"
        + ("; dashed: equal shares." if depths.nunique() == 1 else "."),
        max(4.2, 0.95 + 0.35 * len(look)),  # every model has a line of words at the right of each panel
        rows=2,
        sharex=True,
    )
    labels = []
    for ax, (column, summary) in zip(axes[:, 0], summaries.items(), strict=True):
        ends = []
        for i, (name, seen) in enumerate(look.items()):
            apart = (i - (len(look) - 1) / 2) * min(0.07, 0.4 / len(look))
            part = summary[summary["model"] == name].sort_values("iteration")
            seeds = table[table["model"] == name]
            x = part["iteration"] + apart
            ax.plot(
                seeds["iteration"] + apart + 0.025,
                seeds[column],
                ".",
                color=seen.shade,
                markersize=5,
                alpha=0.6,
                zorder=1,
            )
            ax.vlines(x, part["low"], part["high"], color=seen.shade, linewidth=1.8, alpha=0.55)
            ax.plot(
                x,
                part["mean"],
                color=seen.shade,
                linewidth=1.8,
                linestyle=seen.line,
                marker=seen.marker,
                markersize=7,
                markeredgecolor="white",
            )
            ends.append((part["mean"].iloc[-1], name, ink(seen.shade)))
        labels.append((ax, at_line_ends(ax, *zip(*ends, strict=True))))
        style.grid(ax, "y")
    norm, share = axes[:, 0]
    norm.set_ylabel("gradient norm")
    if style.wide(table["norm"], 10):
        style.logarithmic(norm.yaxis)
    if depths.nunique() == 1:
        share.axhline(1 / depths.iloc[0], color=style.GREY, linewidth=1, linestyle=(0, (4, 2.5)), zorder=0.5)
    share.set(
        xlabel="iteration of the block",
        ylabel="share of the gradient (%)",
        xticks=range(1, int(depths.max()) + 1),
        xlim=(0.6, depths.max() + 0.4),
    )
    share.yaxis.set_major_formatter(style.Percent())
    for ax, notes in labels:
        spread(ax, notes)
    return figure
