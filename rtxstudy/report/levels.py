"""The levels of the report: the summary, the chapters, and the appendices. The tags of a notebook's cells decide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from nbformat import NotebookNode


class Levels(NamedTuple):
    """The cells of one notebook by level, each in the order of the notebook."""

    answer: list[NotebookNode]
    chapter: list[NotebookNode]
    appendix: list[NotebookNode]


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def levels(cells: Sequence[NotebookNode]) -> Levels:
    """Sort the cells of a notebook.

    - ``answer``: the cell belongs to the summary.
    - ``appendix`` at a heading: its section belongs to the appendices, up to the next heading of its level or above.
    - ``notebook-only``: the cell is left out, because the report says or draws the same in another place.
    """
    found, inside = Levels([], [], []), 0  # inside: the level of the heading of an appendix, 0 outside
    for cell in cells:
        own = tags(cell)
        heading = re.match(r"(#+)\s", cell.source) if cell.cell_type == "markdown" else None
        if heading:
            level = len(heading[1])
            inside = level if "appendix" in own and (not inside or level <= inside) else inside * (level > inside)
        if "notebook-only" in own:
            continue
        (found.answer if "answer" in own else found.appendix if inside else found.chapter).append(cell)
    return found
