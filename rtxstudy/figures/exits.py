"""Leaving the loop early: the accuracy of each way to decide when, against the time that was measured."""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxlib.errors import InputError, nearest
from rtxstudy.evaluation.statistics import summarise
from rtxstudy.figures import lines, style
from rtxstudy.figures.labels import place
from rtxstudy.figures.style import canvas, ink, require, styled

FIXED = "fixed"
_OKABE = [to_hex(colour) for colour in mpl.color_sequences["okabe_ito"]]
_CRITERIA = {  # colour, marker, line, and what the key calls it
    FIXED: (_OKABE[6], "D", "-", "all texts take 1, 2, … passes"),
    "confidence": (_OKABE[5], "o", "-", "leave when confident"),
    "agreement": (_OKABE[3], "s", (0, (5, 1.6)), "leave when passes agree"),
    "change": (_OKABE[7], "^", (0, (1.2, 1.4)), "leave when the state settles"),
}


@styled
def exits(table: pd.DataFrame, title: str = "What does leaving early cost, and what does it save?") -> Figure:
    """Accuracy against measured time, a line a criterion through its settings; large: the threshold chosen beforehand.

    ``table``: ``model``, ``seed``, ``criterion`` ("fixed", "confidence", "agreement", "change"), ``setting`` (the
    passes all texts take, or the threshold), ``passes`` (mean over texts), ``ms_per_text`` (positive), ``accuracy``
    (0..1), ``chosen`` (whether validation data chose this threshold; one a criterion and seed, never of "fixed"), and
    optionally ``data``; one row a run and setting, a panel a model and data set. A line runs through the means over
    seeds at the settings that every seed has; a chosen threshold may be of its seed alone, and its mark is the mean
    over seeds, with 95 % intervals of both time and accuracy. Raises ``InputError`` for a missing column, an empty
    table, an unknown criterion, a time not above zero, a row that stands twice, or a second choice.
    """
    required = ("model", "seed", "criterion", "setting", "passes", "ms_per_text", "accuracy", "chosen")
    require(table, required, "exits")
    if unknown := sorted(set(table["criterion"]) - set(_CRITERIA), key=str):
        raise InputError(f"'{unknown[0]}' is none of {', '.join(_CRITERIA)}.{nearest(str(unknown[0]), _CRITERIA)}")
    lines.positive(table, ("ms_per_text",), "exits")
    run = [column for column in ("data", "model") if column in table]
    table = table.assign(chosen=table["chosen"].astype(bool))
    style.one_row_each(table, (*run, "seed", "criterion", "setting", "chosen"), "exits")
    chosen = table[table["chosen"]]
    style.one_row_each(chosen, (*run, "seed", "criterion"), "exits")
    if (chosen["criterion"] == FIXED).any():
        raise InputError("The figure 'exits' holds a chosen 'fixed'; only a threshold is chosen.")
    panels = list(table.groupby(run, sort=False))
    present = [criterion for criterion in _CRITERIA if criterion in set(table["criterion"])]
    counts = table.groupby(run)["seed"].nunique()
    marks = "large marks: the threshold that validation data chose, and the passes it takes; " if len(chosen) else ""
    figure, axes = canvas(
        title,
        f"Means over seeds on the test texts; {marks}{style.interval_note(counts)}.",
        0.45 + (3.7 if len(panels) == 1 else (3.0 if len(panels) == 2 else 2.3) * len(panels)),
        rows=len(panels),
        key=[_handle(criterion) for criterion in present],
    )
    drawn = [_panel(ax, part) for ax, (_, part) in zip(axes[:, 0], panels, strict=True)]
    several = {column: table[column].nunique() > 1 for column in run}
    for ax, (name, part) in zip(axes[:, 0], panels, strict=True):
        head = [str(word) for column, word in zip(run, name, strict=True) if several[column] or column == "data"]
        ax.set_title(" · ".join(head), loc="left", weight="bold")
        if style.wide(part["ms_per_text"]):
            style.logarithmic(ax.xaxis)
        ax.margins(0.1)
        ax.set_ylabel("accuracy (%)")
        lines.percent_axis(ax)
        ax.grid(True)
        ax.tick_params(length=0)
    axes[-1, 0].set_xlabel("measured inference time (ms per text)")
    for ax, (marked, segments) in zip(axes[:, 0], drawn, strict=True):
        if marked:
            x, y, words, radii, colours = zip(*marked, strict=True)
            place(ax, x, y, words, radii, colours, segments=segments)
    return figure


def _handle(criterion: str) -> Line2D:
    colour, marker, _, words = _CRITERIA[criterion]
    return Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=7, label=words)


def _panel(ax: Axes, table: pd.DataFrame) -> tuple[list, list]:
    """Draw one panel; returns what wants a label (x, y, words, radius, colour) and the segments to keep it off."""
    marked, segments = [], []
    for criterion, (colour, marker, line, _) in _CRITERIA.items():
        runs = table[table["criterion"] == criterion]
        if runs.empty:
            continue
        common = runs.groupby("setting")["seed"].transform("nunique") == runs["seed"].nunique()
        each = runs[~runs["chosen"] | common].drop_duplicates(["seed", "setting"])  # a seed's own choice is no point
        # thresholds taken from a seed's own scores differ between seeds, so they are matched by their order
        each = each.assign(place=each.groupby("seed")["setting"].rank(method="first"))
        means = each.groupby("place").agg(
            setting=("setting", "mean"), x=("ms_per_text", "mean"), y=("accuracy", "mean"), n=("seed", "size")
        )
        means = means[means["n"] == runs["seed"].nunique()].set_index("setting")
        fixed = criterion == FIXED
        ax.plot(
            means["x"],
            means["y"],
            color=colour,
            linestyle=line,
            linewidth=1.5,
            marker=marker,
            markersize=7 if fixed else 4,
            markerfacecolor=colour if fixed else "white",
            markeredgecolor="white" if fixed else colour,
            zorder=3 if fixed else 2.5,
        )
        segments += list(pairwise(zip(means["x"], means["y"], strict=True)))
        if fixed:
            for i, (r, row) in enumerate(means.iterrows()):
                words = f"{r:g}" + ("" if i else f" pass{'es' if r != 1 else ''}")
                marked.append((row["x"], row["y"], words, 5.0, ink(colour)))
        picked = runs[runs["chosen"]]
        if len(picked):
            of = [summarise(picked, ["criterion"], c).iloc[0] for c in ("ms_per_text", "accuracy")]
            x, y = (interval["mean"] for interval in of)
            if np.isfinite(of[1]["low"]):
                for ends in (((of[0]["low"], y), (of[0]["high"], y)), ((x, of[1]["low"]), (x, of[1]["high"]))):
                    ax.plot(*zip(*ends, strict=True), color=colour, linewidth=1.6, alpha=0.6, zorder=3.5)
                    segments.append(ends)
            ax.plot(x, y, marker, color=colour, markersize=10.5, markeredgecolor="white", markeredgewidth=1, zorder=5)
            marked.append((x, y, f"{picked['passes'].mean():.1f} passes", 6.5, ink(colour)))
    return marked, segments
