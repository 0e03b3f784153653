"""What changes the result: the amount of data, the length of the texts, and the grid of width, layers and passes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from rtxstudy.figures.checks import known, one_row_each, require
from rtxstudy.figures.labels import at_line_ends, spread
from rtxstudy.figures.lines import apart
from rtxstudy.figures.looks import ink, looks, on
from rtxstudy.figures.notes import count, interval_note
from rtxstudy.figures.scales import Percent, grid
from rtxstudy.figures.style import BODY, WIDTH, canvas, styled
from rtxstudy.figures.wrapping import extent

_LENGTHS = {"shortest": "shortest 30\xa0%", "all": "all texts", "longest": "longest 30\xa0%"}


@styled
def data_size(table: pd.DataFrame, title: str = "How much data does each model need?") -> Figure:
    """Mean accuracy by number of training rows: one line per model, with 95 % intervals over seeds.

    ``table``: ``model``, ``train_rows``, ``mean``, ``low``, ``high``, ``n`` (as ``statistics.summarise`` gives
    them), one row per model and size. Raises ``InputError`` for a missing column, an empty table, or a pair that
    occurs twice.
    """
    require(table, ("model", "train_rows", "mean", "low", "high", "n"), "data_size")
    sizes = sorted(table["train_rows"].unique())
    table = table.assign(place=table["train_rows"].map(sizes.index))
    return _lines(table, [f"{size:,}" for size in sizes], "training texts (places evenly spaced)", title, "data_size")


@styled
def text_length(table: pd.DataFrame, title: str = "Does the length of the texts decide who wins?") -> Figure:
    """Mean accuracy on the shortest 30 %, all, and the longest 30 % of texts: one line per model, with 95 % intervals.

    ``table``: ``model``, ``lengths`` ("shortest", "all", "longest"), ``mean``, ``low``, ``high``, ``n``, one row per
    model and length. Raises ``InputError`` for a missing column, an empty table, an unknown length, or a pair that
    occurs twice.
    """
    require(table, ("model", "lengths", "mean", "low", "high", "n"), "text_length")
    known(table["lengths"], _LENGTHS)
    present = [length for length in _LENGTHS if length in set(table["lengths"])]
    table = table.assign(place=table["lengths"].map(present.index))
    return _lines(table, [_LENGTHS[length] for length in present], "texts, by number of tokens", title, "text_length")


@styled
def longer_texts(
    table: pd.DataFrame, title: str = "What happens beyond the length of training?", trained_to: int | None = None
) -> Figure:
    """Mean accuracy by the number of tokens that are read of a text: one line per model, with 95 % intervals over seeds.

    ``table``: ``model``, ``read`` (tokens), ``mean``, ``low``, ``high``, ``n``, one row per model and length. ``trained_to``: the
    most tokens of a training text, which the axis marks. Raises ``InputError`` for a missing column, an empty table, or a pair
    that occurs twice.
    """
    require(table, ("model", "read", "mean", "low", "high", "n"), "longer_texts")
    lengths = sorted(table["read"].unique())
    ticks = [f"{length}{' (as in training)' if length == trained_to else ''}" for length in lengths]
    table = table.assign(place=table["read"].map(lengths.index))
    return _lines(table, ticks, "most tokens that are read of a text", title, "longer_texts")


def _lines(table: pd.DataFrame, ticks: list[str], xlabel: str, title: str, figure_name: str) -> Figure:
    """Accuracy at evenly spaced places: one line per model, shifted slightly so that no interval hides another."""
    one_row_each(table, ("model", "place"), figure_name)
    figure, axes = canvas(title, f"Mean accuracy; {interval_note(table['n'])}.", 3.7)
    ax, look = axes[0, 0], looks(table["model"])
    ends = []
    for i, (name, style) in enumerate(look.items()):
        part = table[table["model"] == name].sort_values("place")
        x = part["place"].to_numpy(dtype=float) + apart(i, len(look), 0.06)
        ax.vlines(x, part["low"], part["high"], color=style.shade, linewidth=1.8, alpha=0.55)
        ax.plot(
            x,
            part["mean"],
            color=style.shade,
            linestyle=style.line,
            linewidth=1.8,
            marker=style.marker,
            markersize=6.5,
            markeredgecolor="white",
        )
        ends.append((part["mean"].iloc[-1], name, ink(style.shade)))
    ax.set_xticks(range(len(ticks)), ticks)
    ax.set(xlim=(-0.35, len(ticks) - 0.65), xlabel=xlabel, ylabel="accuracy (%)")
    ax.yaxis.set_major_formatter(Percent())
    grid(ax, "y")
    spread(ax, at_line_ends(ax, *zip(*ends, strict=True)))
    return figure


@styled
def grid_heat_map(table: pd.DataFrame, title: str = "What do width, layers and passes buy?") -> Figure:
    """Mean accuracy by width (across) and layers in the block (up): one panel for each number of passes.

    ``table``: ``hidden_size``, ``num_hidden_layers``, ``recurrent_depth``, ``mean``, ``n`` and optionally
    ``parameters`` (written below the accuracy), one row per cell. Cells without a row are grey. Raises
    ``InputError`` for a missing column, an empty table, or a cell that occurs twice.
    """
    columns_of = ("recurrent_depth", "num_hidden_layers", "hidden_size")
    require(table, (*columns_of, "mean", "n"), "grid_heat_map")
    one_row_each(table, columns_of, "grid_heat_map")
    depths, layers, widths = (sorted(table[column].unique()) for column in columns_of)
    layers = layers[::-1]  # most layers on top
    cells = table.set_index(list(columns_of))
    least, most = float(table["mean"].min()), float(table["mean"].max())
    columns = min(len(depths), max(1, int(430 // (45 * len(widths)))))  # a cell needs 45 points for its words
    lines = -(-len(depths) // columns)
    n = " to ".join(f"{number:.0f}" for number in sorted({table["n"].min(), table["n"].max()}))
    figure, axes = canvas(
        title,
        f"Mean accuracy (%){' and parameters' if 'parameters' in table else ''}; seeds in a cell: {n}. "
        "The same shade is the same accuracy in every panel; the frame marks the best.",
        lines * (0.4 + 0.6 * len(layers)) + 0.4,
        rows=lines,
        columns=columns,
        sharex=True,
        sharey=True,
    )
    shade = colormaps["YlGnBu"].resampled(256)
    room = (WIDTH * 72 - 60) / columns / len(widths) - 6
    for place, ax in enumerate(axes.flat):
        if place >= len(depths):
            ax.set_visible(False)
            continue
        values = cells["mean"].reindex(pd.MultiIndex.from_product([[depths[place]], layers, widths]))
        values = values.to_numpy().reshape(len(layers), len(widths))
        depth = (values - least) / max(most - least, 1e-9) * 0.85 + 0.05  # neither white nor black at the ends
        sns.heatmap(
            depth,
            ax=ax,
            vmin=0,
            vmax=1,
            cmap=shade,
            cbar=False,
            linewidths=1.5,
            linecolor="white",
            xticklabels=widths,
            yticklabels=layers,
        )
        for i, j in np.argwhere(np.isfinite(values)):
            words = f"{100 * values[i, j]:.1f}"
            if "parameters" in table:
                words += "\n" + count(cells.loc[(depths[place], layers[i], widths[j]), "parameters"])
            ax.text(
                j + 0.5,
                i + 0.5,
                words,
                ha="center",
                va="center",
                color=on(shade(depth[i, j])[:3]),
                size=BODY if extent(words, BODY)[0] < room else 8.5,
                linespacing=1.15,
            )
            if values[i, j] == most:
                frame = {"fill": False, "edgecolor": "#d55e00", "linewidth": 2.4}
                ax.add_patch(Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, **frame))
        ax.set_facecolor("#ededed")  # the colour of cells without a run
        lowest = place + columns >= len(depths)
        ax.set_xlabel("width (hidden size)" if lowest else "")
        ax.set_ylabel("layers in the block" if place % columns == 0 else "")
        ax.set_title(f"{depths[place]} pass{'es' if depths[place] > 1 else ''}", loc="left", weight="bold")
        ax.tick_params(length=0, rotation=0, labelbottom=lowest)
    return figure
