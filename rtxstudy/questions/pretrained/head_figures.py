"""What the heads of an encoder look at: a map of layers and heads for each kind of token."""

from __future__ import annotations

import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.looks import OKABE, on
from rtxstudy.figures.scales import Percent
from rtxstudy.figures.style import BODY, canvas, styled

_SHADES = LinearSegmentedColormap.from_list("attention", ["#f3f3f3", "#a9cfe6", OKABE["blue"], "#00304d"])
_COLUMNS = 2


@styled
def attention_patterns(table: pd.DataFrame, title: str = "What does each head look at?") -> Figure:
    """The share of its attention that each head gives to each kind of token: one panel per kind, layers down, heads across.

    ``table``: ``pattern``, ``layer``, ``head`` (from 1), ``share`` and ``uniform`` (0..1), one row for each. The head with the
    largest share of a panel has it written in its cell. Raises ``InputError`` for a missing column, an empty table, or a head
    that occurs twice.
    """
    require(table, ("pattern", "layer", "head", "share", "uniform"), "attention_patterns")
    one_row_each(table, ("pattern", "layer", "head"), "attention_patterns")
    panels = list(table.groupby("pattern", sort=False))
    lines, layers = -(-len(panels) // _COLUMNS), int(table["layer"].max())
    figure, axes = canvas(
        title,
        "Share of a head's attention, mean over tokens. In brackets: the share if all tokens of a text were attended to alike. "
        "The largest share is written in its cell.",
        0.75 + lines * (0.55 + 0.17 * layers),
        rows=lines,
        columns=_COLUMNS,
        sharex=True,
        sharey=True,
    )
    most = 0.0
    for ax, (pattern, part) in zip(axes.flat, panels, strict=False):
        shares = part.pivot(index="layer", columns="head", values="share")
        mesh = ax.pcolormesh(
            shares.columns, shares.index, shares, cmap=_SHADES, vmin=0, vmax=1, edgecolors="white", linewidth=0.6
        )
        layer, head = shares.stack().idxmax()
        top = shares.loc[layer, head]
        ax.text(
            head, layer, f"{100 * top:.0f}", ha="center", va="center_baseline", size=8, color=on(mesh.to_rgba(top)[:3])
        )
        ax.set_title(f"{pattern} ({100 * part['uniform'].mean():.0f} %)", loc="left", size=BODY)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        most = max(most, top)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    first = axes[0, 0]
    first.set_ylim(layers + 0.5, 0.5)
    first.set_xticks(range(1, int(table["head"].max()) + 1, 2 if table["head"].max() > 8 else 1))
    first.set_yticks(range(1, layers + 1, 1 if layers <= 8 else 2))
    for ax in axes[:, 0]:
        ax.set_ylabel("layer")
    for ax in axes[-1]:
        ax.set_xlabel("head")
    scale = ScalarMappable(Normalize(0, 1), _SHADES)
    bar = figure.colorbar(scale, ax=axes, orientation="horizontal", aspect=45, pad=0.02, format=Percent(), shrink=0.8)
    bar.set_label("share of a head's attention (%)")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    return figure
