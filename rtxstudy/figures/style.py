"""The page of every figure: its width, type and settings, and the header with the question, a note and a key."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rtxstudy.figures.looks import FAINT, GREY, INK
from rtxstudy.figures.wrapping import extent, wrap
from rtxstudy.names import said

WIDTH = 6.4  # inches; type of 10 points is then legible on a phone 390 px wide
WIDE = 9.4  # of a figure that a report shows at full width; on a phone it is scrolled
TITLE, BODY = 13.0, 10.0  # points
PAD = 7.0  # points between the edge of the image and its content

RC = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same figure on every machine
    "font.size": BODY,
    "axes.titlesize": BODY,
    "axes.labelsize": BODY,
    "xtick.labelsize": BODY,
    "ytick.labelsize": BODY,
    "legend.fontsize": BODY,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9a9a9a",
    "xtick.color": "#9a9a9a",
    "ytick.color": "#9a9a9a",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",  # not transparent: dark text would be lost on a dark page
    "axes.facecolor": "white",
    "figure.dpi": 100,
}

styled = mpl.rc_context(RC)  # the decorator of a figure function: these settings hold inside it and nowhere else


def canvas(
    title: str,
    note: str,
    height: float,
    rows: int = 1,
    columns: int = 1,
    key: Sequence[Line2D] = (),
    width: float = WIDTH,
    **grid: object,
) -> tuple[Figure, np.ndarray]:
    """A white figure: the title, a grey note, a key, and below them axes (rows, columns).

    ``height`` is the height of the axes and ``width`` that of the figure, in inches. The header adds its own height, so a longer
    title never covers the axes. ``grid`` goes to ``Figure.subplots``. matplotlib's constrained layout places the axes.
    """
    inner = width * 72 - 2 * PAD  # points
    title, note = (said(words).replace(" %", "\xa0%") for words in (title, note))
    for handle in key:
        handle.set_label(said(str(handle.get_label())))
    heading, small = wrap(title, inner, TITLE, "bold"), wrap(note, inner, BODY)
    y_note = PAD + TITLE * 1.28 * len(heading) + 2
    y_key = y_note + BODY * 1.36 * len(small) + (3 if small else 0)
    key_columns = _columns(key, inner)
    key_rows = -(-len(key) // key_columns) if key else 0
    header = y_key + BODY * 1.55 * key_rows + 5
    total = header + height * 72
    figure = Figure(figsize=(width, total / 72))
    figure.set_layout_engine(
        "constrained", rect=(0, 0, 1, 1 - header / total), w_pad=PAD / 72, h_pad=PAD / 72, wspace=0.04, hspace=0.05
    )
    left = PAD / (width * 72)
    text = {"va": "top", "in_layout": False}
    figure.text(left, 1 - PAD / total, "\n".join(heading), size=TITLE, weight="bold", linespacing=1.2, **text)
    figure.text(left, 1 - y_note / total, "\n".join(small), size=BODY, color=GREY, linespacing=1.25, **text)
    if key:
        legend = figure.legend(
            handles=key,
            loc="upper left",
            bbox_to_anchor=(left, 1 - y_key / total),
            ncols=key_columns,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handletextpad=0.4,
            columnspacing=1.4,
            handlelength=_handle(key),
            labelspacing=0.35,
        )
        legend.set_in_layout(False)
    return figure, figure.subplots(rows, columns, squeeze=False, **grid)


def _handle(key: Sequence[Line2D]) -> float:
    """The length of the lines in the key, in letters: long enough to tell several kinds of broken lines apart."""
    return 2.4 if sum(handle.get_linestyle() == "--" for handle in key) > 1 else 1.0  # "--": of every broken line


def _columns(key: Sequence[Line2D], width: float) -> int:
    """The largest number of columns in which the entries of the key fit side by side."""
    cells = [extent(str(handle.get_label()), BODY)[0] + (1.8 + _handle(key)) * BODY for handle in key]
    for columns in range(len(key), 1, -1):
        if sum(max(column) for column in np.array_split(cells, columns)) <= width:  # as matplotlib fills them
            return columns
    return 1
