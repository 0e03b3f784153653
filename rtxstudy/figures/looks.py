"""Colours and marks: how each model is drawn, and which colours can be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D

INK, GREY, FAINT = "#1f1f1f", "#5c5c5c", "#e3e3e3"
_OKABE_ITO = ("black", "orange", "sky", "green", "yellow", "blue", "vermillion", "purple")
OKABE = dict(zip(_OKABE_ITO, map(to_hex, mpl.color_sequences["okabe_ito"]), strict=True))
DASHED, DOTTED, DASH_DOT = (0, (4, 2.5)), (0, (1.2, 1.6)), (0, (6, 1.8, 1.2, 1.8))  # of lines for reference
LINES = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))  # of lines through data


class Look(NamedTuple):
    """How a model is drawn. Colour and marker show its family; shade and line differ within the family."""

    family: str
    colour: str
    marker: str
    shade: str
    line: str | tuple


# A model belongs to the first family that has a word in its name.
_FAMILIES = (
    ("unshared", ("unshared",), OKABE["purple"], "s"),
    ("recurrent", ("recurrent",), OKABE["vermillion"], "D"),
    ("standard", ("standard",), OKABE["blue"], "o"),
    ("classical", ("tf-idf", "majority", "n-gram", "nb-svm", "bag of embeddings"), GREY, "X"),
    ("pretrained", ("minilm", "modernbert"), OKABE["green"], "P"),
    ("bert", ("bert",), OKABE["orange"], "v"),
    ("other", ("",), OKABE["black"], "^"),
)


def looks(models: Iterable[str]) -> dict[str, Look]:
    """A look for each model name: colour and marker by its family, shade and line by its order in the family."""
    rank, look_of = dict[str, int](), dict[str, Look]()
    for name in dict.fromkeys(models):
        family, _, colour, marker = next(f for f in _FAMILIES if any(word in name.lower() for word in f[1]))
        place = rank[family] = rank.get(family, -1) + 1
        shade = tuple(c + (1 - c) * 0.17 * (place % 4) for c in to_rgb(colour))  # lighter, and still visible on white
        look_of[name] = Look(family, colour, marker, to_hex(shade), LINES[place % 4])
    return look_of


FORMS = {  # of the residual: colour, line, marker. Yellow cannot be seen on white, so black has two forms.
    "none": (OKABE["black"], "-", "o"),
    "every": (OKABE["vermillion"], "-", "D"),
    "from_second": (OKABE["orange"], (0, (5, 1.6)), "s"),
    "learned": (OKABE["green"], "-", "^"),
    "damped": (OKABE["blue"], "-", "v"),
    "gated": (OKABE["sky"], (0, (5, 1.6)), "P"),
    "loop_norm": (OKABE["purple"], "-", "X"),
    "input_injection": (OKABE["black"], (0, (1.2, 1.4)), "d"),
}


def loop_looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name: a form of the residual has the look of :data:`FORMS`, a model that of its family."""
    look_of = looks(names)
    for name in look_of.keys() & FORMS.keys():
        colour, line, marker = FORMS[name]
        look_of[name] = Look(name, colour, marker, colour, line)
    return look_of


def contrast(one: str | tuple, other: str | tuple) -> float:
    """Contrast ratio of two colours, 1 to 21. Text needs at least 4.5 (WCAG 2.2, success criterion 1.4.3)."""

    def luminance(colour: str | tuple) -> float:
        rgb = np.asarray(to_rgb(colour))
        return float(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def ink(colour: str | tuple) -> str:
    """The colour, darkened until text in it can be read on white."""
    rgb = np.asarray(to_rgb(colour))
    while contrast(tuple(rgb), "white") < 4.5:
        rgb = rgb * 0.96
    return to_hex(rgb)


def on(background: str | tuple) -> str:
    """The colour of text on this background: ink or white, the one with more contrast."""
    return max((INK, "white"), key=lambda text: contrast(text, background))


def short(model: str) -> str:
    """``standard-6x384`` → ``6×384``. Colour, marker and key already show the family."""
    head, _, tail = model.partition("-")
    return re.sub(r"(?<=\d)x(?=\d)", "×", tail) if head in ("standard", "recurrent") and tail[:1].isdigit() else model


_KEY_WORDS = {
    "standard": "standard, layers × width",
    "recurrent": "recurrent, layers × passes × width",
    "unshared": "recurrent, not shared",
    "classical": "no neural network",
    "pretrained": "pretrained, then fine-tuned",
    "bert": "BERT's layers, from scratch",
    "other": "other",
}


def family_key(models: Iterable[str]) -> list[Line2D]:
    """The key of markers and short names: one handle for each family among the models."""
    present = {look.family: look for look in reversed(looks(models).values())}
    return [
        Line2D([], [], color=present[f].colour, marker=present[f].marker, linestyle="none", markersize=6.5, label=words)
        for f, words in _KEY_WORDS.items()
        if f in present
    ]


def square(colour: str, words: str, marker: str = "s", size: float = 8.0) -> Line2D:
    """The handle of a colour in a key."""
    return Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=size, label=words)
