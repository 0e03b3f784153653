"""Labels that overlap nothing: beside points of a scatter, at the ends of lines, and lines of wrapped text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.textpath import text_to_path
from scipy.optimize import isotonic_regression

_ANGLES = np.deg2rad([0, 180, 90, 270, 45, 315, 135, 225, 22, 338, 158, 202, 68, 112, 292, 248])  # preferred first
_WAYS = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_GAPS = (2.5, 6.0, 14.0, 26.0, 42.0, 64.0, 95.0)  # points between a mark and its label
_LEADER = 8.0  # points; a label farther away than this gets a line to its mark


@cache
def extent(text: str, size: float, weight: str = "normal") -> tuple[float, float]:
    """Width and height of a (possibly multi-line) text in points."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    lines = text.split("\n")
    widths = [text_to_path.get_text_width_height_descent(line or " ", font, ismath=False)[0] for line in lines]
    return 1.015 * max(widths), size * 1.2 * len(lines)  # drawn glyphs are hinted a little wider than their outlines


def wrap(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Break a text at spaces into lines of at most ``width`` points, as few and as even as can be.

    A line break in the text is kept, and a no-break space stays whole.
    """
    lines: list[str] = []
    for paragraph in filter(None, text.split("\n")):
        filled = _fill(paragraph, width, size, weight)
        for share in range(60, 100, 4):  # the narrowest measure that needs no more lines leaves no lone word at the end
            narrow = _fill(paragraph, width * share / 100, size, weight)
            if len(narrow) == len(filled) and all(extent(line, size, weight)[0] <= width for line in narrow):
                filled = narrow
                break
        lines += filled
    return lines


def _fill(paragraph: str, width: float, size: float, weight: str) -> list[str]:
    lines, line = [], ""
    for word in paragraph.split(" "):
        longer = f"{line} {word}" if line else word
        if line and extent(longer, size, weight)[0] > width:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line]


def place(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[float],
    texts: Sequence[str],
    radii: Sequence[float],
    colours: Sequence[str],
    size: float = 10.0,
    segments: Sequence[tuple[tuple[float, float], tuple[float, float]]] = (),
) -> list[Annotation]:
    """Write one label beside each point so that no label covers another, a mark, or leaves the axes.

    ``x``, ``y`` and ``segments`` (lines to keep clear of, as pairs of ends) are in data coordinates, ``radii`` of
    the marks in points. Each label chooses among 16 directions × 7 distances; choices are improved in turn, from
    several fixed orders, until none gets better. A label that had to move away gets a thin line to its mark. Call it
    last: the layout is frozen here, since the labels are placed on the final sizes.
    """
    figure = axes.figure
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    point = 72 / figure.dpi
    centres = axes.transData.transform(np.column_stack([x, y])) * point  # (n, 2)
    lines = (axes.transData.transform(np.reshape(segments, (-1, 2))) * point).reshape(-1, 2, 2)
    frame = axes.get_window_extent().extents * point
    extents = [extent(text, size) for text in texts]
    reach = np.asarray(radii, dtype=float)
    places = [_places(centre, r, wh) for centre, r, wh in zip(centres, reach, extents, strict=True)]
    alone = np.stack([_cost_alone(option, i, centres, reach, lines, frame) for i, option in enumerate(places)])
    notes = []
    for i, choice in enumerate(_choose(alone, places)):
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
                size=size,
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


class _Places(NamedTuple):
    """Where a label may go: k boxes (left, bottom, right, top), k leaders (mark's edge, box's edge), all in points."""

    boxes: np.ndarray  # (k, 4)
    leads: np.ndarray  # (k, 2 ends, 2)
    drawn: np.ndarray  # (k,) whether the leader is long enough to be drawn


def _places(centre: np.ndarray, radius: float, size: tuple[float, float]) -> _Places:
    half, way = np.asarray(size) / 2, np.tile(_WAYS, (len(_GAPS), 1))  # (k, 2)
    gap = np.repeat(_GAPS, len(_WAYS))[:, None]
    # the box's nearest point lies `gap` outside the mark: its side, or near the axes its middle, faces the mark
    middle = centre + way * (radius + gap) + np.clip(way / 0.35, -1, 1) * half
    boxes = np.hstack([middle - half, middle + half])
    touch = np.clip(centre, boxes[:, :2], boxes[:, 2:])
    toward = (touch - centre) / np.maximum(np.hypot(*(touch - centre).T), 1e-9)[:, None]
    return _Places(boxes, np.stack([centre + toward * radius, touch], axis=1), gap[:, 0] > _LEADER)


def _cost_alone(
    places: _Places, own: int, centres: np.ndarray, reach: np.ndarray, lines: np.ndarray, frame: np.ndarray
) -> np.ndarray:
    """Cost (k,) of each place on its own: for leaving the axes, for covering marks or lines, for being far away."""
    boxes, gap = places.boxes, np.repeat(_GAPS, len(_WAYS))
    cost = np.tile(np.arange(len(_WAYS)), len(_GAPS)) * 0.4 + gap * 0.5 + 12.0 * places.drawn  # _WAYS: preferred first
    outside = np.maximum(frame[:2] - boxes[:, :2], 0).sum(axis=1) + np.maximum(boxes[:, 2:] - frame[2:], 0).sum(axis=1)
    cost += 400 * (outside > 0) + 10 * outside
    for other, (centre, radius) in enumerate(zip(centres, reach, strict=True)):
        depth = radius + 1.0 - np.hypot(*(np.clip(centre, boxes[:, :2], boxes[:, 2:]) - centre).T)
        cost += np.where(depth > 0, 60 + 8 * depth, 0)
        if other != own:  # a leader through another mark would point at the wrong one
            square = np.concatenate([centre - radius, centre + radius])[None]
            cost += 40 * (places.drawn & _hits(places.leads, square)[:, 0])
    return cost + 9 * _hits(lines, boxes).sum(axis=0)


def _cost_between(one: _Places, two: _Places) -> np.ndarray:
    """Cost (k, k) of each pair of places of two labels: for overlap, and for leaders through boxes or each other."""
    a, b = one.boxes[:, None], two.boxes[None]
    overlap = np.minimum(a[..., 2:], b[..., 2:] + 2) - np.maximum(a[..., :2], b[..., :2] - 2)  # (k, k, 2)
    cost = np.where((overlap > 0).all(axis=2), 300 + overlap.clip(0).prod(axis=2), 0)
    cost += 40 * (_hits(one.leads, two.boxes) & one.drawn[:, None])
    cost += 40 * (_hits(two.leads, one.boxes).T & two.drawn)
    return cost + 30 * (_meet(one.leads, two.leads) & one.drawn[:, None] & two.drawn)


def _choose(alone: np.ndarray, places: list[_Places]) -> np.ndarray:
    """The place (n,) of each label: the least total cost that improving one label at a time finds from many starts."""
    n, k = alone.shape
    pairs = np.zeros((n, n, k, k), dtype=np.float32)
    for i in range(n):
        for j in range(i):
            pairs[i, j] = _cost_between(places[i], places[j])
            pairs[j, i] = pairs[i, j].T
    rng, everyone = np.random.default_rng(0), np.arange(n)
    best, least = alone.argmin(axis=1), np.inf
    for start in range(60):
        chosen = alone.argmin(axis=1) if start == 0 else alone.argsort(axis=1)[everyone, rng.integers(0, k // 4, n)]
        moved = True
        while moved:
            moved = False
            for i in rng.permutation(n):
                cost = alone[i] + pairs[i, everyone, :, chosen].sum(axis=0)
                if cost.min() < cost[chosen[i]] - 1e-3:
                    chosen[i], moved = cost.argmin(), True
        total = alone[everyone, chosen].sum() + pairs[everyone[:, None], everyone, chosen[:, None], chosen].sum() / 2
        if total < least - 1e-3:
            best, least = chosen.copy(), total
    return best


def _hits(segments: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Whether each segment (a, 2 ends, 2) passes through each box (b, 4), shape (a, b): Liang and Barsky's clipping."""
    start, along = segments[:, None, 0], segments[:, None, 1] - segments[:, None, 0]
    along = np.where(np.abs(along) < 1e-9, 1e-9, along)
    ends = np.stack([(boxes[None, :, :2] - start) / along, (boxes[None, :, 2:] - start) / along])  # (2, a, b, 2)
    return np.maximum(ends.min(axis=0).max(axis=2), 0) < np.minimum(ends.max(axis=0).min(axis=2), 1)


def _meet(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Whether each segment (a, 2 ends, 2) crosses each segment (b, 2 ends, 2), shape (a, b)."""

    def side(from_: np.ndarray, to: np.ndarray, point: np.ndarray) -> np.ndarray:
        u, v = to - from_, point - from_
        return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]

    a, b, c, d = one[:, None, 0], one[:, None, 1], two[None, :, 0], two[None, :, 1]
    return (side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)


def at_line_ends(
    axes: Axes, y: Sequence[float], texts: Sequence[str], colours: Sequence[str], size: float = 10.0
) -> list[Annotation]:
    """Write each text to the right of the axes at the height of ``y`` (data), moved just enough not to overlap.

    Heights minimise the summed squared shifts with a line's distance between neighbours (an isotonic regression).
    Call :func:`spread` after the layout of the whole figure is known.
    """
    order = np.argsort(y, kind="stable")
    return [
        axes.annotate(
            texts[i],
            (1, y[i]),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center_baseline",
            ha="left",
            color=colours[i],
            size=size,
            annotation_clip=False,
        )
        for i in order
    ]


def spread(axes: Axes, notes: Sequence[Annotation], clearance: float = 1.22) -> None:
    """Move the labels of :func:`at_line_ends` apart; freezes the figure's layout."""
    if not notes:
        return
    figure = axes.figure
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    point = 72 / figure.dpi
    wanted = np.array([axes.transData.transform((0, note.xy[1]))[1] * point for note in notes])
    step = notes[0].get_fontsize() * clearance
    offsets = np.arange(len(notes)) * step
    low, high = axes.get_window_extent().y0 * point, axes.get_window_extent().y1 * point
    # inside the axes' height where they fit, so that the top one never reaches into the header
    placed = np.clip(isotonic_regression(wanted - offsets).x, low, max(low, high - offsets[-1])) + offsets
    for note, from_y, to_y in zip(notes, wanted, placed, strict=True):
        note.xyann = (6, float(to_y - from_y))
