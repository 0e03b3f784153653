"""Where the gradient arrives: by pass, by layer, and beside the bound claimed for the residual across passes."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxstudy.figures.checks import one_row_each, positive, require
from rtxstudy.figures.labels import at_line_ends, place, spread
from rtxstudy.figures.lines import apart, seed_points
from rtxstudy.figures.looks import DASH_DOT, DASHED, DOTTED, GREY, INK, ink, looks, loop_looks
from rtxstudy.figures.notes import interval_note, seeds_note
from rtxstudy.figures.scales import Percent, grid, logarithmic, wide
from rtxstudy.figures.style import BODY, WIDTH, canvas, styled
from rtxstudy.figures.wrapping import wrap
from rtxstudy.statistics import summarise

_CURVES = {"mean": "-", "least text": DOTTED, "bound claimed": DASHED, "identity's gain": DASH_DOT}  # of a panel → its line


@styled
def gradient_by_pass(
    table: pd.DataFrame, title: str = "Does every pass take part in learning, or only the last?"
) -> Figure:
    """Gradient norm (above) and share of the whole gradient (below) at each pass: one line per model.

    ``table``: ``model``, ``seed``, ``iteration`` (the pass, 1..R), ``norm`` (positive) and ``share`` (of the summed
    gradient; the shares of a run add up to one), one row per run and pass, as
    :func:`rtxstudy.measured.gradients` gives them. Small points are seeds, bars 95 % intervals over them.
    The dashed line is an equal share; it is drawn if all models have the same number of passes. Raises
    ``InputError`` for a missing column or an empty table.
    """
    require(table, ("model", "seed", "iteration", "norm", "share"), "gradient_by_pass")
    look = looks(table["model"])
    depths = table.groupby("model", sort=False)["iteration"].max()
    summaries = {column: summarise(table, ["model", "iteration"], column) for column in ("norm", "share")}
    figure, axes = canvas(
        title,
        f"Large marks: mean; small points: each seed; {interval_note(summaries['norm']['n'])}"
        + ("; dashed: equal shares." if depths.nunique() == 1 else "."),
        max(4.2, 0.95 + 0.35 * len(look)),  # every model has a label at the right of each panel
        rows=2,
        sharex=True,
    )
    labels = []
    for ax, (column, summary) in zip(axes[:, 0], summaries.items(), strict=True):
        ends = []
        for i, (name, style) in enumerate(look.items()):
            aside = apart(i, len(look))
            part = summary[summary["model"] == name].sort_values("iteration")
            seeds = table[table["model"] == name]
            x = part["iteration"] + aside
            small = {"markersize": 5, "alpha": 0.6, "zorder": 1}
            ax.plot(seeds["iteration"] + aside + 0.025, seeds[column], ".", color=style.shade, **small)
            ax.vlines(x, part["low"], part["high"], color=style.shade, linewidth=1.8, alpha=0.55)
            ax.plot(
                x,
                part["mean"],
                color=style.shade,
                linewidth=1.8,
                linestyle=style.line,
                marker=style.marker,
                markersize=7,
                markeredgecolor="white",
            )
            ends.append((part["mean"].iloc[-1], name, ink(style.shade)))
        labels.append((ax, at_line_ends(ax, *zip(*ends, strict=True))))
        grid(ax, "y")
    norm, share = axes[:, 0]
    norm.set_ylabel("gradient norm")
    if wide(table["norm"], 10):
        logarithmic(norm.yaxis)
    if depths.nunique() == 1:
        share.axhline(1 / depths.iloc[0], color=GREY, linewidth=1, linestyle=DASHED, zorder=0.5)
    share.set(
        xlabel="pass through the block",
        ylabel="share of the gradient (%)",
        xticks=range(1, int(depths.max()) + 1),
        xlim=(0.6, depths.max() + 0.4),
    )
    share.yaxis.set_major_formatter(Percent())
    for ax, notes in labels:
        spread(ax, notes)
    return figure


@styled
def gradient_by_layer(table: pd.DataFrame, title: str = "Where in the network does the gradient arrive?") -> Figure:
    """Norm of the gradient at each application of a layer, in the order of the forward pass: one line per model.

    ``table``: ``model``, ``seed``, ``depth`` (1 to the effective number of layers), ``iteration`` (the pass it
    belongs to), ``norm`` (positive), one row per run and depth. Lines are means, small points the seeds. If a block
    of several layers is passed more than once, its second and later layers are hollow. The axis is logarithmic if the
    norms span more than a factor of five. Raises ``InputError`` for a missing column, an empty table, a norm not
    above zero, or a depth of a run that occurs twice.
    """
    require(table, ("model", "seed", "depth", "iteration", "norm"), "gradient_by_layer")
    one_row_each(table, ("model", "seed", "depth"), "gradient_by_layer")
    positive(table, ("norm",), "gradient_by_layer")
    means = summarise(table, ["model", "depth"], "norm", carry=["iteration"]).sort_values(["model", "depth"])
    begins = means["iteration"] != means.groupby("model")["iteration"].shift()
    loops = means.groupby("model")["iteration"].transform("nunique") > 1
    means["later"] = loops & ~begins
    figure, axes = canvas(
        title,
        f"Lines: mean; {seeds_note(means['n'])}"
        f"{'; hollow: a later layer of the same pass' if means['later'].any() else ''}.",
        3.7,
    )
    ax, ends, segments = axes[0, 0], [], []
    for name, look in looks(table["model"]).items():
        part, runs = means[means["model"] == name], table[table["model"] == name]
        points = part[["depth", "mean"]].to_numpy(dtype=float)
        if part["n"].max() > 1:
            seed_points(ax, runs["depth"], runs["norm"], look.shade)
        ax.plot(*points.T, color=look.shade, linestyle=look.line, linewidth=1.8)
        for later, inside in ((False, look.shade), (True, "white")):
            ax.plot(
                *points[part["later"] == later].T,
                look.marker,
                color=look.shade,
                markerfacecolor=inside,
                markersize=6.5,
                markeredgewidth=1.3,
            )
        segments += list(pairwise(points))
        ends.append((*points[-1], name, ink(look.shade)))
    ax.margins(y=0.1)
    if wide(table["norm"]):
        logarithmic(ax.yaxis)
    else:
        ax.set_ylim(bottom=0)
    ax.set(xlabel="layers passed (1: next to the embedding)", ylabel="gradient norm")
    ax.xaxis.get_major_locator().set_params(integer=True)
    grid(ax, "y")
    last = means["depth"].max()  # a line that ends earlier has its name inside the axes
    spread(ax, at_line_ends(ax, *zip(*(end[1:] for end in ends if end[0] == last), strict=True)))
    if inner := [end for end in ends if end[0] < last]:
        x, y, words, colours = zip(*inner, strict=True)
        place(ax, x, y, words, [4.5] * len(x), colours, segments=segments)
    return figure


@styled
def gradient_bound(table: pd.DataFrame, title: str = "Does the residual keep the gradient above α^(R−t)?") -> Figure:
    """The gradient at each state relative to the last state, beside the bound claimed and the identity's gain.

    ``table``: ``model``, ``seed``, ``iteration`` (the state after this many passes; 0 enters the loop), ``ratio``
    (mean over texts of ‖∂L/∂h_t‖ / ‖∂L/∂h_R‖), ``least`` (the least of a text), ``bound`` (α^(R−t)), ``gain``
    ((1 + α)^(R−t)), one row per run and state. ``ratio``, ``least`` and ``gain`` are positive; a ``bound`` of zero is
    not drawn. Each model has a panel. The line of ``least`` is the least of any seed. Raises ``InputError`` for a
    missing column, an empty table, a value not above zero, or a state of a run that occurs twice.
    """
    values = ("ratio", "least", "bound", "gain")
    require(table, ("model", "seed", "iteration", *values), "gradient_bound")
    one_row_each(table, ("model", "seed", "iteration"), "gradient_bound")
    positive(table, ("ratio", "least", "gain"), "gradient_bound")
    table = table.assign(bound=table["bound"].where(table["bound"] > 0))  # a log axis has no zero
    look = loop_looks(table["model"])
    columns = min(2, len(look))
    rows = -(-len(look) // columns)
    means = summarise(table, ["model", "iteration"], "ratio").sort_values("iteration")
    figure, axes = canvas(
        title,
        "‖∂L/∂h_t‖ / ‖∂L/∂h_R‖: how long a text's gradient is at state t, beside the last state. Mean: over texts and seeds; "
        f"least text: of any seed; {seeds_note(means['n'])}; identity's gain: that of the identities alone.",
        0.4 + rows * (3.4 if columns == 1 else 2.75 if rows < 3 else 2.2),
        rows=rows,
        columns=columns,
        key=[Line2D([], [], color=INK, linestyle=line, linewidth=1.6, label=word) for word, line in _CURVES.items()],
        sharey=True,
    )
    panels = list(zip(look, axes.flat, strict=False))
    for name, ax in panels:
        runs, part, style = table[table["model"] == name], means[means["model"] == name], look[name]
        t = part["iteration"].to_numpy(dtype=float)
        of_runs = runs.groupby("iteration")
        curves = {
            "mean": (part["mean"], style.shade, 2.0),
            "least text": (of_runs["least"].min(), style.shade, 1.5),
            "bound claimed": (of_runs["bound"].mean(), GREY, 1.3),
            "identity's gain": (of_runs["gain"].mean(), GREY, 1.3),
        }
        if part["n"].max() > 1:
            seed_points(ax, runs["iteration"], runs["ratio"], style.shade)
        for i, (word, (y, colour, width)) in enumerate(curves.items()):
            mark = {"marker": style.marker, "markersize": 6.5, "markeredgecolor": "white"} if i == 0 else {}
            ax.plot(t, y.to_numpy(), color=colour, linestyle=_CURVES[word], linewidth=width, zorder=3 - i / 4, **mark)
        room = WIDTH * 72 / columns - 60  # width of a panel in points, roughly
        ax.set_title("\n".join(wrap(name, room, BODY, "bold")), loc="left", weight="bold")
        ax.margins(x=0.06, y=0.08)
        ax.set_xticks(range(int(t.max()) + 1))
        grid(ax, "y")
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    logarithmic(axes[0, 0].yaxis)
    for row in axes:
        row[0].set_ylabel("ratio to the last state")
    for _, ax in panels[-columns:]:
        ax.set_xlabel("passes taken, t")
    return figure
