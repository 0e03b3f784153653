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


def _skipped(cells: Sequence[NotebookNode]) -> set[int]:
    """The positions of the cells of sections that this profile skips: all that they show is empty, or begins with "Skipped".

    A section reaches from its heading to the next one, of any level. The title of a notebook and what stands below it stay. The
    limits of the report name what a profile leaves out.
    """
    starts = [n for n, cell in enumerate(cells) if _level(cell)] or [0]
    positions: set[int] = set()
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        texts = [text for cell in cells[start:end] for text in _shown(cell)]
        empty = all(not text.strip() or text.lstrip("*").startswith("Skipped.") for text in texts)
        if texts and empty and _level(cells[start]) != 1:
            positions |= {n for n in range(start, end) if not _closes(cells[n])}
    return positions


def _level(cell: NotebookNode) -> int:
    heading = re.match(r"(#+)\s", cell.source) if cell.cell_type == "markdown" else None
    return len(heading[1]) if heading else 0


def _shown(cell: NotebookNode) -> list[str]:
    """What a cell of code shows: each text in Markdown, and a word that stands for anything else."""
    if _closes(cell):
        return []
    return ["".join(output.get("data", {}).get("text/markdown", "something")) for output in cell.get("outputs", [])]


def _closes(cell: NotebookNode) -> bool:
    """Whether a cell shows the provenance of its notebook. It may stand at the end of any section."""
    return any('class="provenance"' in output.get("data", {}).get("text/html", "") for output in cell.get("outputs", []))


def levels(cells: Sequence[NotebookNode]) -> Levels:
    """Sort the cells of a notebook.

    - ``answer``: the cell belongs to the summary.
    - ``appendix`` at a heading: its section belongs to the appendices, up to the next heading of its level or above. At a cell of
      code it moves that cell alone.
    - ``notebook-only``: the cell is left out, because the report says or draws the same in another place.

    A section that this profile skips is left out, too.
    """
    parts, inside = Levels([], [], []), 0  # inside: the level of the heading of an appendix, 0 outside
    skipped = _skipped(cells)
    for n, cell in enumerate(cells):
        cell_tags = tags(cell)
        if level := _level(cell):
            inside = level if "appendix" in cell_tags and (not inside or level <= inside) else inside * (level > inside)
        if "notebook-only" in cell_tags or n in skipped:
            continue
        apart = inside or (cell.cell_type == "code" and "appendix" in cell_tags)
        (parts.answer if "answer" in cell_tags else parts.appendix if apart else parts.chapter).append(cell)
    return parts
