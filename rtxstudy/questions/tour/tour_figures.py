"""What the parts of an encoder do: activations, rotary positions, norms, and the gradient of a shared layer."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from rtxlib.errors import InputError
from rtxstudy.figures.checks import one_row_each, positive, require
from rtxstudy.figures.labels import at_line_ends, spread
from rtxstudy.figures.lines import apart, seed_points
from rtxstudy.figures.looks import DASHED, FAINT, GREY, INK, OKABE, ink
from rtxstudy.figures.notes import seeds_note
from rtxstudy.figures.scales import grid, logarithmic, percent_axis, wide
from rtxstudy.figures.style import canvas, styled
from rtxstudy.statistics import summarise

_LOOKS = [  # colour, line and marker of the first, the second, … line: no two differ by colour alone
    (OKABE["blue"], "-", "o"),
    (OKABE["vermillion"], (0, (5, 1.6)), "D"),
    (OKABE["green"], (0, (1.2, 1.4)), "s"),
    (OKABE["purple"], (0, (6, 1.5, 1.2, 1.5)), "^"),
    (OKABE["orange"], (0, (3, 1, 1, 1, 1, 1)), "v"),
    (OKABE["black"], (0, (8, 2)), "P"),
]
_NAMES = {"swiglu": "SwiGLU", "geglu": "GeGLU", "gelu": "GELU", "relu": "ReLU"}


def _looks(names: Sequence[object], figure: str) -> dict[object, tuple]:
    """A look for each name. Raises ``InputError`` for more names than there are looks."""
    if len(names) > len(_LOOKS):
        raise InputError(f"The figure '{figure}' can tell {len(_LOOKS)} lines apart; choose among the {len(names)}.")
    return dict(zip(names, _LOOKS, strict=False))


def _named(axes: Axes, ends: list[tuple[float, str, str]]) -> tuple[Axes, list]:
    """Labels (height, words, colour) at the ends of the lines, for :func:`spread` when the layout is known."""
    return axes, at_line_ends(axes, *zip(*ends, strict=True))


@styled
def activations(
    table: pd.DataFrame, title: str = "What does a feed-forward unit let through, and with what slope?"
) -> Figure:
    """Value (above) and slope (below) of each feed-forward whose matrices are a single 1: one line per kind.

    ``table``: ``feedforward``, ``x``, ``value``, ``slope``, as
    :func:`rtxstudy.questions.tour.tour.activation_curves` gives it. Raises ``InputError`` for a missing column, an empty
    table, or an x that occurs twice.
    """
    require(table, ("feedforward", "x", "value", "slope"), "activations")
    one_row_each(table, ("feedforward", "x"), "activations")
    look = _looks(table["feedforward"].unique(), "activations")
    figure, axes = canvas(
        title,
        "Every matrix is a single 1 and every bias 0, so that gate and value are both x.",
        5.0,
        rows=2,
        sharex=True,
    )
    labels = []
    for ax, column in zip(axes[:, 0], ("value", "slope"), strict=True):
        ends = []
        for kind, (colour, line, _) in look.items():
            part = table[table["feedforward"] == kind].sort_values("x")
            ax.plot(part["x"], part[column], color=colour, linestyle=line, linewidth=1.9)
            ends.append((part[column].iloc[-1], _NAMES.get(kind, kind), ink(colour)))
        ax.axhline(0, color=GREY, linewidth=0.8, zorder=0.5)
        grid(ax, "y")
        labels.append(_named(ax, ends))
    axes[0, 0].set_ylabel("what comes out")
    axes[1, 0].set(ylabel="slope", xlabel="x, what goes in", xlim=(table["x"].min(), table["x"].max()))
    for ax, notes in labels:
        spread(ax, notes)
    return figure


@styled
def rotation(table: pd.DataFrame, title: str = "How does RoPE write a position into a query?") -> Figure:
    """The vector (1, 0) of each pair, turned by RoPE to positions 0, 1, 2, …: one circle per pair.

    ``table``: ``pair``, ``angle`` (radians per token), ``position``, ``x``, ``y``, as
    :func:`rtxstudy.questions.tour.tour.rotation` gives it. Raises ``InputError`` for a missing column, an empty table, more
    than three pairs, or a position of a pair that occurs twice.
    """
    require(table, ("pair", "angle", "position", "x", "y"), "rotation")
    one_row_each(table, ("pair", "position"), "rotation")
    pairs = table["pair"].unique()
    if len(pairs) > 3:
        raise InputError(f"The figure 'rotation' has room for three pairs, not {len(pairs)}; choose among them.")
    last = int(table["position"].max())
    figure, axes = canvas(
        title,
        f"Dots: where two numbers of a query point at positions 0 to {last}; darker is later.",
        2.8 if len(pairs) > 1 else 3.6,
        columns=len(pairs),
        sharex=True,
        sharey=True,
    )
    shades = mpl.colormaps["Blues"](np.linspace(0.35, 1, last + 1))
    for ax, pair in zip(axes[0], pairs, strict=True):
        part = table[table["pair"] == pair].sort_values("position")
        ax.add_patch(Circle((0, 0), 1, fill=False, color=FAINT, linewidth=1.2))
        written: list[float] = []
        for row in part.itertuples():
            ax.plot([0, row.x], [0, row.y], color=shades[row.position], linewidth=1.0, zorder=2)
            ax.plot(row.x, row.y, "o", color=shades[row.position], markersize=5.5, zorder=3)
            turned = row.angle * row.position
            if all(abs(np.angle(np.exp(1j * (turned - other)))) > 0.27 for other in written):  # else numbers overlap
                written.append(turned)
                x, y = 1.27 * row.x, 1.27 * row.y
                ax.text(x, y, f"{row.position}", ha="center", va="center_baseline", color=INK)
        ax.set_title(f"pair {pair}\n{np.degrees(part['angle'].iloc[0]):.3g}° a token")
        ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))
        ax.set_xlabel("first number")
        ax.tick_params(length=0)
    axes[0, 0].set_ylabel("second number")
    return figure


@styled
def frequencies(
    table: pd.DataFrame, longest: int, title: str = "How far can each pair count before it comes round?"
) -> Figure:
    """Tokens that each pair takes for a full turn: one line per base, on a logarithmic axis.

    ``table``: ``base`` (of the angles), ``pair``, ``period``. ``longest``: tokens of the longest text, a dashed line.
    Raises ``InputError`` for a missing column, an empty table, a period not above zero, or a pair that occurs twice.
    """
    require(table, ("base", "pair", "period"), "frequencies")
    one_row_each(table, ("base", "pair"), "frequencies")
    positive(table, ("period",), "frequencies")
    look = _looks(table["base"].unique(), "frequencies")
    figure, axes = canvas(title, f"Dashed: the longest text, {longest:,} tokens. Pairs above it never come round.", 3.4)
    ax, ends = axes[0, 0], []
    for base, (colour, line, marker) in look.items():
        part = table[table["base"] == base].sort_values("pair")
        mark = {"marker": marker, "markersize": 4.5}
        ax.plot(part["pair"], part["period"], color=colour, linestyle=line, linewidth=1.6, **mark)
        ends.append((part["period"].iloc[-1], f"base {base:,.0f}", ink(colour)))
    ax.axhline(longest, color=GREY, linewidth=1.2, linestyle=DASHED, zorder=0.5)
    logarithmic(ax.yaxis)
    grid(ax, "y")
    ax.set(xlabel="pair, the fastest first", ylabel="tokens for a full turn")
    ax.xaxis.get_major_locator().set_params(integer=True)
    spread(*_named(ax, ends))
    return figure


@styled
def near_and_far(table: pd.DataFrame, title: str = "What is left of a likeness when the tokens stand apart?") -> Figure:
    """Score (above) and attention weight (below) of a token like the query, by its distance: one line per case.

    ``table``: ``line``, ``distance``, ``score``, ``low``, ``high``, ``weight``, as
    :func:`rtxstudy.questions.tour.tour.near_and_far` gives it. The shade around a line holds 90 % of its random queries.
    Scores below −1.2 times the first one are cut off, because they get no attention. Raises ``InputError`` for a
    missing column, an empty table, or a distance of a line that occurs twice.
    """
    require(table, ("line", "distance", "score", "low", "high", "weight"), "near_and_far")
    one_row_each(table, ("line", "distance"), "near_and_far")
    look = _looks(table["line"].unique(), "near_and_far")
    top, last = table["score"].max(), int(table["distance"].max())
    figure, axes = canvas(
        title,
        f"Query and token score {top:.3g} at distance 0, all other tokens 0. Shade: 90\xa0% of random queries.",
        6.0,
        rows=2,
        sharex=True,
    )
    labels, floor = [], -1.2 * top
    for ax, column in zip(axes[:, 0], ("score", "weight"), strict=True):
        ends = []
        for name, (colour, line, _) in look.items():
            part = table[table["line"] == name].sort_values("distance")
            if column == "score" and (part["high"] > part["low"]).any():
                ax.fill_between(part["distance"], part["low"], part["high"], color=colour, alpha=0.15, linewidth=0)
            ax.plot(part["distance"], part[column], color=colour, linestyle=line, linewidth=1.7)
            ends.append((max(part[column].iloc[-1], floor if column == "score" else 0), str(name), ink(colour)))
        grid(ax, "y")
        labels.append(_named(ax, ends))
    score, weight = axes[:, 0]
    score.axhline(0, color=GREY, linewidth=0.8, zorder=0.5)
    score.set(ylabel="score before the softmax", ylim=(floor, 1.12 * top))
    weight.set(
        ylabel=f"attention among {last + 1} tokens (%)", xlabel="distance in tokens", xlim=(0, last), ylim=(0, None)
    )
    percent_axis(weight)
    for ax, notes in labels:
        spread(ax, notes)
    return figure


@styled
def norms(table: pd.DataFrame, title: str = "What does a norm do to a vector that is off centre?") -> Figure:
    """Mean (above) and standard deviation (below) of a vector's entries after each norm, by their mean before it.

    ``table``: ``norm``, ``shift`` (the mean before), ``mean``, ``spread``, as
    :func:`rtxstudy.questions.tour.tour.norm_outputs` gives it. Raises ``InputError`` for a missing column, an empty table,
    or a shift of a norm that occurs twice.
    """
    require(table, ("norm", "shift", "mean", "spread"), "norms")
    one_row_each(table, ("norm", "shift"), "norms")
    look = _looks(table["norm"].unique(), "norms")
    figure, axes = canvas(
        title, "Entries of standard deviation 1, all moved by the same amount; fresh weights.", 4.4, rows=2, sharex=True
    )
    labels = []
    panels = (("mean", "mean of the entries"), ("spread", "standard deviation"))
    for ax, (column, words) in zip(axes[:, 0], panels, strict=True):
        ends = []
        for name, (colour, line, marker) in look.items():
            part = table[table["norm"] == name].sort_values("shift")
            mark = {"marker": marker, "markersize": 5}
            ax.plot(part["shift"], part[column], color=colour, linestyle=line, linewidth=1.8, **mark)
            ends.append((part[column].iloc[-1], str(name), ink(colour)))
        ax.set(ylabel=words, ylim=(-0.08, 1.12))
        grid(ax, "y")
        labels.append(_named(ax, ends))
    axes[-1, 0].set_xlabel("how far all entries were moved, in standard deviations")
    for ax, notes in labels:
        spread(ax, notes)
    return figure


@styled
def gradient_signal(
    table: pd.DataFrame, title: str = "How much louder is a layer's gradient for being shared?"
) -> Figure:
    """The gradient of a shared layer by the number of passes R: one line per α.

    Above: the gradient in units of one pass's contribution, beside R and √R (dashed). Below: the contribution of the
    first pass over that of the last, beside (1 + α)^(R − 1) (dashed). ``table``: ``alpha``, ``passes``, ``seed``,
    ``signal``, ``first``, as :func:`rtxstudy.questions.tour.tour.gradient_signal` gives it. Lines are means, small points
    the seeds. Raises ``InputError`` for a missing column, an empty table, a value not above zero, or a run that occurs
    twice.
    """
    require(table, ("alpha", "passes", "seed", "signal", "first"), "gradient_signal")
    one_row_each(table, ("alpha", "passes", "seed"), "gradient_signal")
    positive(table, ("signal", "first"), "gradient_signal")
    look = _looks(table["alpha"].unique(), "gradient_signal")
    means = {column: summarise(table, ["alpha", "passes"], column) for column in ("signal", "first")}
    figure, axes = canvas(
        title,
        f"Fresh layers. Dashed: R and √R above, (1 + α)^(R − 1) below. Lines: mean; {seeds_note(means['signal']['n'])}.",
        5.6,
        rows=2,
        sharex=True,
    )
    passes, labels = np.sort(table["passes"].unique()), []
    dashed = {"color": GREY, "linestyle": DASHED, "linewidth": 1.2, "zorder": 0.6}
    for ax, (column, summary) in zip(axes[:, 0], means.items(), strict=True):
        ends = []
        for i, (alpha, (colour, line, marker)) in enumerate(look.items()):
            part = summary[summary["alpha"] == alpha].sort_values("passes")
            runs, aside = table[table["alpha"] == alpha], apart(i, len(look), 0.12)
            if part["n"].max() > 1:
                seed_points(ax, runs["passes"] + aside, runs[column], colour)
            ax.plot(
                part["passes"] + aside,
                part["mean"],
                color=colour,
                linestyle=line,
                linewidth=1.6,
                marker=marker,
                markersize=6,
            )
            ends.append((part["mean"].iloc[-1], f"α = {alpha:g}", ink(colour)))
            if column == "first":
                ax.plot(passes, (1 + alpha) ** (passes - 1), **dashed)
        if column == "signal":
            for guide, words in ((passes, "R"), (passes**0.5, "√R")):
                ax.plot(passes, guide, **dashed)
                ends.append((guide[-1], words, GREY))
        grid(ax, "y")
        labels.append(_named(ax, ends))
    signal, first = axes[:, 0]
    signal.set(ylabel="gradient, in contributions\nof one pass", ylim=(0, None))
    first.set(ylabel="first pass' contribution\nover the last's", xlabel="R, passes through the layer", xticks=passes)
    if wide(table["first"]):
        logarithmic(first.yaxis)
    for ax, notes in labels:
        spread(ax, notes)
    return figure
