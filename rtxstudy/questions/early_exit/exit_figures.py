"""Early exit: the accuracy of each criterion against the time measured."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxlib.errors import InputError
from rtxstudy.figures.checks import known, one_row_each, positive, require
from rtxstudy.figures.labels import place
from rtxstudy.figures.looks import DASHED, GREY, OKABE, ink
from rtxstudy.figures.notes import interval_note
from rtxstudy.figures.scales import logarithmic, percent_axis, wide
from rtxstudy.figures.style import canvas, styled
from rtxstudy.statistics import summarise

FIXED = "fixed"
_CRITERIA = {  # colour, marker, line, and name in the key
    FIXED: (OKABE["vermillion"], "D", "-", "all texts take 1, 2, … passes"),
    "confidence": (OKABE["blue"], "o", "-", "leave when confident"),
    "agreement": (OKABE["green"], "s", (0, (5, 1.6)), "leave when passes agree"),
    "change": (OKABE["purple"], "^", (0, (1.2, 1.4)), "leave when the state settles"),
}


@styled
def exits(table: pd.DataFrame, title: str = "What does leaving early cost, and what does it save?") -> Figure:
    """Accuracy against measured time: one line per criterion, through its settings.

    ``table``: ``model``, ``seed``, ``criterion`` ("fixed", "confidence", "agreement", "change"), ``setting`` (the
    number of passes of all texts, or the threshold), ``passes`` (mean over texts), ``ms_per_text`` (positive),
    ``accuracy`` (0..1), ``chosen`` (whether validation data chose this threshold) and optionally ``data``; one row per
    run and setting. A criterion and seed has one chosen threshold; "fixed" has none. Each model and data set has a
    panel. A line runs through the means over seeds at the settings that every seed has. The large mark is the mean of
    the chosen thresholds over seeds, with 95 % intervals of time and accuracy. Raises ``InputError`` for a missing
    column, an empty table, an unknown criterion, a time not above zero, a row that occurs twice, or a second choice.
    """
    required = ("model", "seed", "criterion", "setting", "passes", "ms_per_text", "accuracy", "chosen")
    require(table, required, "exits")
    known(table["criterion"], _CRITERIA)
    positive(table, ("ms_per_text",), "exits")
    run = [column for column in ("data", "model") if column in table]
    table = table.assign(chosen=table["chosen"].astype(bool))
    one_row_each(table, (*run, "seed", "criterion", "setting", "chosen"), "exits")
    chosen = table[table["chosen"]]
    one_row_each(chosen, (*run, "seed", "criterion"), "exits")
    if (chosen["criterion"] == FIXED).any():
        raise InputError("The figure 'exits' holds a chosen 'fixed'; only a threshold is chosen.")
    panels = list(table.groupby(run, sort=False))
    present = [criterion for criterion in _CRITERIA if criterion in set(table["criterion"])]
    counts = table.groupby(run)["seed"].nunique()
    marks = "large marks: the threshold that validation data chose, and the passes it takes; " if len(chosen) else ""
    figure, axes = canvas(
        title,
        f"Means over seeds on the test texts; {marks}{interval_note(counts)}.",
        0.45 + (3.7 if len(panels) == 1 else (3.0 if len(panels) == 2 else 2.3) * len(panels)),
        rows=len(panels),
        key=[_handle(criterion) for criterion in present],
    )
    drawings = [_panel(ax, part) for ax, (_, part) in zip(axes[:, 0], panels, strict=True)]
    several = {column: table[column].nunique() > 1 for column in run}
    for ax, (name, part) in zip(axes[:, 0], panels, strict=True):
        head = [str(word) for column, word in zip(run, name, strict=True) if several[column] or column == "data"]
        if wide(part["ms_per_text"]):
            logarithmic(ax.xaxis)
        _named(ax, " · ".join(head))
    axes[-1, 0].set_xlabel("measured inference time (ms per text)")
    for ax, (marked, segments) in zip(axes[:, 0], drawings, strict=True):
        if marked:
            x, y, words, radii, colours = zip(*marked, strict=True)
            place(ax, x, y, words, radii, colours, segments=segments)
    return figure


@styled
def bounded_exits(table: pd.DataFrame, title: str = "Can a text leave early, at a bounded risk?") -> Figure:
    """Accuracy against measured time: a line through the fixed numbers of passes, and a mark for each early exit.

    ``table``: ``data``, ``model``, ``way``, ``criterion`` (as in :func:`exits`), ``bound`` ("" for fixed passes, "validated" for
    those chosen on validation texts, "controlled", "certified"), ``passes`` (mean over texts), ``ms_per_text`` (positive),
    ``accuracy`` (0..1), ``low`` and ``high`` (the ends of the interval of ``accuracy`` minus that of all passes) and ``at_most``
    (the bound of the risk, a share of texts), one row per data set, model and way, as
    :func:`rtxstudy.questions.early_exit.bounded_exits.against_all_passes` gives them. Each data set has a panel. A certified
    exit is an open mark. A dashed line lies as far below the accuracy of all passes as the risk allows. Raises ``InputError``
    for a missing column, an empty table, an unknown criterion, a time not above zero, or a way that occurs twice.
    """
    names = ("data", "model", "way", "criterion", "bound")
    require(table, (*names, "passes", "ms_per_text", "accuracy", "low", "high", "at_most"), "bounded_exits")
    known(table["criterion"], _CRITERIA)
    positive(table, ("ms_per_text",), "bounded_exits")
    one_row_each(table, ("data", "model", "way"), "bounded_exits")
    panels = list(table.groupby(["data", "model"], sort=False))
    figure, axes = canvas(
        title,
        f"Means over seeds on the test texts. Filled marks: the expected risk is at most {100 * table['at_most'].iloc[0]:g} %. "
        "Open marks: the risk is certified to be at most that. Vertical lines: 95 % intervals of the difference to all passes. "
        "Dashed: the accuracy of all passes, less the risk.",
        0.45 + (3.7 if len(panels) == 1 else 3.0 * len(panels)),
        rows=len(panels),
        key=[_handle(criterion) for criterion in _CRITERIA if criterion in set(table["criterion"])],
    )
    labels = [_bounded_panel(ax, part) for ax, (_, part) in zip(axes[:, 0], panels, strict=True)]
    for ax, ((data, _), _) in zip(axes[:, 0], panels, strict=True):
        _named(ax, data)
    axes[-1, 0].set_xlabel("measured inference time (ms per text)")
    for ax, (marked, segments) in zip(axes[:, 0], labels, strict=True):
        x, y, words, radii, colours = zip(*marked, strict=True)
        place(ax, x, y, words, radii, colours, segments=segments)
    return figure


def _named(ax: Axes, title: str) -> None:
    """The title and the axes of a panel of accuracy over time."""
    ax.set_title(title, loc="left", weight="bold")
    ax.margins(0.1)
    ax.set_ylabel("accuracy (%)")
    percent_axis(ax)
    ax.grid(True)
    ax.tick_params(length=0)


def _bounded_panel(ax: Axes, table: pd.DataFrame) -> tuple[list, list]:
    """Draw one panel of :func:`bounded_exits`; returns what :func:`_panel` does."""
    colour, marker, line, _ = _CRITERIA[FIXED]
    fixed = table[table["bound"] == ""].sort_values("passes")
    x, y = fixed["ms_per_text"], fixed["accuracy"]
    ax.plot(x, y, color=colour, linestyle=line, linewidth=1.5, marker=marker, markersize=7, markeredgecolor="white", zorder=3)
    ax.axhline(y.iloc[-1] - table["at_most"].iloc[0], color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
    segments = list(pairwise(zip(x, y, strict=True)))
    words = ["1 pass", *(f"{passes:.0f}" for passes in fixed["passes"][1:])]
    marked = [(*point, 5.0, ink(colour)) for point in zip(x, y, words, strict=True)]
    for row in table[table["bound"].isin(("controlled", "certified"))].itertuples():
        colour, marker, _, _ = _CRITERIA[row.criterion]
        ends = [(row.ms_per_text, y.iloc[-1] + end) for end in (row.low, row.high)]
        ax.plot(*zip(*ends, strict=True), color=colour, linewidth=1.2, alpha=0.5, zorder=2)
        face = colour if row.bound == "controlled" else "white"
        ax.plot(row.ms_per_text, row.accuracy, marker, color=colour, markerfacecolor=face, markersize=8.5, zorder=4)
        marked.append((row.ms_per_text, row.accuracy, f"{row.passes:.1f}", 5.5, ink(colour)))
        segments.append(tuple(ends))
    return marked, segments


def _handle(criterion: str) -> Line2D:
    colour, marker, _, words = _CRITERIA[criterion]
    return Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=7, label=words)


def _panel(ax: Axes, table: pd.DataFrame) -> tuple[list, list]:
    """Draw one panel; returns its labels (x, y, words, radius, colour) and the segments that they must not cover."""
    marked, segments = [], []
    for criterion, (colour, marker, line, _) in _CRITERIA.items():
        runs = table[table["criterion"] == criterion]
        if runs.empty:
            continue
        common = runs.groupby("setting")["seed"].transform("nunique") == runs["seed"].nunique()
        each = runs[~runs["chosen"] | common].drop_duplicates(["seed", "setting"])  # not the choice of one seed
        # thresholds come from the scores of a seed and differ between seeds, so they are matched by their order
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
            spans = [summarise(picked, ["criterion"], c).iloc[0] for c in ("ms_per_text", "accuracy")]
            x, y = (interval["mean"] for interval in spans)
            if np.isfinite(spans[1]["low"]):
                for ends in (((spans[0]["low"], y), (spans[0]["high"], y)), ((x, spans[1]["low"]), (x, spans[1]["high"]))):
                    ax.plot(*zip(*ends, strict=True), color=colour, linewidth=1.6, alpha=0.6, zorder=3.5)
                    segments.append(ends)
            ax.plot(x, y, marker, color=colour, markersize=10.5, markeredgecolor="white", markeredgewidth=1, zorder=5)
            marked.append((x, y, f"{picked['passes'].mean():.1f} passes", 6.5, ink(colour)))
    return marked, segments
