"""The drawing of the README: a block of layers that is passed twice, beside a standard stack."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from rtxstudy.figures.checks import require
from rtxstudy.figures.looks import GREY, ink, looks, on
from rtxstudy.figures.style import TITLE, canvas, styled

ALT = (
    "Two stacks of six layers turn the words 'a fine film' into the label 'positive'. The standard encoder has 6 layers "
    "of their own, in six shades of blue. The recurrent encoder has a block of 3 layers, in three shades of orange. The block "
    "is drawn twice, once for each pass, and both passes use the same weights."
)
STACKS = pd.DataFrame(
    [("standard", 1, layer) for layer in range(1, 7)]
    + [("recurrent", number, layer) for number in (1, 2) for layer in range(1, 4)],
    columns=["encoder", "pass", "layer"],
)
SAID = {"standard": "6 layers of their own", "recurrent": "a block of 3 layers, passed twice"}

# Positions and lengths are in points, from the lower left corner of the drawing.
PAGE = (446.0, 358.0)
CENTRE = {"standard": 98.0, "recurrent": 312.0}
WIDTH, HEIGHT, SPACE = 124.0, 24.0, 6.0  # of a layer, and the space between two
MIDDLE = 162.0  # the height of the middle of both stacks
FRAME, BETWEEN = 7.0, 20.0  # from the layers of a pass to the frame around it, and from one frame to the next
WORDS, LABEL, CHIP = 6.0, 296.0, 22.0  # the lower edges of the words and of the label, and their height


@styled
def architecture(table: pd.DataFrame = STACKS) -> Figure:
    """Two encoders, each as the stack of layers that a text passes, the first layer at the bottom.

    ``table`` has one row per layer and pass, in the order in which a text meets them: ``encoder``, ``pass`` and ``layer``.
    Layers of an encoder that have one number share their weights and are drawn in one shade.
    """
    require(table, ("encoder", "pass", "layer"), "architecture")
    figure, axes = canvas(
        "How does a recurrent encoder get its depth?",
        "A text passes six layers in both encoders. Each shade is one set of weights.",
        PAGE[1] / 72,
    )
    ax = axes[0, 0]
    ax.set(xlim=(0, PAGE[0]), ylim=(0, PAGE[1]), aspect="equal")
    ax.axis("off")
    for encoder, rows in table.groupby("encoder", sort=False):
        x, colour = CENTRE[encoder], looks([encoder])[encoder].colour
        ax.text(x, PAGE[1] - 2, encoder, size=TITLE, weight="bold", color=ink(colour), ha="center", va="top")
        ax.text(x, PAGE[1] - 21, SAID[encoder], ha="center", va="top")
        for place, word in enumerate(("a", "fine", "film")):
            _box(ax, x + 44 * (place - 1), WORDS, 40, CHIP, word, "#efefef")
        _box(ax, x, LABEL, 70, CHIP, "positive", "#efefef")
        edges = [WORDS + CHIP, *_layers(ax, x, rows, colour), LABEL]  # an arrow leads from every second one to the next
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            _arrow(ax, (x, start), (x, end))
    return figure


def _layers(ax: Axes, x: float, rows: pd.DataFrame, colour: str) -> list[float]:
    """Draw the layers of one encoder; returns the lower and the upper edge of each pass."""
    passes, layers, looped = rows["pass"].nunique(), rows["layer"].nunique(), rows["pass"].nunique() > 1
    dark, light = 0.72 * np.array(to_rgb(colour)), 0.3 * np.array(to_rgb(colour)) + 0.7
    shades = LinearSegmentedColormap.from_list("shades", [dark, to_rgb(colour), light])(np.linspace(0, 1, layers))
    inset = FRAME if looped else 0.0
    high = layers * HEIGHT + (layers - 1) * SPACE + 2 * inset  # of a pass
    low = MIDDLE - (passes * high + (passes - 1) * BETWEEN) / 2
    side = WIDTH / 2 + FRAME
    edges = []
    for number, part in rows.groupby("pass"):
        for place, layer in enumerate(part["layer"]):
            y = low + inset + place * (HEIGHT + SPACE)
            _box(ax, x, y, WIDTH, HEIGHT, f"layer {layer}", to_hex(shades[layer - 1]))
        if looped:
            frame = {"boxstyle": "round,pad=0,rounding_size=7", "facecolor": "none", "edgecolor": ink(colour)}
            ax.add_patch(FancyBboxPatch((x - side, low), 2 * side, high, linewidth=1.2, **frame))
            ax.text(x - side - 8, low + high / 2, f"pass {number}", ha="right", va="center_baseline")
        edges += [low, low + high]
        low += high + BETWEEN
    if looped:
        first, second = ((x + side, edges[index] + high / 2) for index in (0, 2))
        _arrow(ax, first, second, "<|-|>", ink(colour), connectionstyle="arc3,rad=0.42")
        ax.text(x + side + 30, MIDDLE, "same\nweights", color=ink(colour), va="center", linespacing=1.2)
    return edges


def _box(ax: Axes, x: float, y: float, width: float, height: float, words: str, colour: str) -> None:
    """A rounded box, ``x`` its middle and ``y`` its lower edge, with words in it."""
    style = "round,pad=0,rounding_size=5"
    ax.add_patch(FancyBboxPatch((x - width / 2, y), width, height, boxstyle=style, facecolor=colour, edgecolor="none"))
    ax.text(x, y + height / 2, words, color=on(colour), ha="center", va="center_baseline")


def _arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], head: str = "-|>", colour: str = GREY, **more: str
) -> None:
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle=head, mutation_scale=9, shrinkA=2, shrinkB=2, color=colour, **more)
    )
