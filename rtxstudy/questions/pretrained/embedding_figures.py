"""Pretrained encoders: similarity of sentences, retrieval, reach of attention, and the norm of a state by layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from rtxlib.errors import InputError
from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import bare_rows, beside, place
from rtxstudy.figures.looks import DASHED, GREY, OKABE, ink, looks, on, square
from rtxstudy.figures.notes import with_interval
from rtxstudy.figures.scales import grid, logarithmic, percent_below, wide
from rtxstudy.figures.style import BODY, PAD, WIDTH, canvas, styled
from rtxstudy.figures.wrapping import extent, wrap
from rtxstudy.names import said

MOST_SENTENCES = 36  # rows of a heat map that fit on a page
_WRITTEN = 12  # most sentences for which each similarity is written in its cell
_LABEL = 165.0  # points for the number and the words of a sentence
_GROUPS = tuple(  # colour and marker of each group; black and yellow are left out
    zip((OKABE[name] for name in ("blue", "orange", "green", "purple", "vermillion", "sky")), "osD^vP", strict=True)
)
_SEEN, _UNSEEN = "#0072b2", "#ededed"
CHANCE = "chance"  # the model name of the rows that `retrieval` draws as a line


@styled
def similarity_heatmap(
    similarity: pd.DataFrame, groups: Sequence[str] | None = None, title: str = "Which sentences are alike?"
) -> Figure:
    """Cosine similarity of every two sentences. For up to 12 sentences the cells also hold the values.

    ``similarity``: square, the sentences as index and, in the same order, as columns; values −1..1. ``groups``: a name
    for each sentence, shown by colour and mark, with a wider gap between groups. A value has the same colour in every
    such figure: white at zero, blue above, red below. Raises ``InputError`` for an empty table, one that is not square,
    a value that is missing or beyond ±1, too many sentences or groups, or a number of groups that does not match.
    """
    values, names = _checked(similarity, groups)
    n, signs = len(values), dict(zip(names, _GROUPS, strict=False))
    written = n <= _WRITTEN
    figure, axes = canvas(
        title,
        "Cosine similarity of the embeddings of two sentences; columns are numbered as rows are.",
        0.9 + n * (0.4 if written else 0.19),
        key=[square(colour, name, marker, 7) for name, (colour, marker) in signs.items()],
    )
    ax, shades = axes[0, 0], colormaps["RdBu"]
    ax.pcolormesh(values, cmap=shades, vmin=-1, vmax=1, edgecolors="white", linewidth=1.2 if written else 0.4)
    words = [_numbered(i, str(text), 2 if written else 1) for i, text in enumerate(similarity.index, start=1)]
    label = max(extent(word, BODY)[0] for word in words)
    aside = 16 if groups is not None else 4  # points between the words and the cells
    cell = (WIDTH * 72 - label - aside - 3 * PAD) / n  # width in points, roughly
    if written:
        _write(ax, values, cell - 1)
    numbers = [i for i in range(1, n + 1) if cell > 16 or i == 1 or i % 5 == 0]
    ax.set(xlim=(0, n), ylim=(n, 0))
    ax.set_xticks([i - 0.5 for i in numbers], [str(i) for i in numbers])
    ax.set_yticks(np.arange(n) + 0.5, words, parse_math=False, linespacing=1.05, ha="left")  # "$5 or $10" is not a formula
    ax.tick_params(length=0)
    ax.tick_params(axis="y", pad=label + aside)
    ax.spines[:].set_visible(False)
    if groups is not None:
        beside = ax.get_yaxis_transform() + ScaledTranslation(-9 / 72, 0, figure.dpi_scale_trans)
        for i, name in enumerate(groups):
            colour, marker = signs[name]
            ax.plot(0, i + 0.5, marker, color=colour, markersize=7, clip_on=False, transform=beside)
            if i and name != groups[i - 1]:
                ax.axhline(i, color="white", linewidth=5 if written else 2.5)
                ax.axvline(i, color="white", linewidth=5 if written else 2.5)
    low = -1 if values.min() < -0.005 else 0  # the scale shows red only if the figure has red
    scale = ScalarMappable(Normalize(low, 1), ListedColormap(shades(np.linspace((low + 1) / 2, 1, 256))))
    bar = figure.colorbar(scale, ax=ax, orientation="horizontal", aspect=45, pad=0.02, ticks=np.arange(low, 1.1, 0.5))
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    return figure


def _checked(similarity: pd.DataFrame, groups: Sequence[str] | None) -> tuple[np.ndarray, list[str]]:
    """The values (n, n) and the names of the groups, after all checks."""
    require(similarity, (), "similarity_heatmap")
    if list(similarity.index) != list(similarity.columns):
        raise InputError("The figure 'similarity_heatmap' needs the same sentences, in one order, as rows and columns.")
    if len(similarity) > MOST_SENTENCES:
        raise InputError(f"{len(similarity)} sentences are too many to read; choose at most {MOST_SENTENCES}.")
    values = similarity.to_numpy(dtype=float)
    if not (np.abs(values) <= 1 + 1e-6).all():
        raise InputError("The figure 'similarity_heatmap' holds a value that is missing or beyond ±1, so no cosine.")
    if groups is not None and len(groups) != len(similarity):
        raise InputError(f"There are {len(similarity)} sentences but {len(groups)} groups; give one a sentence.")
    names = list(dict.fromkeys(groups or ()))
    if len(names) > len(_GROUPS):
        raise InputError(f"{len(names)} groups cannot be told apart; give at most {len(_GROUPS)}.")
    return values, names


def _write(ax: Axes, values: np.ndarray, room: float) -> None:
    """Each value in the middle of its cell: .83, −.12, 1."""
    words = np.array([f"{value:.2f}" for value in values.flat]).reshape(values.shape)
    for long, brief in (("-0.00", "0.00"), ("-", "−"), ("0.", "."), ("1.00", "1")):
        words = np.char.replace(words, long, brief)
    widest = max(extent(word, BODY)[0] for word in words.flat)
    for (i, j), value in np.ndenumerate(values):
        colour = on(colormaps["RdBu"]((value + 1) / 2)[:3])
        size = np.clip(BODY * room / widest, 8.0, BODY)
        ax.text(j + 0.5, i + 0.5, words[i, j], ha="center", va="center", color=colour, size=size)


def _numbered(number: int, text: str, lines: int) -> str:
    """The number and the beginning of the sentence that fits into ``lines`` lines, cut between words if possible."""
    space = "\u2007"  # as wide as a digit, so that all lines begin at the same place
    room = _LABEL - extent(3 * space, BODY)[0]
    beginning, mark = " ".join(text.split()), ""
    if len(beginning) > 40 * lines:  # longer than any line; this bounds the loop below
        beginning, mark = beginning[: 40 * lines], " …"
    while len(rows := wrap(beginning + mark, room, BODY)) > lines or extent("\n".join(rows), BODY)[0] > room:
        head = beginning.rpartition(" ")[0]
        beginning, mark = (head, " …") if head else (beginning[:-1], "…")
    return f"{number}".rjust(2, space) + space + f"\n{3 * space}".join(rows)


@styled
def retrieval(table: pd.DataFrame, title: str = "Are a text's neighbours of its own kind?") -> Figure:
    """Precision at k of each representation, with 95 % intervals over texts: one panel per question.

    ``table``: ``model``, ``k``, ``panel``, ``mean``, ``low``, ``high`` (0..1), ``n`` (texts), one row for each model,
    k and panel, as :func:`rtxstudy.questions.pretrained.retrieval.compare` gives them for a panel. Rows of the model
    :data:`CHANCE` are drawn as a dashed line. Raises ``InputError`` for a missing column, an empty table, a table of
    chance alone, or a row that occurs twice.
    """
    require(table, ("model", "k", "panel", "mean", "low", "high", "n"), "retrieval")
    one_row_each(table, ("panel", "model", "k"), "retrieval")
    figure_rows = table[table["model"] != CHANCE]
    require(figure_rows, (), "retrieval")
    look, ks = looks(figure_rows["model"]), sorted(figure_rows["k"].unique())
    k = f"{ks[0]}" if len(ks) == 1 else "k"
    labels = figure_rows["model"] if len(ks) == 1 else figure_rows["model"] + ", k = " + figure_rows["k"].astype(str)
    panels = list(figure_rows.assign(label=labels).groupby("panel", sort=False))
    room = WIDTH * 72 - max(extent(label, BODY)[0] for label in labels) - 3 * PAD  # points
    sizes = [" to ".join(f"{n:,}" for n in sorted(set(part["n"]))) for _, part in panels]
    heads = [
        wrap(said(f"{name} ({size}\xa0texts)").replace(" · ", "\xa0· "), room, BODY, "bold")
        for (name, _), size in zip(panels, sizes, strict=True)
    ]
    figure, axes = canvas(
        title,
        f"Share of a text's {k} nearest neighbours that have its label. Marks: mean over texts; bars: 95\xa0%\xa0interval"
        f"{'; dashed: chance' if len(figure_rows) < len(table) else ''}.",
        0.3 + 0.14 * len(panels) + 0.19 * sum(map(len, heads)) + 0.34 * len(figure_rows),
        rows=len(panels),
        sharex=True,
        height_ratios=[len(part) + 0.6 for _, part in panels],
    )
    for ax, (name, part), head in zip(axes[:, 0], panels, heads, strict=True):
        part = part.sort_values("k", kind="stable")
        for expected in table.loc[(table["model"] == CHANCE) & (table["panel"] == name), "mean"].unique():
            ax.axvline(expected, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
        for y, row in enumerate(part.itertuples(index=False)):
            colour, marker = look[row.model].colour, look[row.model].marker
            if np.isfinite(row.low):
                ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
            ax.plot(row.mean, y, marker, color=colour, markersize=8, markeredgecolor="white", markeredgewidth=0.8)
            beside(ax, y, with_interval(row.mean, row.low, row.high))
        bare_rows(ax, part["label"])
        ax.set_title("\n".join(head), loc="left", weight="bold")
        ax.margins(x=0.08)
        grid(ax, "x")
    percent_below(axes[-1, 0], "precision (%)")
    return figure


@styled
def attention_reach(table: pd.DataFrame, title: str = "Which tokens does a token see?") -> Figure:
    """Which tokens each token sees: queries down, keys across. Layers of a model with the same reach share a panel.

    ``table``: ``layer``, ``token``, ``first``, ``last`` (from 1), as :func:`rtxstudy.questions.pretrained.behaviour.reach` gives
    them, and optionally ``model``. Raises ``InputError`` for a missing column or an empty table.
    """
    require(table, ("layer", "token", "first", "last"), "attention_reach")
    panels: dict[tuple[str, bytes], tuple[np.ndarray, list[int]]] = {}
    for model, rows in table.groupby("model", sort=False) if "model" in table else [("", table)]:
        length = int(rows[["token", "last"]].to_numpy().max())
        for layer, part in rows.groupby("layer"):
            visible = np.zeros((length, length), dtype=bool)  # (queries, keys)
            for run in part.itertuples(index=False):
                visible[run.token - 1, run.first - 1 : run.last] = True
            panels.setdefault((str(model), visible.tobytes()), (visible, []))[1].append(int(layer))
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    room = WIDTH * 72 / columns - 50  # width of a panel in points, roughly
    figure, axes = canvas(
        title,
        "Each row is a token, each column one that it may see.",
        0.2 + lines * (min(room, 220) / 72 + 1.0),
        rows=lines,
        columns=columns,
        key=[square(_SEEN, "seen", size=7), square(_UNSEEN, "not seen", size=7)],
    )
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    for ax, ((model, _), (visible, layers)) in zip(axes.flat, panels.items(), strict=False):
        length = len(visible)
        edges = (0.5, length + 0.5, length + 0.5, 0.5)
        ax.imshow(visible, cmap=ListedColormap([_UNSEEN, _SEEN]), vmin=0, vmax=1, interpolation="nearest", extent=edges)
        words = f"{len(layers)} layers: {_numbers(layers)}" if len(layers) > 1 else f"layer {layers[0]}"
        ax.set_title("\n".join(filter(None, (model, *wrap(words, room, BODY)))), loc="left")
        ax.set(xticks=[1, length], yticks=[1, length], xlabel="token that is seen")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    for ax in axes[:, 0]:
        ax.set_ylabel("token that looks")
    return figure


def _numbers(numbers: Sequence[int]) -> str:
    """``1 to 6`` without gaps, all of up to four numbers, or the first three and the last: ``1, 4, 7, … 22``."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}\xa0to\xa0{numbers[-1]}"
    words = [*map(str, numbers)] if len(numbers) <= 4 else [*map(str, numbers[:3]), f"… {numbers[-1]}"]
    return ", ".join(words).replace(" ", "\xa0")  # one line of a title


