"""Figures of a comparison on somebody's own texts: accuracy against time, learning curve, calibration, passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import at_line_ends, place, spread
from rtxstudy.figures.looks import DASHED, GREY, INK, OKABE, ink
from rtxstudy.figures.scales import Percent, grid, logarithmic, wide
from rtxstudy.figures.style import canvas, styled
from rtxstudy.numbers import megabytes, percent
from rtxstudy.pareto import frontier

LARGEST, LEAST = 17.0, 3.5  # radius of the largest and of the least bubble, points
_COLOURS = (  # a model has the colour of the first word that its name holds
    ("majority", GREY), ("counting", OKABE["black"]), ("static", OKABE["sky"]), ("frozen", OKABE["green"]),
    ("pairs", "#117777"),
    ("fine-tuned", OKABE["blue"]), ("loop", OKABE["vermillion"]), ("recurrent", OKABE["orange"]), ("cascade", OKABE["purple"]),
    ("", "#8a6d3b"),
)  # fmt: skip


def colour(model: str) -> str:
    return next(shade for word, shade in _COLOURS if word in model)


def safe(words: object, longest: int = 24) -> str:
    """A label of the user's as a figure can write it: not taken for a formula, and not too long."""
    text = " ".join(str(words).split())
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return text.replace("$", r"\$")


@styled
def accuracy_against_time(
    table: pd.DataFrame,
    choice: str | None,
    name: str = "accuracy",
) -> Figure:
    """One bubble per model: time for one text across, score up, area in proportion to the megabytes; the frontier as steps.

    ``table``: ``model``, ``ms``, ``mb``, ``test_score``, ``test_low``, ``test_high``, one row per model. ``choice``: the
    model with a ring. Raises ``InputError`` for a missing column, an empty table, or a model that occurs twice.
    """
    require(table, ("model", "ms", "mb", "test_score", "test_low", "test_high"), "accuracy_against_time")
    one_row_each(table, ("model",), "accuracy_against_time")
    table, below = _without_floor(table)
    figure, axes = canvas(
        "What does each model reach, and how fast is it?",
        f"Area, and the number beside each name: megabytes. Upright lines: 95 % interval of the {name} on the test texts. Grey "
        "steps join the models that no other beats in both time and score."
        + ("" if choice is None else " A ring marks the model to take.")
        + below,
        4.6,
    )
    ax = axes[0, 0]
    x, y = table["ms"].to_numpy(), table["test_score"].to_numpy()
    radii = np.maximum(LEAST, LARGEST * np.sqrt(table["mb"] / max(table["mb"].max(), 1e-9)).to_numpy())
    colours = [colour(model) for model in table["model"]]
    ax.scatter(x, y, s=(2 * radii) ** 2, c=colours, alpha=0.25, linewidths=0, zorder=2)
    ax.scatter(x, y, s=(2 * radii) ** 2, facecolors="none", edgecolors=colours, linewidths=1.2, zorder=3)
    segments = []
    for i, row in enumerate(table.itertuples(index=False)):
        ax.plot([x[i], x[i]], [row.test_low, row.test_high], color=colours[i], linewidth=1.2, alpha=0.55, zorder=2.5)
        segments.append(((x[i], row.test_low), (x[i], row.test_high)))
        ax.plot(x[i], y[i], ".", color=colours[i], zorder=4)
        if row.model == choice:
            ax.scatter(
                x[i], y[i], s=(2 * radii[i] + 9) ** 2, facecolors="none", edgecolors=INK, linewidths=1.6, zorder=3.5
            )
    if wide(x):
        logarithmic(ax.xaxis)
    ax.margins(0.16)
    ax.autoscale_view()
    ax.set(xlabel="time for one text, cleaning included (ms)", ylabel=f"{name} on the test texts (%)")
    ax.yaxis.set_major_formatter(Percent())
    ax.grid(True)
    ax.tick_params(length=0)
    best = frontier(table, minimise=["ms"], maximise=["test_score"]).to_numpy()
    order = np.argsort(x[best], kind="stable")
    right = ax.get_xlim()[1]
    steps_x, steps_y = np.append(x[best][order], right), np.append(y[best][order], y[best].max())
    segments += [((a, h), (b, h)) for a, b, h in zip(steps_x[:-1], steps_x[1:], steps_y[:-1], strict=True)]
    segments += [((b, h), (b, k)) for b, h, k in zip(steps_x[1:], steps_y[:-1], steps_y[1:], strict=True)]
    ax.step(steps_x, steps_y, where="post", color="#8a8a8a", linewidth=1.1, zorder=1.6)
    ax.set_xlim(None, right)
    words = [f"{model} · {megabytes(mb)}" for model, mb in zip(table["model"], table["mb"], strict=True)]
    place(ax, x, y, words, radii, [ink(shade) for shade in colours], segments=segments)
    return figure


