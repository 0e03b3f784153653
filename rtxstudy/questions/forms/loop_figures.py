"""The state in the loop: what each pass changes, and which form of the residual keeps it bounded."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxlib.errors import InputError
from rtxstudy.figures.checks import known, one_row_each, require
from rtxstudy.figures.labels import at_line_ends, spread
from rtxstudy.figures.lines import trained_line
from rtxstudy.figures.looks import DASHED, FORMS, GREY, Look, ink, loop_looks
from rtxstudy.figures.notes import interval_note
from rtxstudy.figures.scales import Percent, grid, log_axis, percent_axis, wide
from rtxstudy.figures.style import canvas, styled
from rtxstudy.statistics import summarise

_MEASURES = {  # of a state, with the title of its panel
    "norm": "length of the state, ‖h‖ / √d",
    "cosine": "cosine with the state before",
    "distance": "length of the step (% of the state)",
    "token_correlation": "correlation of a text's tokens",
    "accuracy": "accuracy when read out (%)",
    "entropy": "attention entropy (% of maximum)",
}
_ENDS = {  # where a measure ends, and so does its band
    "cosine": (-1, 1),
    "distance": (0, np.inf),
    "token_correlation": (-1, 1),
    "accuracy": (0, 1),
    "entropy": (0, 1),
}
_WEIGHTS = {"initial": "at initialisation", "trained": "after training"}
CEILING = 1e5  # a longer state is not drawn: on its scale all other states would look alike


@styled
def states_by_pass(table: pd.DataFrame, title: str = "What does each pass change?") -> Figure:
    """Six measures of the state after each pass: one panel per measure, one line per model, with 95 % intervals.

    ``table``: ``model`` (at most four), ``seed``, ``iteration`` (passes taken; the state of 0 enters the loop),
    ``norm`` (‖h‖ / √d), ``cosine`` (with the state before), ``distance`` (‖Δh‖ over the length before),
    ``token_correlation``, ``accuracy`` and ``entropy`` (of attention, a share of its maximum), one row per run and
    state. A value that does not exist, such as a step before the first pass, is NaN. A measure without any value has
    no panel. Raises ``InputError`` for a missing column, an empty table or one without values, more than four models,
    or a state of a run that occurs twice.
    """
    require(table, ("model", "seed", "iteration", *_MEASURES), "states_by_pass")
    one_row_each(table, ("model", "seed", "iteration"), "states_by_pass")
    look = loop_looks(table["model"])
    if len(look) > 4:
        raise InputError(f"The figure 'states_by_pass' can tell four models apart; choose among the {len(look)}.")
    summaries = {
        column: summarise(table.dropna(subset=column), ["model", "iteration"], column)
        for column in _MEASURES
        if table[column].notna().any()
    }
    if not summaries:
        raise InputError("The figure 'states_by_pass' has no values to draw; every measure is missing.")
    columns = min(2, len(summaries))
    rows = -(-len(summaries) // columns)
    fills, kin = {}, dict[str, int]()
    for name, style in look.items():  # within a family: filled, hollow, half, other half
        kin[style.family] = kin.get(style.family, -1) + 1
        fills[name] = ("full", "none", "left", "bottom")[kin[style.family]]
    figure, axes = canvas(
        title,
        f"Lines: mean; {interval_note(pd.concat(summaries.values())['n'], 'bands')}.",
        0.4 + 1.75 * rows,
        rows=rows,
        columns=columns,
        key=[_marked(Line2D([], [], label=name), look[name], fills[name]) for name in look],
        sharex=True,
    )
    for i, (ax, (column, summary)) in enumerate(zip(axes.flat, summaries.items(), strict=False)):
        for name, style in look.items():
            part = summary[summary["model"] == name].sort_values("iteration")
            x = part["iteration"].to_numpy(dtype=float)
            low, high = (part[end].clip(*_ENDS.get(column, (None, None))) for end in ("low", "high"))
            if column == "norm":  # which may have a logarithmic axis
                low = low.where(low > 0, part["mean"] / 2)
            ax.fill_between(x, low, high, color=style.shade, alpha=0.18, linewidth=0)
            _marked(ax.plot(x, part["mean"])[0], style, fills[name])
        head = _MEASURES[column]
        if column == "norm" and wide(summary["mean"]):
            log_axis(ax)
            head += " (log)"
        if column in ("distance", "entropy"):
            ax.locator_params(axis="y", nbins=5)
            ax.yaxis.set_major_formatter(Percent())
        elif column == "accuracy":
            percent_axis(ax)
        ax.set_title(head, loc="left")
        ax.xaxis.get_major_locator().set_params(integer=True)
        grid(ax, "y")
        if i + columns >= len(summaries):
            ax.set_xlabel("passes taken")
            ax.tick_params(labelbottom=True)
    for ax in axes.flat[len(summaries) :]:
        ax.set_visible(False)
    return figure


def _marked(line: Line2D, look: Look, fill: str) -> Line2D:
    """The line in this look, its marker filled, hollow or half full."""
    line.set(color=look.shade, linestyle=look.line, linewidth=1.8, marker=look.marker, markersize=6)
    line.set(markeredgecolor=look.shade, markeredgewidth=1.2, markerfacecoloralt="white")
    if fill == "none":
        line.set_markerfacecolor("white")  # not fillstyle "none", through which the line would be seen
    else:
        line.set_fillstyle(fill)
    return line


@styled
def stability(
    table: pd.DataFrame,
    alpha: float,
    trained_depth: int,
    title: str = "Which form of the residual stays bounded when passes are added?",
) -> Figure:
    """Length of the state after each pass, one line per form of the residual: untrained (above) and trained (below).

    ``table``: ``form`` (at most eight, such as "every"), ``weights`` ("initial" or "trained"), ``seed``,
    ``iteration`` (passes taken), ``norm`` (positive), one row per run and state. Lines are geometric means over seeds,
    because the axis is logarithmic; bands are their 95 % intervals. A line ends with a cross before the first pass at
    which a seed's norm is missing, infinite or above :data:`CEILING`. The dashed line is (1 + ``alpha``)^t from the
    first point of "every". Raises ``InputError`` for a missing column, an empty table or one without a finite norm, a
    norm not above zero, other weights, more than eight forms, or a state of a run that occurs twice.
    """
    require(table, ("form", "weights", "seed", "iteration", "norm"), "stability")
    one_row_each(table, ("form", "weights", "seed", "iteration"), "stability")
    known(table["weights"], _WEIGHTS)
    if (table["norm"] <= 0).any():
        raise InputError("The figure 'stability' needs values above zero in 'norm'.")
    rows = _bounded(table)
    require(rows, (), "stability")
    look = _forms(table["form"])
    present = [weights for weights in _WEIGHTS if weights in set(rows["weights"])]
    by = ["weights", "form", "iteration"]
    means = summarise(rows.assign(norm=np.log(rows["norm"])), by, "norm").sort_values("iteration")
    means[["mean", "low", "high"]] = np.exp(means[["mean", "low", "high"]])
    cut, reference = len(rows) < len(table), (rows["form"] == "every").any()
    lines = rows.groupby(["form", "weights"]).size().index
    gone = [f"{form} {_WEIGHTS[w]}" for form, w in table.groupby(["form", "weights"]).size().index.difference(lines)]
    figure, axes = canvas(
        title,
        f"Lines: {'geometric mean; ' if means['n'].max() > 1 else ''}{interval_note(means['n'], 'bands')}"
        f"{f'; dashed: (1 + α)^t, the gain of the identity, for α = {alpha:g}' if reference else ''}"
        f"{f'; cross: the next pass is beyond {CEILING:,.0f}' if cut else ''}."
        + (f" Beyond it from the first pass on: {', '.join(gone).replace('_', ' ')}." if gone else ""),
        0.4 + len(present) * max(2.3, 0.5 + 0.19 * len(look)),
        rows=len(present),
        sharex=True,
        sharey=True,
    )
    last, labels = int(table["iteration"].max()), []
    for ax, weights in zip(axes[:, 0], present, strict=True):
        ends = []
        for form, (colour, line, marker) in look.items():
            part = means[(means["weights"] == weights) & (means["form"] == form)]
            if part.empty:
                continue
            x = part["iteration"].to_numpy(dtype=float)
            ax.fill_between(x, part["low"], part["high"], color=colour, alpha=0.13, linewidth=0)
            ax.plot(x, part["mean"], color=colour, linestyle=line, linewidth=1.7, marker=marker, markersize=5)
            words = form.replace("_", " ")
            end = part["mean"].iloc[-1]
            whole = table[(table["weights"] == weights) & (table["form"] == form)]["iteration"].max()
            if x[-1] < whole:
                ax.plot(x[-1], end, "x", color=colour, markersize=11, markeredgewidth=2.2, zorder=4)
                words += f" (to {x[-1]:.0f})"
            ends.append((end, words, ink(colour)))
            if form == "every":
                t = np.arange(x[0], last + 1)
                gain = part["mean"].iloc[0] * (1 + alpha) ** (t - x[0])
                ax.plot(t, gain, color=GREY, linestyle=DASHED, linewidth=1.3, zorder=1)
                ends.append((gain[-1], "(1 + α)^t", GREY))
        ax.set_title(_WEIGHTS[weights], loc="left", weight="bold")
        ax.set_ylabel("length, ‖h‖ / √d")
        grid(ax, "y")
        labels.append((ax, at_line_ends(ax, *zip(*ends, strict=True))))
    log_axis(axes[0, 0])
    for i, ax in enumerate(axes[:, 0]):
        trained_line(ax, trained_depth, named=i == 0)
    axes[-1, 0].set(xlabel="passes", xlim=(table["iteration"].min() - 0.4, last + 0.4))
    axes[-1, 0].xaxis.get_major_locator().set_params(integer=True)
    for ax, notes in labels:
        spread(ax, notes)
    return figure


def _bounded(table: pd.DataFrame) -> pd.DataFrame:
    """The rows before the first pass at which a seed of their line is missing, infinite or above the ceiling."""
    beyond = table[~(table["norm"] <= CEILING)]
    first = beyond.groupby(["form", "weights"])["iteration"].min().rename("first")
    joined = table.join(first, on=["form", "weights"])
    return table[~(joined["iteration"] >= joined["first"])]


def _forms(names: pd.Series) -> dict[str, tuple]:
    """Colour, line and marker of each form. An unknown form takes the look of a form that is not drawn."""
    names = list(dict.fromkeys(names))
    if len(names) > len(FORMS):
        raise InputError(f"The figure 'stability' can tell {len(FORMS)} forms apart; choose among the {len(names)}.")
    free = iter([look for form, look in FORMS.items() if form not in names])
    order = [form for form in FORMS if form in names] + [form for form in names if form not in FORMS]
    return {form: FORMS.get(form) or next(free) for form in order}
