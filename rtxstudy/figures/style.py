"""What every figure shares: sizes, type, colours, the header with its question, and the checks of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, NullLocator

from rtxlib.errors import InputError, nearest
from rtxstudy.figures.labels import extent, wrap

WIDTH = 6.4  # inches; 10 pt type then stays legible on a phone 390 px wide
INK, GREY, FAINT = "#1f1f1f", "#5c5c5c", "#e3e3e3"
TITLE, BODY = 13.0, 10.0  # points
PAD = 7.0  # points between the edge of the image and what stands in it

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
    "figure.facecolor": "white",  # never transparent: a dark page must not swallow the ink
    "axes.facecolor": "white",
    "figure.dpi": 100,
}

styled = mpl.rc_context(RC)  # a decorator: the settings hold inside a figure function and nowhere else


class Look(NamedTuple):
    """How a model is drawn; colour and marker both tell its family, shade and line tell it from its kin."""

    family: str
    colour: str
    marker: str
    shade: str
    line: str | tuple


_OKABE = dict(
    zip(
        ("black", "orange", "sky", "green", "yellow", "blue", "vermillion", "purple"),
        map(to_hex, mpl.color_sequences["okabe_ito"]),
        strict=True,
    )
)
# the first family whose word occurs in a model's name is its family
_FAMILIES = (
    ("unshared", ("unshared",), _OKABE["purple"], "s"),
    ("recurrent", ("recurrent",), _OKABE["vermillion"], "D"),
    ("standard", ("standard",), _OKABE["blue"], "o"),
    ("classical", ("tf-idf", "majority", "n-gram"), GREY, "X"),
    ("pretrained", ("minilm", "modernbert"), _OKABE["green"], "P"),
    ("bert", ("bert",), _OKABE["orange"], "v"),
    ("other", ("",), _OKABE["black"], "^"),
)
_LINES = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))


def looks(models: Iterable[str]) -> dict[str, Look]:
    """A look for each model name: the family gives colour and marker, the order within the family shade and line."""
    rank, found = dict[str, int](), dict[str, Look]()
    for name in dict.fromkeys(models):
        family, _, colour, marker = next(f for f in _FAMILIES if any(word in name.lower() for word in f[1]))
        place = rank[family] = rank.get(family, -1) + 1
        shade = tuple(c + (1 - c) * 0.17 * (place % 4) for c in to_rgb(colour))  # lighter, yet never too light to see
        found[name] = Look(family, colour, marker, to_hex(shade), _LINES[place % 4])
    return found


def contrast(one: str | tuple, other: str | tuple) -> float:
    """Contrast ratio of two colours, 1 to 21; text wants 4.5 (WCAG 2.2, success criterion 1.4.3)."""

    def luminance(colour: str | tuple) -> float:
        rgb = np.asarray(to_rgb(colour))
        return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def ink(colour: str | tuple) -> str:
    """The colour, darkened as far as text in it needs to be read on white."""
    rgb = np.asarray(to_rgb(colour))
    while contrast(tuple(rgb), "white") < 4.5:
        rgb = rgb * 0.96
    return to_hex(rgb)


def on(background: str | tuple) -> str:
    """Ink or white, whichever reads better on this background."""
    return max((INK, "white"), key=lambda text: contrast(text, background))


def short(model: str) -> str:
    """``standard-6x384`` → ``6×384``: the family is in the colour, the marker and the key."""
    head, _, tail = model.partition("-")
    return re.sub(r"(?<=\d)x(?=\d)", "×", tail) if head in ("standard", "recurrent") and tail[:1].isdigit() else model


_KEY_WORDS = {
    "standard": "standard, layers × width",
    "recurrent": "recurrent, layers × iterations × width",
    "unshared": "recurrent, not shared",
    "classical": "no neural network",
    "pretrained": "pretrained, then fine-tuned",
    "bert": "BERT's layers, from scratch",
    "other": "other",
}


def family_key(models: Iterable[str]) -> list[Line2D]:
    """Handles that explain markers and short names, one a family present."""
    present = {look.family: look for look in reversed(looks(models).values())}
    return [
        Line2D([], [], color=present[f].colour, marker=present[f].marker, linestyle="none", markersize=6.5, label=words)
        for f, words in _KEY_WORDS.items()
        if f in present
    ]


def canvas(
    title: str, note: str, height: float, rows: int = 1, columns: int = 1, key: Sequence[Line2D] = (), **grid: object
) -> tuple[Figure, np.ndarray]:
    """A white figure 6.4 in wide: the question, a grey note, a key, and below them a rows × columns array of axes.

    ``height`` is that of the body, in inches; the header adds its own, so a longer question never covers the axes.
    ``grid`` goes to ``Figure.subplots``. Everything left of the body's margins is laid out by matplotlib's
    constrained layout.
    """
    inner = WIDTH * 72 - 2 * PAD  # points
    heading, small = wrap(title, inner, TITLE, "bold"), wrap(note, inner, BODY)
    y_note = PAD + TITLE * 1.28 * len(heading) + 2
    y_key = y_note + BODY * 1.36 * len(small) + (3 if small else 0)
    key_columns = _columns(key, inner)
    key_rows = -(-len(key) // key_columns) if key else 0
    header = y_key + BODY * 1.55 * key_rows + 5
    total = header + height * 72
    figure = Figure(figsize=(WIDTH, total / 72))
    figure.set_layout_engine(
        "constrained", rect=(0, 0, 1, 1 - header / total), w_pad=PAD / 72, h_pad=PAD / 72, wspace=0.04, hspace=0.05
    )
    left = PAD / (WIDTH * 72)
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
            handlelength=1.0,
            labelspacing=0.35,
        )
        legend.set_in_layout(False)
    return figure, figure.subplots(rows, columns, squeeze=False, **grid)


def _columns(key: Sequence[Line2D], width: float) -> int:
    """The most columns in which the key's entries fit side by side."""
    cells = [extent(str(handle.get_label()), BODY)[0] + 2.8 * BODY for handle in key]
    for columns in range(len(key), 1, -1):
        if sum(max(column) for column in np.array_split(cells, columns)) <= width:  # as matplotlib fills them
            return columns
    return 1


