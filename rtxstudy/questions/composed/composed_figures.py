"""Tasks composed of real phrases: accuracy by the number of steps, for three encoders and for passes at test time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from rtxlib.errors import InputError
from rtxstudy.figures.checks import known, one_row_each, require
from rtxstudy.figures.labels import at_line_ends, spread
from rtxstudy.figures.lines import apart, mean_line, trained_line
from rtxstudy.figures.looks import DASHED, GREY, Look, ink, looks
from rtxstudy.figures.scales import grid, percent_axis
from rtxstudy.figures.style import canvas, styled

LOOKS = looks(["standard deep", "standard shallow", "recurrent loop"])
ARMS = dict(zip(("deep", "shallow", "loop"), LOOKS.values(), strict=True))
MARKERS = "oDs^vPX*"  # one for each number of passes, fewest passes first
OVER = "Bars: 95 % intervals over new seeds and new sentences."


@styled
def accuracy_by_steps(
    table: pd.DataFrame, levels: pd.DataFrame, title: str = "Does depth pay more, the more steps an answer needs?"
) -> Figure:
    """Accuracy by the number of steps k: one panel per task, one line each for the deep, the shallow and the looped encoder.

    ``table``: ``data``, ``arm`` ("deep", "shallow", "loop"), ``steps``, ``mean``, ``low``, ``high`` (0..1), as
    :func:`rtxstudy.questions.composed.composed_tables.by_steps` gives them. ``levels``: ``data``, ``accuracy``, what counting
    words reaches (dashed). Raises ``InputError`` for a missing column, an empty table, another arm, a row that occurs twice, or
    a task without its level.
    """
    require(table, ("data", "arm", "steps", "mean", "low", "high"), "accuracy_by_steps")
    require(levels, ("data", "accuracy"), "accuracy_by_steps")
    one_row_each(table, ("data", "arm", "steps"), "accuracy_by_steps")
    one_row_each(levels, ("data",), "accuracy_by_steps")
    known(table["arm"], ARMS)
    panels, level = list(table["data"].unique()), levels.set_index("data")["accuracy"]
    if lacking := [data for data in panels if data not in level]:
        raise InputError(f"The figure 'accuracy_by_steps' has no level of counting words for '{lacking[0]}'.")
    note = f"Dashed: what counting words reaches. {OVER}"
    figure, axes = canvas(title, note, 0.4 + 2.8 * len(panels), rows=len(panels), sharex=True, sharey=True)
    labels = []
    for ax, data in zip(axes[:, 0], panels, strict=True):
        ends = [(level[data], "counting words", GREY)]
        ax.axhline(level[data], color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
        for i, (arm, look) in enumerate(ARMS.items()):
            part = table[(table["data"] == data) & (table["arm"] == arm)].sort_values("steps")
            if len(part):
                mean_line(ax, part["steps"] + apart(i, len(ARMS)), part, look)
                ends.append((part["mean"].iloc[-1], arm, ink(look.shade)))
        labels.append(_named(ax, str(data), ends))
    _over_steps(axes[:, 0], labels)
    return figure


@styled
def accuracy_by_passes(table: pd.DataFrame, title: str = "Do more passes follow more steps than in training?") -> Figure:
    """Accuracy by the number of steps k: one panel per loop, one line per number of passes at test time.

    A darker line has more passes. ``table``: ``model``, ``trained_steps`` (the most steps of a training text; a vertical
    line), ``steps``, ``passes``, ``mean``, ``low``, ``high`` (0..1), of one data set, as
    :func:`rtxstudy.questions.composed.composed_tables.by_passes` gives them. Raises ``InputError`` for a missing column, an
    empty table, a row that occurs twice, or more than eight numbers of passes.
    """
    require(table, ("model", "trained_steps", "steps", "passes", "mean", "low", "high"), "accuracy_by_passes")
    one_row_each(table, ("model", "steps", "passes"), "accuracy_by_passes")
    passes = sorted(table["passes"].unique())
    if len(passes) > len(MARKERS):
        raise InputError(
            f"The figure 'accuracy_by_passes' can tell {len(MARKERS)} numbers of passes apart; choose among the {len(passes)}."
        )
    shades = [to_hex(colour) for colour in colormaps["Oranges"](np.linspace(0.42, 1, len(passes)))]
    look = {r: Look("", shade, marker, shade, "-") for r, shade, marker in zip(passes, shades, MARKERS, strict=False)}
    panels = list(table["model"].unique())
    note = f"The darker the line, the more passes, R. {OVER}"
    height = 0.4 + len(panels) * max(2.6, 0.5 + 0.19 * len(passes))
    figure, axes = canvas(title, note, height, rows=len(panels), sharex=True, sharey=True)
    labels = []
    for place, (ax, model) in enumerate(zip(axes[:, 0], panels, strict=True)):
        ends = []
        for i, r in enumerate(passes):
            part = table[(table["model"] == model) & (table["passes"] == r)].sort_values("steps")
            if len(part):
                mean_line(ax, part["steps"] + apart(i, len(passes)), part, look[r])
                ends.append((part["mean"].iloc[-1], f"R = {r}", ink(look[r].shade)))
        trained_line(ax, table["trained_steps"].max(), named=place == 0, units=("step", "steps"))
        labels.append(_named(ax, str(model), ends))
    _over_steps(axes[:, 0], labels)
    return figure


def _named(ax: Axes, title: str, ends: Sequence[tuple[float, str, str]]) -> list[Annotation]:
    """Name a panel, and its lines at their ends: (height, words, colour) each. Returns the names of the lines."""
    ax.set_title(title, loc="left", weight="bold")
    ax.set_ylabel("accuracy (%)")
    grid(ax, "y")
    return at_line_ends(ax, *zip(*ends, strict=True))


def _over_steps(panels: Sequence[Axes], labels: Sequence[list[Annotation]]) -> None:
    """The shared axes of panels of accuracy over steps; the names of their lines move apart once the axes stand."""
    percent_axis(panels[0])
    panels[-1].set_xlabel("steps to the phrase that decides")
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    for ax, notes in zip(panels, labels, strict=True):
        spread(ax, notes)
