"""The size of a string in points, and strings broken into lines."""

from __future__ import annotations

from functools import cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path


@cache
def extent(text: str, size: float, weight: str = "normal") -> tuple[float, float]:
    """Width and height in points of a string, which may have several lines."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    lines = text.split("\n")
    widths = [text_to_path.get_text_width_height_descent(line or " ", font, ismath=False)[0] for line in lines]
    return 1.015 * max(widths), size * 1.2 * len(lines)  # drawn glyphs are hinted a little wider than their outlines


def wrap(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Break a string at spaces into as few lines of at most ``width`` points as possible, of similar lengths.

    Line breaks in the string are kept. A no-break space is not a place to break.
    """
    lines: list[str] = []
    for paragraph in filter(None, text.split("\n")):
        filled = _fill(paragraph, width, size, weight)
        for share in range(60, 100, 4):  # the narrowest width that needs no more lines leaves no single word at the end
            narrow = _fill(paragraph, width * share / 100, size, weight)
            if len(narrow) == len(filled) and all(extent(line, size, weight)[0] <= width for line in narrow):
                filled = narrow
                break
        lines += filled
    return lines


def _fill(paragraph: str, width: float, size: float, weight: str) -> list[str]:
    """Greedy lines: each holds as many words as fit into ``width`` points."""
    lines, line = [], ""
    for word in paragraph.split(" "):
        longer = f"{line} {word}" if line else word
        if line and extent(longer, size, weight)[0] > width:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line]
