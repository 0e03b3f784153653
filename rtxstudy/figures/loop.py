"""What the loop does: where its gradient arrives, what each pass changes, and which residual keeps it bounded."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxlib.errors import InputError, nearest
from rtxstudy.evaluation.statistics import summarise
from rtxstudy.figures import lines, style
from rtxstudy.figures.labels import at_line_ends, place, spread, wrap
from rtxstudy.figures.style import GREY, Look, canvas, ink, looks, require, styled

_DASHED, _DOTTED, _DASH_DOT = (0, (4, 2.5)), (0, (1.2, 1.6)), (0, (6, 1.8, 1.2, 1.8))
_MEASURES = {  # of a state: what its panel is called
    "norm": "length of the state, ‖h‖ / √d",
    "cosine": "cosine with the state before",
    "distance": "length of the step (% of the state)",
    "token_correlation": "correlation of a text's tokens",
    "accuracy": "accuracy when read out (%)",
    "entropy": "attention entropy (% of maximum)",
}
_OKABE = [to_hex(colour) for colour in mpl.color_sequences["okabe_ito"]]  # black, orange, sky, green, …
_FORMS = {  # of the residual: colour, line, marker; yellow would be lost on white, so black serves twice
    "none": (_OKABE[0], "-", "o"),
    "every": (_OKABE[6], "-", "D"),
    "from_second": (_OKABE[1], (0, (5, 1.6)), "s"),
    "learned": (_OKABE[3], "-", "^"),
    "damped": (_OKABE[5], "-", "v"),
    "gated": (_OKABE[2], (0, (5, 1.6)), "P"),
    "loop_norm": (_OKABE[7], "-", "X"),
    "input_injection": (_OKABE[0], (0, (1.2, 1.4)), "d"),
}
_WEIGHTS = {"initial": "at initialisation", "trained": "after training"}
CEILING = 1e5  # a state so long has left every scale on which the others can be told apart


def _looks(names: pd.Series) -> dict[str, Look]:
    """A look for each name: a form of the loop has the colour it has in :func:`stability`, a model that of its family."""
    found = looks(names)
    for name in found.keys() & _FORMS.keys():
        colour, line, marker = _FORMS[name]
        found[name] = Look(name, colour, marker, colour, line)
    return found


@styled
def gradient_by_layer(table: pd.DataFrame, title: str = "Where in the network does the gradient arrive?") -> Figure:
    """Norm of the gradient at each application of a layer, in the order a text passes them, a line a model.

    ``table``: ``model``, ``seed``, ``depth`` (1 up to the effective number of layers), ``iteration`` (the pass it
    belongs to), ``norm`` (positive), one row a run and depth. Lines are means, small points the seeds; where a block
    of several layers is passed more than once, its second and later layers are hollow. The axis is logarithmic where
    norms span more than a factor of five. Raises ``InputError`` for a missing column, an empty table, a norm not
    above zero, or a depth of a run that stands twice.
    """
    require(table, ("model", "seed", "depth", "iteration", "norm"), "gradient_by_layer")
    style.one_row_each(table, ("model", "seed", "depth"), "gradient_by_layer")
    lines.positive(table, ("norm",), "gradient_by_layer")
    means = summarise(table, ["model", "depth"], "norm", carry=["iteration"]).sort_values(["model", "depth"])
    begins = means["iteration"] != means.groupby("model")["iteration"].shift()
    loops = means.groupby("model")["iteration"].transform("nunique") > 1
    means["later"] = loops & ~begins
    figure, axes = canvas(
        title,
        f"Lines: mean; {lines.seeds_note(means['n'])}"
        f"{'; hollow: a later layer of the same pass' if means['later'].any() else ''}.",
        3.7,
    )
    ax, ends, segments = axes[0, 0], [], []
    for name, seen in looks(table["model"]).items():
        part, runs = means[means["model"] == name], table[table["model"] == name]
        points = part[["depth", "mean"]].to_numpy(dtype=float)
        if part["n"].max() > 1:
            lines.seed_points(ax, runs["depth"], runs["norm"], seen.shade)
        ax.plot(*points.T, color=seen.shade, linestyle=seen.line, linewidth=1.8)
        for later, inside in ((False, seen.shade), (True, "white")):
            ax.plot(
                *points[part["later"] == later].T,
                seen.marker,
                color=seen.shade,
                markerfacecolor=inside,
                markersize=6.5,
                markeredgewidth=1.3,
            )
        segments += list(pairwise(points))
        ends.append((*points[-1], name, ink(seen.shade)))
    ax.margins(y=0.1)
    if style.wide(table["norm"]):
        style.logarithmic(ax.yaxis)
    else:
        ax.set_ylim(bottom=0)
    ax.set(xlabel="layers passed (1: next to the embedding)", ylabel="gradient norm")
    ax.xaxis.get_major_locator().set_params(integer=True)
    style.grid(ax, "y")
    last = means["depth"].max()  # a line that ends before it has its name inside
    spread(ax, at_line_ends(ax, *zip(*(end[1:] for end in ends if end[0] == last), strict=True)))
    if inner := [end for end in ends if end[0] < last]:
        x, y, words, colours = zip(*inner, strict=True)
        place(ax, x, y, words, [4.5] * len(x), colours, segments=segments)
    return figure


@styled
def gradient_bound(table: pd.DataFrame, title: str = "Does the residual keep the gradient above α^(R−t)?") -> Figure:
    """Gradient that reaches each state over that at the last, beside the bound claimed and the identity's gain.

    ``table``: ``model``, ``seed``, ``iteration`` (0..R: the state after that pass, 0 what enters the loop), ``ratio``
    (mean over texts of ‖∂L/∂h_t‖ / ‖∂L/∂h_R‖), ``least`` (of a text), ``bound`` (α^(R−t)), ``gain`` ((1 + α)^(R−t)),
    all positive but ``bound``, which is not drawn where it is zero, one row a run and iteration; a panel a model.
    ``least`` is drawn as the least of any seed. Raises ``InputError`` for a missing column, an empty table, a value not
    above zero, or a run's iteration that stands twice.
    """
    values = ("ratio", "least", "bound", "gain")
    require(table, ("model", "seed", "iteration", *values), "gradient_bound")
    style.one_row_each(table, ("model", "seed", "iteration"), "gradient_bound")
    lines.positive(table, ("ratio", "least", "gain"), "gradient_bound")
    table = table.assign(bound=table["bound"].where(table["bound"] > 0))  # a bound of nothing has no place on a log axis
    look = _looks(table["model"])
    columns = min(2, len(look))
    rows = -(-len(look) // columns)
    means = summarise(table, ["model", "iteration"], "ratio").sort_values("iteration")
    figure, axes = canvas(
        title,
        "‖∂L/∂h_t‖ / ‖∂L/∂h_R‖: how long a text's gradient is at state t, beside the last state. Line: mean over texts "
        f"and seeds; dotted: the least text of any seed; {lines.seeds_note(means['n'])}; grey: the bound that is "
        "claimed, and the gain of the identities alone.",
        0.4 + rows * (3.4 if columns == 1 else 2.75 if rows < 3 else 2.2),
        rows=rows,
        columns=columns,
        sharey=True,
    )
    panels = list(zip(look, axes.flat, strict=False))
    written = []
    for name, ax in panels:
        runs, part, seen = table[table["model"] == name], means[means["model"] == name], look[name]
        t = part["iteration"].to_numpy(dtype=float)
        of_runs = runs.groupby("iteration")
        curves = [
            (part["mean"].to_numpy(), "mean", seen.shade, seen.line, 2.0),
            (of_runs["least"].min().to_numpy(), "least text", seen.shade, _DOTTED, 1.5),
            (of_runs["bound"].mean().to_numpy(), "bound claimed", GREY, _DASHED, 1.3),
            (of_runs["gain"].mean().to_numpy(), "identity's gain", GREY, _DASH_DOT, 1.3),
        ]
        if part["n"].max() > 1:
            lines.seed_points(ax, runs["iteration"], runs["ratio"], seen.shade)
        for i, (y, _, colour, line, width) in enumerate(curves):
            mark = {"marker": seen.marker, "markersize": 6.5, "markeredgecolor": "white"} if i == 0 else {}
            ax.plot(t, y, color=colour, linestyle=line, linewidth=width, zorder=3 - i / 4, **mark)
        room = style.WIDTH * 72 / columns - 60  # points across a panel, about
        ax.set_title("\n".join(wrap(name, room, style.BODY, "bold")), loc="left", weight="bold")
        ax.margins(x=0.1, y=0.16)  # room for the names of the curves
        ax.set_xticks(range(int(t.max()) + 1))
        style.grid(ax, "y")
        written.append((ax, t, curves))
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    style.logarithmic(axes[0, 0].yaxis)
    for row in axes:
        row[0].set_ylabel("ratio to the last state")
    for _, ax in panels[-columns:]:
        ax.set_xlabel("passes taken, t")
    for ax, t, curves in written:
        segments = [ends for y, *_ in curves for ends in pairwise(zip(t, y, strict=True))]
        # names stand at the left end, for at t = R all curves meet
        x, y, words, colours = zip(*((t[0], y[0], word, ink(colour)) for y, word, colour, *_ in curves), strict=True)
        place(ax, x, y, words, [4.0] * len(x), colours, segments=segments)
    return figure


@styled
def states_by_pass(table: pd.DataFrame, title: str = "What does each pass change?") -> Figure:
    """Six measures of the state after each pass, a panel a measure and a line a model, with 95 % intervals over seeds.

    ``table``: ``model``, ``seed``, ``iteration`` (0..R, 0 what enters the loop), ``norm`` (‖h‖ / √d), ``cosine``
    (with the state before), ``distance`` (‖Δh‖ over the length before), ``token_correlation``, ``accuracy`` and
    ``entropy`` (of attention, a share of its maximum), one row a run and iteration. A value that does not exist, such
    as a step before the first pass, is NaN; a measure without any value has no panel. Up to four models. Raises
    ``InputError`` for a missing column, an empty table or one without values, more models, or a run's iteration that
    stands twice.
    """
    require(table, ("model", "seed", "iteration", *_MEASURES), "states_by_pass")
    style.one_row_each(table, ("model", "seed", "iteration"), "states_by_pass")
    look = _looks(table["model"])
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
    for name, seen in look.items():  # of one family: filled, hollow, and two halves
        kin[seen.family] = kin.get(seen.family, -1) + 1
        fills[name] = ("full", "none", "left", "bottom")[kin[seen.family]]
    figure, axes = canvas(
        title,
        f"Lines: mean; {style.interval_note(pd.concat(summaries.values())['n'], 'bands')}.",
        0.4 + 1.75 * rows,
        rows=rows,
        columns=columns,
        key=[_marked(Line2D([], [], label=name), look[name], fills[name]) for name in look],
        sharex=True,
    )
    for i, (ax, (column, summary)) in enumerate(zip(axes.flat, summaries.items(), strict=False)):
        for name, seen in look.items():
            part = summary[summary["model"] == name].sort_values("iteration")
            x = part["iteration"].to_numpy(dtype=float)
            low = part["low"].where(part["low"] > 0, part["mean"] / 2) if column == "norm" else part["low"]  # for a log
            ax.fill_between(x, low, part["high"], color=seen.shade, alpha=0.18, linewidth=0)
            _marked(ax.plot(x, part["mean"])[0], seen, fills[name])
        head = _MEASURES[column]
        if column == "norm" and style.wide(summary["mean"]):
            lines.log_axis(ax)
            head += " (log)"
        if column in ("distance", "entropy"):
            ax.locator_params(axis="y", nbins=5)
            ax.yaxis.set_major_formatter(style.Percent())
        elif column == "accuracy":
            lines.percent_axis(ax)
        ax.set_title(head, loc="left")
        ax.xaxis.get_major_locator().set_params(integer=True)
        style.grid(ax, "y")
        if i + columns >= len(summaries):
            ax.set_xlabel("passes taken")
            ax.tick_params(labelbottom=True)
    for ax in axes.flat[len(summaries) :]:
        ax.set_visible(False)
    return figure


def _marked(line: Line2D, seen: Look, fill: str) -> Line2D:
    """The line in this look, its marker filled, hollow or half full."""
    line.set(color=seen.shade, linestyle=seen.line, linewidth=1.8, marker=seen.marker, markersize=6)
    line.set(markeredgecolor=seen.shade, markeredgewidth=1.2, markerfacecoloralt="white")
    if fill == "none":
        line.set_markerfacecolor("white")  # hollow, yet the line does not run through it
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
    """Length of the state after each pass, a line a form of the residual, before training above and after it below.

    ``table``: ``form`` (at most eight, such as "every"), ``weights`` ("initial" or "trained"), ``seed``,
    ``iteration``, ``norm`` (positive), one row a run and iteration. Lines are geometric means over seeds, as is right
    on a logarithmic axis, and bands their 95 % intervals. A line ends with a cross before the first pass at which a
    seed's norm is missing, infinite or above :data:`CEILING`. Dashed: (1 + ``alpha``)^t from the first point of
    "every". Raises ``InputError`` for a missing column, an empty table or one without a finite norm, a norm not above
    zero, other weights, more forms, or a run's iteration that stands twice.
    """
    require(table, ("form", "weights", "seed", "iteration", "norm"), "stability")
    style.one_row_each(table, ("form", "weights", "seed", "iteration"), "stability")
    if unknown := sorted(set(table["weights"]) - set(_WEIGHTS), key=str):
        raise InputError(f"'{unknown[0]}' is none of {', '.join(_WEIGHTS)}.{nearest(str(unknown[0]), _WEIGHTS)}")
    if (table["norm"] <= 0).any():
        raise InputError("The figure 'stability' needs values above zero in 'norm'.")
    kept = _bounded(table)
    require(kept, (), "stability")
    seen = _forms(table["form"])
    present = [weights for weights in _WEIGHTS if weights in set(kept["weights"])]
    by = ["weights", "form", "iteration"]
    means = summarise(kept.assign(norm=np.log(kept["norm"])), by, "norm").sort_values("iteration")
    means[["mean", "low", "high"]] = np.exp(means[["mean", "low", "high"]])
    cut, reference = len(kept) < len(table), (kept["form"] == "every").any()
    drawn = kept.groupby(["form", "weights"]).size().index
    gone = [f"{form} {_WEIGHTS[w]}" for form, w in table.groupby(["form", "weights"]).size().index.difference(drawn)]
    figure, axes = canvas(
        title,
        f"Lines: {'geometric mean; ' if means['n'].max() > 1 else ''}{style.interval_note(means['n'], 'bands')}"
        f"{f'; dashed: (1 + α)^t, the gain of the identity, for α = {alpha:g}' if reference else ''}"
        f"{f'; cross: the next pass is beyond {CEILING:,.0f}' if cut else ''}."
        + (f" Beyond it from the first pass on: {', '.join(gone).replace('_', ' ')}." if gone else ""),
        0.4 + len(present) * max(2.3, 0.5 + 0.19 * len(seen)),
        rows=len(present),
        sharex=True,
        sharey=True,
    )
    last, labels = int(table["iteration"].max()), []
    for ax, weights in zip(axes[:, 0], present, strict=True):
        ends = []
        for form, (colour, line, marker) in seen.items():
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
                ax.plot(t, gain, color=GREY, linestyle=_DASHED, linewidth=1.3, zorder=1)
                ends.append((gain[-1], "(1 + α)^t", GREY))
        ax.set_title(_WEIGHTS[weights], loc="left", weight="bold")
        ax.set_ylabel("length, ‖h‖ / √d")
        style.grid(ax, "y")
        labels.append((ax, at_line_ends(ax, *zip(*ends, strict=True))))
    lines.log_axis(axes[0, 0])
    for i, ax in enumerate(axes[:, 0]):
        lines.trained_line(ax, trained_depth, named=i == 0)
    axes[-1, 0].set(xlabel="passes", xlim=(table["iteration"].min() - 0.4, last + 0.4))
    axes[-1, 0].xaxis.get_major_locator().set_params(integer=True)
    for ax, notes in labels:
        spread(ax, notes)
    return figure


def _bounded(table: pd.DataFrame) -> pd.DataFrame:
    """The rows before the first pass at which any seed of their line has left the scale."""
    beyond = table[~(table["norm"] <= CEILING)]
    first = beyond.groupby(["form", "weights"])["iteration"].min().rename("first")
    joined = table.join(first, on=["form", "weights"])
    return table[~(joined["iteration"] >= joined["first"])]


def _forms(names: pd.Series) -> dict[str, tuple]:
    """Colour, line and marker of each form; one that is not known takes the place of one that is not there."""
    names = list(dict.fromkeys(names))
    if len(names) > len(_FORMS):
        raise InputError(f"The figure 'stability' can tell {len(_FORMS)} forms apart; choose among the {len(names)}.")
    free = iter([drawn for form, drawn in _FORMS.items() if form not in names])
    order = [form for form in _FORMS if form in names] + [form for form in names if form not in _FORMS]
    return {form: _FORMS.get(form) or next(free) for form in order}
