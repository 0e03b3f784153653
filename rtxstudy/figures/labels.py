"""Labels that overlap nothing: beside the points of a scatter, at the ends of lines, and beside rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from scipy.optimize import isotonic_regression

from rtxstudy.figures.placement import choose
from rtxstudy.figures.style import BODY
from rtxstudy.figures.wrapping import extent
from rtxstudy.names import said


def place(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    texts: Sequence[str],
    radii: Sequence[float],
    colours: Sequence[str],
    segments: Sequence[tuple[tuple[float, float], tuple[float, float]]] = (),
    others: Sequence[tuple[float, float]] = (),
) -> list[Annotation]:
    """Write one label beside each point. No label covers another label or a mark, or leaves the axes.

    ``x``, ``y``, ``segments`` (lines to keep clear of, as pairs of ends) and ``others`` (marks without a label, as large as the
    first) are in data coordinates, ``radii`` of the marks in points. A label that had to move away gets a thin line to its mark.
    Call it last: it freezes the layout, because the labels are placed on the final sizes.
    """
    figure, texts = axes.figure, [said(text) for text in texts]
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    point = 72 / figure.dpi
    centres = axes.transData.transform(np.vstack([np.column_stack([x, y]), *map(np.atleast_2d, others)])) * point
    radii = [*radii, *[radii[0]] * len(others)]
    lines = (axes.transData.transform(np.reshape(segments, (-1, 2))) * point).reshape(-1, 2, 2)
    frame = axes.get_window_extent().extents * point
    sizes = [extent(text, BODY) for text in texts]
    places, chosen = choose(centres, np.asarray(radii, dtype=float), sizes, lines, frame)
    notes = []
    for i, choice in enumerate(chosen):
        box, lead = places[i].boxes[choice], places[i].leads[choice]
        middle = (box[:2] + box[2:]) / 2
        notes.append(
            axes.annotate(
                texts[i],
                (x[i], y[i]),
                xytext=tuple(middle - centres[i]),
                textcoords="offset points",
                ha="center",
                va="center",
                size=BODY,
                color=colours[i],
                linespacing=1.1,
                annotation_clip=False,
                zorder=6,
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )
        )
        if places[i].drawn[choice]:
            start, end = lead - centres[i]
            axes.annotate(
                "",
                (x[i], y[i]),
                xytext=tuple(end),
                textcoords="offset points",
                zorder=1.5,
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "color": "#a8a8a8",
                    "linewidth": 0.7,
                    "shrinkA": 0,
                    "shrinkB": float(np.hypot(*start)),
                },
            )
    return notes


def at_line_ends(axes: Axes, y: Sequence[float], texts: Sequence[str], colours: Sequence[str]) -> list[Annotation]:
    """Write each label to the right of the axes at the height of ``y`` (data coordinates).

    Call :func:`spread` when the layout of the whole figure is known: it moves them apart.
    """
    order = np.argsort(y, kind="stable")
    return [
        axes.annotate(
            said(texts[i]),
            (1, y[i]),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center_baseline",
            ha="left",
            color=colours[i],
            size=BODY,
            annotation_clip=False,
        )
        for i in order
    ]


def spread(axes: Axes, notes: Sequence[Annotation]) -> None:
    """Move the labels of :func:`at_line_ends` apart, as little as possible. This freezes the figure's layout.

    The heights minimise the sum of squared shifts under a least distance between neighbours (isotonic regression).
    """
    if not notes:
        return
    figure = axes.figure
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    point = 72 / figure.dpi
    targets = np.array([axes.transData.transform((0, note.xy[1]))[1] * point for note in notes])
    step = 1.22 * BODY
    offsets = np.arange(len(notes)) * step
    low, high = axes.get_window_extent().y0 * point, axes.get_window_extent().y1 * point
    # within the height of the axes where they fit, so that the top label never reaches into the header
    placed = np.clip(isotonic_regression(targets - offsets).x, low, max(low, high - offsets[-1])) + offsets
    for note, from_y, to_y in zip(notes, targets, placed, strict=True):
        note.xyann = (6, float(to_y - from_y))


def beside(axes: Axes, y: float, words: str) -> None:
    """A label to the right of the axes, level with the tick label at ``y``."""
    axes.annotate(
        words,
        (1, y),
        xycoords=("axes fraction", "data"),
        xytext=(6, 0),
        textcoords="offset points",
        va="center_baseline",
        annotation_clip=False,
    )


def bare_rows(axes: Axes, names: Sequence[str]) -> None:
    """Named rows, the first on top, without a spine or ticks at their left."""
    axes.set_yticks(range(len(names)), [said(str(name)) for name in names])
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def side_label(figure: Figure, words: str) -> None:
    """The label of the vertical axis that all panels share, in the middle of the panels rather than of the image."""
    top = figure.get_layout_engine().get()["rect"][3]
    below = 3.5 * BODY / 72 / figure.get_figheight()  # tick labels and axis label of the lowest panel
    figure.supylabel(words, size=BODY, y=(top + below) / 2)
