"""One sentence and the answer of a recurrent encoder to it after each pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.looks import FAINT, GREY, OKABE, on
from rtxstudy.figures.style import BODY, PAD, WIDE, canvas, styled
from rtxstudy.figures.wrapping import extent

_COLOURS = {"positive": OKABE["blue"], "negative": OKABE["vermillion"]}
_SHADE = np.array(to_rgb(OKABE["purple"]))

# Lengths in points.
_PAGE = WIDE * 72 - 2 * PAD
_NAME, _BARS = 46.0, 212.0  # the width of "pass 1", and of the bars
_LINE, _AIR = 18.0, 12.0  # from one line of words to the next, and between two passes
_HEAD = 20.0  # above the first pass
_CHIP = 3.0  # on both sides of a word
_THICK = 17.0  # of a bar


@styled
def passes_strip(table: pd.DataFrame, title: str = "What does the encoder answer after each pass?") -> Figure:
    """A row for each pass: the words of the sentence, and the probability of its answer as a bar to the label's side.

    A word is the darker the more [CLS] looks at it in this pass. ``table``: ``pass``, ``positive``, ``place``, ``word`` and
    ``attention``, as :func:`rtxstudy.pages.passes.answers` computes them. Raises ``InputError`` for a missing column, an
    empty table, or a word that stands twice in one place.
    """
    require(table, ("pass", "positive", "place", "word", "attention"), "passes_strip")
    one_row_each(table, ("pass", "place"), "passes_strip")
    words = table.drop_duplicates("place").sort_values("place")["word"]
    spots = _spots(list(words), _PAGE - _NAME - _BARS - 12)
    lines = 1 + max(line for line, _, _ in spots)
    row = _LINE * lines + _AIR
    passes = sorted(table["pass"].unique())
    height = _HEAD + row * len(passes)
    figure, axes = canvas(
        title,
        "A word is the darker the more [CLS], the vector that is read in the end, looks at it in this pass.",
        (height + 2 * PAD) / 72,
        width=WIDE,
    )
    ax = axes[0, 0]
    ax.set(xlim=(0, _PAGE), ylim=(0, height), aspect="equal")
    ax.axis("off")
    zero = _PAGE - _BARS / 2
    for arrow, shift, edge in (("← negative", -5, "right"), ("positive →", 5, "left")):
        ax.text(zero + shift, height - 4, arrow, color=GREY, ha=edge, va="top")
    ax.plot([zero, zero], [0, height - _HEAD], color=GREY, linewidth=0.8, zorder=3)
    most = table["attention"].max()
    for k, number in enumerate(passes):
        part = table[table["pass"] == number].sort_values("place")
        top = height - _HEAD - k * row
        if k:
            ax.plot([0, _PAGE], [top, top], color=FAINT, linewidth=0.8, zorder=0)
        middle = top - row / 2
        ax.text(0, middle, f"pass {number}", va="center_baseline", weight="bold")
        for (line, x, width), word in zip(spots, part.itertuples(index=False), strict=True):
            y = middle + (lines - 1) * _LINE / 2 - line * _LINE
            _chip(ax, _NAME + x, y, width, word.word, word.attention / most)
        _bar(ax, zero, middle, part["positive"].iloc[0])
    return figure


def alt(table: pd.DataFrame) -> str:
    """The alternative text of the figure: the sentence, and the answer after each pass."""
    first = table[table["pass"] == table["pass"].min()].sort_values("place")
    after = table.drop_duplicates("pass").sort_values("pass")
    answers = [
        f"{label} with {share:.1%} after pass {number}".replace("%", " %")
        for number, (label, share) in zip(after["pass"], map(_answer, after["positive"]), strict=True)
    ]
    listed = f"{', '.join(answers[:-1])} and {answers[-1]}" if len(answers) > 1 else answers[0]
    return f"The answer to the sentence “{' '.join(first['word'])}” is {listed}."


def _answer(positive: float) -> tuple[str, float]:
    """The likelier label and its probability."""
    return ("positive", positive) if positive >= 0.5 else ("negative", 1 - positive)


def _spots(words: list[str], room: float) -> list[tuple[int, float, float]]:
    """For each word its line, its left edge and its width, in lines of at most ``room`` points."""
    spots, line, x = list[tuple[int, float, float]](), 0, 0.0
    for word in words:
        width = extent(word, BODY)[0] + 2 * _CHIP
        if x and x + width > room:
            line, x = line + 1, 0.0
        spots.append((line, x, width))
        x += width + 1.5
    return spots


def _chip(ax: Axes, x: float, y: float, width: float, word: str, strength: float) -> None:
    """A word on a shade: white for strength 0, the full colour for 1."""
    colour = to_hex(1 - strength * (1 - _SHADE))
    style = "round,pad=0,rounding_size=3"
    ax.add_patch(FancyBboxPatch((x, y - 7.5), width, 15, boxstyle=style, facecolor=colour, edgecolor="none"))
    ax.text(x + width / 2, y, word, color=on(colour), ha="center", va="center_baseline")


def _bar(ax: Axes, zero: float, y: float, positive: float) -> None:
    """The answer as a bar from ``zero`` to the side of its label, and in words on the other side."""
    label, share = _answer(positive)
    sign = 1 if label == "positive" else -1
    long = sign * (2 * share - 1) * (_BARS / 2 - 2)
    ax.add_patch(Rectangle((zero, y - _THICK / 2), long, _THICK, facecolor=_COLOURS[label], edgecolor="none", zorder=2))
    words = f"{label} {100 * share:.1f} %"
    ax.text(zero - 5 * sign, y, words, ha="right" if sign > 0 else "left", va="center_baseline", weight="bold")