@styled
def norms_by_layer(table: pd.DataFrame, title: str = "Does a token's state grow from layer to layer?") -> Figure:
    """Mean norm of a token's state after each layer, divided by the root of the width: one line per model.

    ``table``: ``model``, ``layer`` (0: the embedding), ``norm``, as
    :func:`rtxstudy.questions.pretrained.behaviour.norms_by_layer` gives them for a model. The axis is logarithmic if the norms
    span more than a factor of five. Raises ``InputError`` for a missing column, an empty table, or a layer of a model
    that occurs twice.
    """
    require(table, ("model", "layer", "norm"), "norms_by_layer")
    one_row_each(table, ("model", "layer"), "norms_by_layer")
    figure, axes = canvas(
        title, "Mean over tokens of ‖h‖ / √width; 1 is what a norm without learned weights gives.", 3.6
    )
    ax, ends, segments = axes[0, 0], [], []
    for name, look in looks(table["model"]).items():
        part = table[table["model"] == name].sort_values("layer")
        points = part[["layer", "norm"]].to_numpy(dtype=float)
        ax.plot(*points.T, color=look.shade, linestyle=look.line, linewidth=1.8, marker=look.marker, markersize=6)
        segments += list(pairwise(points))
        ends.append((*points[-1], name, ink(look.shade)))
    ax.margins(y=0.14)  # room for names above the last points
    if wide(table["norm"]):
        logarithmic(ax.yaxis)
    else:
        ax.set_ylim(bottom=0)
    ax.set(xlabel="layer (0: the embedding)", ylabel="length of a state")
    ax.xaxis.get_major_locator().set_params(integer=True)
    grid(ax, "y")
    x, y, words, colours = zip(*ends, strict=True)
    place(ax, x, y, words, [4.0] * len(x), colours, segments=segments)
    return figure
