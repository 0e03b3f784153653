"""Drawings of encoders side by side, from the table of their parts."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from rtxlib.errors import InputError
from rtxstudy.figures.checks import require
from rtxstudy.figures.looks import GREY, OKABE, ink, on, square
from rtxstudy.figures.style import BODY, PAD, TITLE, WIDTH, canvas, styled
from rtxstudy.figures.wrapping import wrap

MOST = 3  # encoders that fit side by side
_COLOURS = {  # of a part
    "tokens": "#efefef",
    "embedding": "#cfe6f5",
    "norm": "#f7f0c6",
    "attention": "#f9d9c2",
    "add": "#ffffff",
    "add and norm": "#f7f0c6",
    "feed-forward": "#cfeadd",
    "vector": "#efefef",
}
_TITLED = ("attention", "feed-forward", "embedding")  # parts whose name stands in the box
_STAGES = ("embedding", "layer", "reading")
_REACH = {"G": (OKABE["blue"], "a layer that sees all tokens"), "L": ("#a9cfe6", "a layer that sees neighbours only")}

# Lengths in points.
_PAGE = WIDTH * 72 - 2 * PAD
_LINE, _AIR, _GAP = (
    BODY * 1.22,
    6.0,
    8.0,
)  # height of a line, space above and below the lines of a box, and between boxes
_FRAME = 8.0  # between the boxes of a layer and the frame around them
_STRIP, _BRANCH = 9.0, 12.0  # width of the strip of layers, and of the branch beside a box


class _Box(NamedTuple):
    part: str
    lines: list[str]
    height: float
    opens: bool


@styled
def blueprints(table: pd.DataFrame, title: str = "How are the encoders built?") -> Figure:
    """Encoders side by side, each as its parts from the tokens (below) to the vector of a text (above).

    ``table``: the columns of :func:`rtxstudy.questions.anatomy.blueprints.blueprint`, and ``model``. A frame holds what every
    layer has. The strip beside it has a cell for each layer, the first at the bottom. Raises ``InputError`` for a missing
    column, an empty table, or more than :data:`MOST` encoders.
    """
    require(table, ("model", "stage", "part", "words", "opens", "width", "layers", "passes", "total"), "blueprints")
    models = list(table.groupby("model", sort=False))
    if len(models) > MOST:
        raise InputError(f"The figure 'blueprints' has room for {MOST} encoders, not {len(models)}; choose among them.")
    column = _PAGE / len(models)
    inner = min(column - _STRIP - _BRANCH - 2 * _FRAME - 10, 190.0)  # width of a box
    stacks = {name: {stage: _boxes(rows, stage, inner) for stage in _STAGES} for name, rows in models}
    heights = {stage: max(_height(stack[stage], stage) for stack in stacks.values()) for stage in _STAGES}
    cell = min(_height(stacks[name]["layer"], "layer") / len(rows["layers"].iloc[0]) for name, rows in models)
    sizes = {name: _sizes(rows.iloc[0], column - 8) for name, rows in models}
    head = 1.25 * TITLE + _LINE * max(map(len, sizes.values())) + 10
    total = sum(heights.values()) + 2 * 1.6 * _GAP + head
    local = table["layers"].str.contains("L").any()
    figure, axes = canvas(
        title,
        "A text enters below. A frame holds what each layer has, and the strip beside it has a cell for each layer, "
        "the first below. Lines at the left of a frame are residuals.",
        total / 72,
        key=[square(colour, words, size=7) for kind, (colour, words) in _REACH.items() if local or kind == "G"],
    )
    ax = axes[0, 0]
    ax.set(xlim=(0, _PAGE), ylim=(0, total), aspect="equal")
    ax.axis("off")
    for number, (name, rows) in enumerate(models):
        x = column * (number + 0.5) + (_BRANCH - _STRIP) / 2
        ax.text(x, total - 2, str(name), size=TITLE, weight="bold", ha="center", va="top")
        ax.text(x, total - 2 - 1.25 * TITLE, "\n".join(sizes[name]), ha="center", va="top", linespacing=1.2)
        _draw(ax, x, inner, stacks[name], heights, rows["layers"].iloc[0], cell)
    return figure


def _boxes(rows: pd.DataFrame, stage: str, inner: float) -> list[_Box]:
    boxes = []
    for row in rows[rows["stage"] == stage].itertuples(index=False):
        lines = wrap(row.words, inner - 8, BODY)
        if row.part in _TITLED:
            lines = [row.part, *lines]
        height = 15.0 if row.part == "add" else _LINE * len(lines) + _AIR
        boxes.append(_Box(row.part, lines, height, bool(row.opens)))
    return boxes


def _height(boxes: list[_Box], stage: str) -> float:
    frame = 2 * _FRAME if stage == "layer" else 0.0
    return sum(box.height for box in boxes) + _GAP * (len(boxes) - 1) + frame


def _sizes(row: pd.Series, room: float) -> list[str]:
    """Depth, width and parameters of an encoder, in lines of at most ``room`` points."""
    layers, passes, total = len(row["layers"]), row["passes"], row["total"]
    depth = f"{layers}\xa0layer{'s' * (layers > 1)}" + (f", {passes}\xa0passes" if passes > 1 else "")
    count = f"{total / 1e6:.1f}\xa0M" if total >= 1e6 else f"{total:,}"
    return [*wrap(f"{depth}, {row['width']:,}\xa0wide", room, BODY), f"{count}\xa0parameters"]


def _draw(
    ax: Axes, x: float, inner: float, stack: dict[str, list[_Box]], heights: dict[str, float], layers: str, cell: float
) -> None:
    """One encoder around ``x``. The stages of all encoders begin at the same height; a shorter stack stands in the middle."""
    low, edges = 0.0, []  # edges: lower and upper end of what the arrows connect
    for stage in _STAGES:
        boxes, height = stack[stage], _height(stack[stage], stage)
        spare = heights[stage] - height
        y = low + {"embedding": spare, "layer": spare / 2, "reading": 0.0}[stage]
        bottom = y
        y += _FRAME if stage == "layer" else 0.0
        inside = []
        for box in boxes:
            _box(ax, x, y, inner, box)
            inside.append((y, y + box.height))
            y += box.height + _GAP
        for (_, start), (end, _) in pairwise(inside):
            _arrow(ax, (x, start), (x, end))
        if stage == "layer":
            _frame(ax, x, bottom, inner, height, layers, cell)
            _branches(ax, x, inner, boxes, inside)
        edges.append((inside[0][0], inside[-1][1]))
        low += heights[stage] + 1.6 * _GAP
    for (_, start), (end, _) in pairwise(edges):
        _arrow(ax, (x, start), (x, end))


def _box(ax: Axes, x: float, y: float, width: float, box: _Box) -> None:
    width = 15.0 if box.part == "add" else width
    shape = f"round,pad=0,rounding_size={7.4 if box.part == 'add' else 4}"
    edge = GREY if box.part == "add" else "none"
    colour = _COLOURS[box.part]
    ax.add_patch(
        FancyBboxPatch(
            (x - width / 2, y), width, box.height, boxstyle=shape, facecolor=colour, edgecolor=edge, zorder=3
        )
    )
    for i, line in enumerate(box.lines):
        middle = y + box.height / 2 + _LINE * ((len(box.lines) - 1) / 2 - i)
        weight = "bold" if i == 0 and box.part in _TITLED else "normal"
        ax.text(x, middle, line, ha="center", va="center_baseline", color=on(colour), weight=weight, zorder=4)


def _frame(ax: Axes, x: float, y: float, inner: float, height: float, layers: str, cell: float) -> None:
    """The frame around a layer, and to its right a cell for each layer."""
    left, right = x - inner / 2 - _BRANCH - 2, x + inner / 2 + _FRAME
    shape = {"boxstyle": "round,pad=0,rounding_size=6", "facecolor": "none", "edgecolor": ink(GREY)}
    ax.add_patch(FancyBboxPatch((left, y), right - left, height, linewidth=1.0, **shape))
    for number, kind in enumerate(layers):
        corner = (right + 4, y + number * cell + 0.5)
        ax.add_patch(Rectangle(corner, _STRIP, cell - 1.0, facecolor=_REACH[kind][0], edgecolor="none"))


def _branches(ax: Axes, x: float, inner: float, boxes: list[_Box], inside: list[tuple[float, float]]) -> None:
    """The residuals: from below a part that opens a branch to the next addition."""
    side, opened = x - inner / 2 - _BRANCH + 3, None
    for box, (low, high) in zip(boxes, inside, strict=True):
        if box.opens:
            opened = low - _GAP / 2
        elif opened is not None and box.part.startswith("add"):
            y, reached = (low + high) / 2, x - (7.5 if box.part == "add" else inner / 2)
            ax.plot([x, side, side], [opened, opened, y], color=GREY, linewidth=1.0)
            _arrow(ax, (side, y), (reached, y))
            opened = None


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 7, "shrinkA": 0, "shrinkB": 0, "color": GREY, "linewidth": 1.0}
    ax.add_patch(FancyArrowPatch(start, end, zorder=2, **style))
