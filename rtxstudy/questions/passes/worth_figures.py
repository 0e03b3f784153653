"""What passes are worth: accuracy by pass, by the depth of a text's composition, and a pass measured in layers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from rtxlib.errors import InputError
from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import at_line_ends, place, spread
from rtxstudy.figures.lines import apart, mean_line, seed_points, trained_line
from rtxstudy.figures.looks import Look, ink, looks
from rtxstudy.figures.notes import interval_note, seeds_note
from rtxstudy.figures.scales import Percent, grid, percent_axis
from rtxstudy.figures.style import canvas, styled
from rtxstudy.statistics import summarise

_MARKERS = "oDs^vPX*"  # one for each number of passes, fewest passes first


@styled
def accuracy_by_pass(
    table: pd.DataFrame,
    trained_depth: int,
    title: str = "How many passes does one checkpoint need, and can it go beyond those it was trained for?",
) -> Figure:
    """Accuracy of a checkpoint after each number of passes: one panel per data set, one line per model.

    ``table``: ``data``, ``model``, ``seed``, ``iteration`` (passes taken), ``accuracy`` (0..1), one row per run and
    pass. Bars are 95 % intervals over seeds; the vertical line marks ``trained_depth``. Raises ``InputError`` for a
    missing column, an empty table, or a pass of a run that occurs twice.
    """
    require(table, ("data", "model", "seed", "iteration", "accuracy"), "accuracy_by_pass")
    one_row_each(table, ("data", "model", "seed", "iteration"), "accuracy_by_pass")
    means = summarise(table, ["data", "model", "iteration"]).sort_values("iteration")
    look = looks(table["model"])
    panels = list(table["data"].unique())
    figure, axes = canvas(
        title,
        f"Mean accuracy on the test texts; {interval_note(means['n'])}.",
        0.4 + len(panels) * max(2.3 if len(panels) > 1 else 3.2, 0.5 + 0.19 * len(look)),
        rows=len(panels),
        sharex=True,
    )
    labels = []
    for i, (ax, data) in enumerate(zip(axes[:, 0], panels, strict=True)):
        ends = []
        for j, (name, style) in enumerate(look.items()):
            part = means[(means["data"] == data) & (means["model"] == name)]
            if part.empty:
                continue
            mean_line(ax, part["iteration"] + apart(j, len(look)), part, style)
            ends.append((part["mean"].iloc[-1], name, ink(style.shade)))
        trained_line(ax, trained_depth, named=i == 0)
        percent_axis(ax)
        ax.set_title(str(data), loc="left", weight="bold")
        ax.set_ylabel("accuracy (%)")
        grid(ax, "y")
        labels.append((ax, at_line_ends(ax, *zip(*ends, strict=True))))
    axes[-1, 0].set(
        xlabel="passes taken", xlim=(table["iteration"].min() - 0.4, max(table["iteration"].max(), trained_depth) + 0.4)
    )
    axes[-1, 0].xaxis.get_major_locator().set_params(integer=True)
    for ax, notes in labels:
        spread(ax, notes)
    return figure


@styled
def composition(table: pd.DataFrame, title: str = "Do more passes read deeper sentences?") -> Figure:
    """Accuracy by the depth of a text's composition: one panel per arm, one line per number of passes.

    A darker line has more passes. ``table``: ``arm`` (such as "fixed parameters", "fixed arithmetic"), ``layers``,
    ``iterations`` (passes), ``depth`` (from 0), ``seed``, ``accuracy`` (0..1), one row per run and depth. Bars are
    95 % intervals over seeds. If an arm also varies its layers, its lines are called "8 layers × 1". Raises
    ``InputError`` for a missing column, an empty table, more than eight numbers of passes, or a row that occurs twice.
    """
    line = ["arm", "layers", "iterations"]
    require(table, (*line, "depth", "seed", "accuracy"), "composition")
    one_row_each(table, (*line, "depth", "seed"), "composition")
    passes = sorted(table["iterations"].unique())
    if len(passes) > len(_MARKERS):
        raise InputError(
            f"The figure 'composition' can tell {len(_MARKERS)} numbers of passes apart; choose among the {len(passes)}."
        )
    shades = [to_hex(colour) for colour in colormaps["Oranges"](np.linspace(0.42, 1, len(passes)))]
    look = {r: Look("", shades[i], _MARKERS[i], shades[i], "-") for i, r in enumerate(passes)}
    means = summarise(table, [*line, "depth"]).sort_values(["iterations", "layers", "depth"])
    panels = list(table["arm"].unique())
    most = table.groupby("arm")[["layers", "iterations"]].apply(lambda rows: len(rows.drop_duplicates())).max()
    figure, axes = canvas(
        title,
        f"The darker the line, the more passes, R. Mean accuracy; {interval_note(means['n'])}.",
        0.4 + len(panels) * max(2.4, 0.5 + 0.19 * most),
        rows=len(panels),
        sharex=True,
        sharey=True,
    )
    labels = []
    for ax, arm in zip(axes[:, 0], panels, strict=True):
        of_arm = means[means["arm"] == arm]
        several, ends = of_arm["layers"].nunique() > 1, []
        groups = list(of_arm.groupby(["iterations", "layers"], sort=False))
        for i, ((r, layers), part) in enumerate(groups):
            mean_line(ax, part["depth"] + apart(i, len(groups)), part, look[r])
            words = f"{layers} layer{'s' if layers != 1 else ''} × {r}" if several else f"R = {r}"
            ends.append((part["mean"].iloc[-1], words, ink(look[r].shade)))
        constant = (of_arm["layers"] * of_arm["iterations"]).unique()
        head = [str(arm)]
        if several:
            head += [f"layers × passes = {constant[0]}"] if len(constant) == 1 else []
        else:
            layers = of_arm["layers"].iloc[0]
            head += [f"{layers} layer{'s' if layers != 1 else ''}, passed R times"]
        ax.set_title(": ".join(head), loc="left", weight="bold")
        ax.set_ylabel("accuracy (%)")
        grid(ax, "y")
        labels.append((ax, at_line_ends(ax, *zip(*ends, strict=True))))
    percent_axis(axes[0, 0])
    axes[-1, 0].set(
        xlabel="depth of composition of the text", xlim=(table["depth"].min() - 0.35, table["depth"].max() + 0.35)
    )
    axes[-1, 0].xaxis.get_major_locator().set_params(integer=True)
    for ax, notes in labels:
        spread(ax, notes)
    return figure


@styled
def worth(table: pd.DataFrame, fits: pd.DataFrame, title: str = "What is one more pass worth, in layers?") -> Figure:
    """Test error by effective layers, for standard encoders and for loops, with the curves of the fitted law.

    ``table``: ``data``, ``model``, ``layers``, ``iterations`` (passes), ``seed``, ``error`` (0..1), one row per run.
    A run of one pass is a standard encoder. ``fits``, one row per data set: ``data``, ``phi`` with its interval
    ``low`` to ``high`` (infinite or NaN without a limit), ``E``, ``A``, ``beta`` of the law error = E + A·w^(−beta),
    and ``n`` runs. A block of N layers passed r times counts as w = N·r^phi layers. One curve has r = 1, the other
    N = 1; the second is left out at φ = 1, where both are the same. Raises ``InputError`` for a missing column, an
    empty table, a run or fit that occurs twice, or a data set without its fit.
    """
    require(table, ("data", "model", "layers", "iterations", "seed", "error"), "worth")
    require(fits, ("data", "phi", "low", "high", "E", "A", "beta", "n"), "worth")
    one_row_each(table, ("data", "model", "layers", "iterations", "seed"), "worth")
    one_row_each(fits, ("data",), "worth")
    panels = list(table["data"].unique())
    if lacking := [data for data in panels if data not in set(fits["data"])]:
        raise InputError(f"The figure 'worth' has no fit for '{lacking[0]}'; give a row of fits for each data set.")
    means = summarise(table, ["data", "model", "layers", "iterations"], "error")
    standard, loop = looks(["standard", "recurrent"]).values()
    figure, axes = canvas(
        title,
        "A block of N layers passed r times is worth N·r^φ layers; φ\xa0=\xa01: as good as so many layers of their own, "
        f"φ\xa0=\xa00: nothing. Large marks: mean; {seeds_note(means['n'])}; φ with its 95\xa0%\xa0interval.",
        0.45 + (3.6 if len(panels) == 1 else (2.7 if len(panels) == 2 else 2.2) * len(panels)),
        rows=len(panels),
        sharex=True,
        key=[_curved(standard, "layers of their own"), _curved(loop, "loops: layers × passes; curve: one layer")],
    )
    every = (table["layers"] * table["iterations"]).to_numpy(dtype=float)
    written = []
    for ax, data in zip(axes[:, 0], panels, strict=True):
        runs, part = table[table["data"] == data], means[means["data"] == data]
        fit = fits[fits["data"] == data].iloc[0]
        curves = _curves(ax, fit, every.max(), standard, loop)
        for look, rows in ((standard, runs["iterations"] == 1), (loop, runs["iterations"] > 1)):
            if part["n"].max() > 1:
                points = runs[rows]
                seed_points(ax, points["layers"] * points["iterations"], points["error"], look.colour)
            points = part[(part["iterations"] == 1) if look is standard else (part["iterations"] > 1)]
            ax.plot(
                points["layers"] * points["iterations"],
                points["mean"],
                look.marker,
                color=look.colour,
                markersize=8,
                markeredgecolor="white",
                zorder=4,
            )
        ax.set_title(f"{data}: {_exponent(fit)}, n = {int(fit['n']):,}", loc="left", weight="bold")
        ax.set_ylabel("test error (%)")
        ax.yaxis.set_major_formatter(Percent())
        ax.margins(y=0.14)
        grid(ax, "y")
        written.append((ax, part, curves))
    last = axes[-1, 0]
    last.set_xscale("log", base=2)
    last.set(xlim=(every.min() / 1.25, every.max() * 1.3), xlabel="effective layers: layers × passes")
    ticks = [one * 2**k for k in range(8) for one in (1, 1.5) if one * 2**k != 1.5]  # 1, 2, 3, 4, 6, 8, 12, …
    last.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if every.min() <= tick <= every.max()]))
    last.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}"))
    last.xaxis.set_minor_locator(NullLocator())
    for ax, part, segments in written:
        points = part[part["iterations"] > 1]
        if points.empty:
            continue
        for row in part[part["iterations"] == 1].itertuples(index=False):  # labels must not cover these marks
            segments.append(((row.layers * 0.96, row.mean), (row.layers * 1.04, row.mean)))
        words = [f"{layers}×{r}" for layers, r in zip(points["layers"], points["iterations"], strict=True)]
        x, y = (points["layers"] * points["iterations"]).to_numpy(dtype=float), points["mean"].to_numpy()
        place(ax, x, y, words, [5.0] * len(points), [ink(loop.colour)] * len(points), segments=segments)
    return figure


def _curved(look: Look, words: str) -> Line2D:
    """The handle of a mark and its curve in the key."""
    return Line2D([], [], color=look.colour, marker=look.marker, markersize=6.5, linewidth=1.5, label=words)


def _curves(ax: Axes, fit: pd.Series, most: float, standard: Look, loop: Look) -> list:
    """Draw the fitted law of a standard encoder and of one layer passed r times; returns the segments drawn."""
    if not np.isfinite(fit[["E", "A", "beta"]].to_numpy(dtype=float)).all():
        return []
    x = np.geomspace(1, max(most, 1.01), 80)
    curves = [(standard, 1.0)]
    if np.isfinite(fit["phi"]) and not np.isclose(fit["phi"], 1, atol=1e-6):
        curves.append((loop, float(fit["phi"])))
    segments = []
    for look, exponent in curves:
        y = fit["E"] + fit["A"] * x ** (-fit["beta"] * exponent)
        ax.plot(x, y, color=look.colour, linewidth=1.5, alpha=0.8, zorder=2)
        segments += list(pairwise(zip(x[::4], y[::4], strict=True)))
    return segments


def _exponent(fit: pd.Series) -> str:
    """``φ = 0.62 (0.41 to 0.90)``, or the part of it that the data determine."""
    if not np.isfinite(fit["phi"]):
        return "φ is not determined"

    def number(value: float) -> str:
        return f"{value:.2f}".replace("-", "−")

    low, high = np.isfinite(fit["low"]), np.isfinite(fit["high"])
    limits = {
        (True, True): f"{number(fit['low'])} to {number(fit['high'])}",
        (True, False): f"{number(fit['low'])} or more",
        (False, True): f"{number(fit['high'])} or less",
        (False, False): "without limits",
    }
    return f"φ = {number(fit['phi'])} ({limits[bool(low), bool(high)]})"