def _without_floor(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The table without a majority class that lies far below all others and would squeeze them, and the sentence that says so."""
    floor = table["model"].str.contains("majority")
    others = table[~floor]
    if others.empty or not floor.any():
        return table, ""
    low, high, level = others["test_low"].min(), others["test_high"].max(), table.loc[floor, "test_score"].iloc[0]
    if level >= low - max(high - low, 0.05):
        return table, ""
    return others.reset_index(drop=True), f" The score of the most frequent label lies below the figure, at {percent(level, 0)}."


@styled
def learning_curve(table: pd.DataFrame, name: str = "accuracy") -> Figure:
    """The score on texts that were held out, against the number of training texts: one line per model.

    ``table``: ``model``, ``rows``, ``score``. Raises ``InputError`` for a missing column or an empty table.
    """
    require(table, ("model", "rows", "score"), "learning_curve")
    figure, axes = canvas("Would more labels help?", "A single mark is a model that was trained once.", 3.4)
    ax, ends = axes[0, 0], []
    for model, part in table.sort_values("rows").groupby("model", sort=False):
        ax.plot(part["rows"], part["score"], "o-", color=colour(model), markersize=5, linewidth=1.6)
        ends.append((part["score"].iloc[-1], model, ink(colour(model))))
    if wide(table["rows"], 3):
        logarithmic(ax.xaxis)
    ax.set(xlabel="training texts", ylabel=f"{name} on held-out texts (%)")
    ax.yaxis.set_major_formatter(Percent())
    grid(ax, "y")
    ax.margins(0.06, 0.1)
    spread(ax, at_line_ends(ax, *map(list, zip(*ends, strict=True))))
    return figure


@styled
def calibration(table: pd.DataFrame, title: str = "Do the probabilities mean what they say?") -> Figure:
    """Accuracy against the largest probability, in bins; area in proportion to the number of texts.

    ``table``: ``confidence``, ``accuracy``, ``rows``. Raises ``InputError`` for a missing column or an empty table.
    """
    require(table, ("confidence", "accuracy", "rows"), "calibration")
    figure, axes = canvas(
        title, "Each mark is a bin of test texts; the number is how many. On the dashed line they would agree.", 3.4
    )
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=DASHED)
    ax.plot(table["confidence"], table["accuracy"], "-", color=OKABE["blue"], linewidth=1, alpha=0.6)
    ax.scatter(
        table["confidence"], table["accuracy"], s=20 + 220 * table["rows"] / table["rows"].max(), color=OKABE["blue"]
    )
    for row in table.itertuples():
        ax.annotate(f"{row.rows:,}", (row.confidence, row.accuracy), (9, -11), textcoords="offset points", color=INK)
    low = max(0.0, min(table["confidence"].min(), table["accuracy"].min()) - 0.08)
    high = 1 + 0.1 * (1 - low)
    ax.set(xlim=(low, high), ylim=(low, high), xlabel="largest probability (%)", ylabel="accuracy (%)")
    ticks = [tick for tick in MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, 1) if low <= tick <= 1]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks)
        axis.set_major_formatter(Percent())
    ax.grid(True)
    return figure