def require(table: pd.DataFrame, columns: Iterable[str], figure: str) -> None:
    """Raise ``InputError`` when the table of ``figure`` is empty or lacks one of ``columns``."""
    for column in columns:
        if column not in table:
            raise InputError(f"The figure '{figure}' needs a column '{column}'.{nearest(column, table.columns)}")
    if table.empty:
        raise InputError(f"The figure '{figure}' has no rows to draw; its table is empty.")


def one_row_each(table: pd.DataFrame, columns: Sequence[str], figure: str) -> None:
    """Raise ``InputError`` when two rows share their ``columns``, which would be drawn on top of each other."""
    twice = table[table.duplicated(list(columns))]
    if len(twice):
        name = ", ".join(str(twice.iloc[0][column]) for column in columns)
        raise InputError(
            f"The figure '{figure}' holds '{name}' twice; summarise the runs or tell the rows apart by name."
        )


class Percent(Formatter):
    """Ticks of a share of 0..1 in per cent, all with as many decimals as the finest of them needs."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        locs = self.locs if len(self.locs) else [value]
        decimals = next(
            (d for d in range(4) if np.allclose(np.round(np.multiply(locs, 100), d), np.multiply(locs, 100))), 4
        )
        return f"{100 * value:.{decimals}f}"


def grid(axes: Axes, which: str) -> None:
    """Faint lines along one axis ("x" or "y"), and no ticks where they do the work."""
    axes.grid(axis=which)
    axes.tick_params(axis=which, length=0)


def wide(values: Iterable[float], factor: float = 5.0) -> bool:
    """Whether positive values span so much that a logarithmic axis reads better."""
    values = np.asarray(list(values), dtype=float)
    return bool((values > 0).all() and values.max() / values.min() > factor)


def logarithmic(axis: Axis) -> None:
    """A logarithmic axis with plain numbers: at 1, 2 and 5 of each decade, or at 1 alone over more than three."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_data_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 1000 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axis.set_minor_locator(NullLocator())


def count(number: float) -> str:
    """``10972162`` → ``11.0M``; for labels, where the digits after the third say nothing."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.{0 if scaled >= 100 else 1 if scaled >= 10 else 2}f}{unit}"
    return f"{number:.0f}"


def interval_note(counts: Iterable[int], mark: str = "bars") -> str:
    """What the marks of uncertainty are: ``bars: 95% interval over seeds (n = 5)``; or that one seed has none."""
    counts = {int(number) for number in counts}
    if counts == {1}:
        return "one seed each, so no interval"
    several = sorted(counts - {1})
    n = f"{several[0]}" if len(several) == 1 else f"{several[0]} to {several[-1]}"
    return f"{mark}: 95%\xa0interval over seeds (n\xa0=\xa0{n})" + (", none for a single run" if 1 in counts else "")


def share(value: float) -> str:
    """A share of 0..1 in per cent, never rounded to a nought that it is not."""
    return f"{value:.1%}" if value == 0 or value >= 0.0095 else f"{value:.2%}" if value >= 0.0001 else "<0.01%"


def side_label(figure: Figure, words: str) -> None:
    """A label of the vertical axis that all panels share, in the middle of the body rather than of the whole image."""
    top = figure.get_layout_engine().get()["rect"][3]
    below = 3.5 * BODY / 72 / figure.get_figheight()  # tick labels and axis label of the lowest panel
    figure.supylabel(words, size=BODY, y=(top + below) / 2)


def beside(axes: Axes, y: float, words: str) -> None:
    """Words to the right of the axes, level with the tick label at ``y``."""
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
    """Named rows, the first on top, without a spine or ticks on their side."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
