"""Pretrained encoders: what their tokens see, how their states grow, and what their sentence embeddings put together."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxlib.errors import InputError
from rtxlib.figures import style
from rtxlib.figures.labels import extent, place, wrap
from rtxlib.figures.style import GREY, canvas, ink, looks, require, styled

MOST_SENTENCES = 40  # rows of a heat map that fit on a page
_WRITTEN = 12  # up to so many sentences each similarity is written in its cell
_LABEL = 150.0  # points for the words of a sentence
_GROUPS = tuple(to_hex(mpl.color_sequences["okabe_ito"][i]) for i in (5, 1, 3, 7, 6, 2))  # black and yellow left out
_MARKERS = "osD^vP"
_SEEN, _UNSEEN = "#0072b2", "#ededed"


@styled
def similarity_heatmap(
    similarity: pd.DataFrame, groups: Sequence[str] | None = None, title: str = "Which sentences are alike?"
) -> Figure:
    """Cosine similarity of every two sentences; written in each cell when there are at most 12.

    ``similarity``: square, sentences as index and columns in the same order, −1..1. ``groups``: one name a sentence,
    told by colour and mark, with a white line where the group changes. The colour of a value is the same in every such
    figure: white at zero, blue above, red below. Raises ``InputError`` for an empty table, one that is not square, a
    value beyond ±1 or missing, more than :data:`MOST_SENTENCES`, or another number of groups than of sentences.
    """
    n = len(similarity)
    values = _checked(similarity, groups)
    names = list(dict.fromkeys(groups or ()))
    if len(names) > len(_MARKERS):
        raise InputError(f"A heat map tells {len(_MARKERS)} groups apart at most, not {len(names)}.")
    signs = {name: (_GROUPS[i], _MARKERS[i]) for i, name in enumerate(names)}
    lines = 2 if n <= _WRITTEN else 1
    key = [
        Line2D([], [], color=c, marker=m, linestyle="none", markersize=7, label=name) for name, (c, m) in signs.items()
    ]
    figure, axes = canvas(
        title,
        "Cosine of the angle between the embeddings of two sentences; columns are numbered as the rows are.",
        0.95 + n * (0.4 if lines == 2 else 0.2),
        key=key,
    )
    ax = axes[0, 0]
    shades = colormaps["RdBu"]
    low = -1.0 if values.min() < -0.005 else 0.0
    ax.pcolormesh(values, cmap=shades, vmin=-1, vmax=1, edgecolors="white", linewidth=1 if n <= _WRITTEN else 0.3)
    ax.set(xlim=(0, n), ylim=(n, 0))
    cell = (style.WIDTH * 72 - _LABEL - 75) / n  # points across
    if n <= _WRITTEN:
        _write(ax, values, cell)
    step = 1 if cell > 15 else 5
    numbers = [i for i in range(1, n + 1) if i == 1 or i % step == 0]
    ax.set_xticks([i - 0.5 for i in numbers], [str(i) for i in numbers])
    words = [_excerpt(f"{i}  {sentence}", _LABEL, lines) for i, sentence in enumerate(similarity.index, start=1)]
    ax.set_yticks(np.arange(n) + 0.5, words, parse_math=False, linespacing=1.05)  # "$5 and $10" is no formula
    ax.tick_params(length=0)
    ax.tick_params(axis="y", pad=16 if signs else 4)
    ax.spines[:].set_visible(False)
    for i, name in enumerate(groups or ()):
        colour, marker = signs[name]
        ax.annotate(
            "", (0, i + 0.5)
        )  # keeps the layout aware of the row
        ax.plot(-10 / cell, i + 0.5, marker, color=colour, markersize=7, clip_on=False)
        if i and name != groups[i - 1]:
            ax.axhline(i, color="white", linewidth=4)
            ax.axvline(i, color="white", linewidth=4)
    scale = ScalarMappable(Normalize(low, 1), ListedColormap(shades(np.linspace((low + 1) / 2, 1, 256))))
    bar = figure.colorbar(scale, ax=ax, orientation="horizontal", aspect=45, pad=0.01, ticks=np.arange(low, 1.01, 0.5))
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.set_label("cosine similarity")
    return figure
