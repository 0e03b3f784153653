"""The interactive bubble plot: plotly, for JupyterLab and the report."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rtxstudy.figures.looks import FAINT, INK, looks
from rtxstudy.figures.scales import wide
from rtxstudy.figures.wrapping import wrap
from rtxstudy.questions.accuracy.tradeoff_figures import COSTS, UNITS, drawable

_SYMBOLS = {"o": "circle", "D": "diamond", "s": "square", "X": "x", "^": "triangle-up"}
_HOVER = {
    "ms_one": "ms for one text, median",
    "ms_in_batch": "ms per text in full batches",
    "parameters": "million parameters",
    "non_embedding_parameters": "million without token embedding",
    "forward_flops": "GFLOP per text",
}


def bubble(
    table: pd.DataFrame, cost: str = "ms_one", title: str = "What does accuracy cost in time and in parameters?"
) -> go.Figure:
    """The bubble plot of :func:`rtxstudy.questions.accuracy.tradeoff_figures.bubble`: hovering shows all numbers, a click hides
    a family.

    ``table``: as there; hovering also shows further columns among ``COSTS``. The figure has no fixed width, so it
    fits a notebook, a report and a phone. It needs nothing from the network but the plotly.js that shows it. Raises
    ``InputError`` for a missing column, an empty table, or a model that occurs twice.
    """
    table, left_out = drawable(table, ("parameters", cost), "interactive bubble")
    look = looks(table["model"])
    x, y = table[cost] / UNITS.get(cost, 1), 100 * table["mean"]
    figure = go.Figure()
    for family in dict.fromkeys(style.family for style in look.values()):
        part = table[[look[model].family == family for model in table["model"]]]
        index = part.index
        style = look[part["model"].iloc[0]]
        bubbles = {"sizemode": "area", "sizeref": table["parameters"].max() / 44**2, "sizemin": 4, "symbol": "circle"}
        figure.add_scatter(
            x=x[index],
            y=y[index],
            mode="markers",
            legendgroup=family,
            showlegend=False,
            error_y={"array": 100 * (part["high"] - part["mean"]), "color": style.colour, "thickness": 1, "width": 0},
            marker=bubbles | {"size": part["parameters"], "color": style.colour, "opacity": 0.3, "line": {"width": 0}},
            hovertext=[_words(row) for _, row in part.iterrows()],
            hoverinfo="text",
        )
        figure.add_scatter(
            x=x[index],
            y=y[index],
            mode="markers",
            legendgroup=family,
            name=family,
            marker={
                "size": 9,
                "symbol": _SYMBOLS[style.marker],
                "color": style.colour,
                "line": {"color": "white", "width": 1},
            },
            hoverinfo="skip",
        )
    heading = wrap(title, 330, 16, "bold")  # 330 px: the width of a phone without the margins
    below = wrap(COSTS[cost] + (f".{left_out}" if left_out else ""), 290, 13)
    figure.update_layout(
        template="plotly_white",
        autosize=True,
        height=448 + 21 * (len(heading) + len(below)),
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"family": "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif", "size": 13, "color": INK},
        margin={"l": 54, "r": 14, "t": 60 + 21 * len(heading), "b": 78 + 18 * len(below)},
        # plotly's buttons appear above the title, so it keeps a distance to the top
        title={
            "text": "<b>" + "<br>".join(heading) + "</b>",
            "font": {"size": 16},
            **{"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"},
            "pad": {"t": 42, "l": 14},
        },
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yref": "container", "yanchor": "bottom"},
        hoverlabel={"align": "left", "bgcolor": "white", "font": {"size": 12}},
        xaxis={"title": {"text": "<br>".join(below), "font": {"size": 13}}, "gridcolor": FAINT} | _scale(x),
        yaxis={"title": {"text": "accuracy (%)", "font": {"size": 13}}, "gridcolor": FAINT},
    )
    return figure


def _scale(values: pd.Series) -> dict:
    """Settings of a logarithmic axis with plain numbers at 1, 2 and 5 of each decade, or none if the axis is linear."""
    if not wide(values):
        return {}
    decades = range(int(np.floor(np.log10(values.min()))) - 1, int(np.ceil(np.log10(values.max()))) + 1)
    ticks = [float(f"{lead}e{decade}") for decade in decades for lead in (1, 2, 5)]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,.12g}" for tick in ticks]}


def _words(row: pd.Series) -> str:
    """The label of a bubble on hover: the model, its accuracy and every cost in the table."""
    interval = f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]" if np.isfinite(row["low"]) else ""
    lines = [f"<b>{row['model']}</b>", f"accuracy {100 * row['mean']:.1f}%{interval}, n = {int(row['n'])}"]
    lines += [
        f"{row[column] / UNITS.get(column, 1):,.3g} {words}"
        for column, words in _HOVER.items()
        if column in row and pd.notna(row[column])
    ]
    return "<br>".join(lines)
