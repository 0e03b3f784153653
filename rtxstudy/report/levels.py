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


def _empty(cells: Sequence[NotebookNode]) -> tuple[set[int], set[int]]:
    """The positions of the cells of two kinds of sections.

    - Sections that this profile skips: all that they show is empty, or begins with "Skipped". The limits of the report name what
      a profile leaves out.
    - Sections that show something in the appendix alone.

    A section reaches from its heading to the next one, of any level. The title of a notebook and what stands below it stay.
    """
    starts = [n for n, cell in enumerate(cells) if _level(cell)] or [0]
    skipped: set[int] = set()
    apart: set[int] = set()
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        says = {n: any(_says(text) for text in _shown(cells[n])) for n in range(start, end) if _shown(cells[n])}
        if not says or _level(cells[start]) == 1:
            continue
        if not any(says.values()):
            skipped |= {n for n in range(start, end) if not _closes(cells[n])}
        elif not any(said for n, said in says.items() if "appendix" not in tags(cells[n])):
            apart |= set(range(start, end))
    return skipped, apart


def _says(text: str) -> bool:
    """Whether a text shows something: it is not empty, and does not begin with "Skipped"."""
    return bool(text.strip()) and not text.lstrip("*").startswith("Skipped.")


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

    A section that this profile skips is left out, too. A section with nothing to show but cells of the appendix goes there whole,
    and so does a chapter of which only the beginning is left.
    """
    parts, inside = Levels([], [], []), 0  # inside: the level of the heading of an appendix, 0 outside
    skipped, alone = _empty(cells)
    for n, cell in enumerate(cells):
        cell_tags = tags(cell)
        if level := _level(cell):
            inside = level if "appendix" in cell_tags and (not inside or level <= inside) else inside * (level > inside)
        if "notebook-only" in cell_tags or n in skipped:
            continue
        apart = inside or n in alone or (cell.cell_type == "code" and "appendix" in cell_tags)
        (parts.answer if "answer" in cell_tags else parts.appendix if apart else parts.chapter).append(cell)
    left = any(_level(cell) > 1 or any(map(_says, _shown(cell))) for cell in parts.chapter)
    if not left and any(map(_shown, cells)):
        aside = [cell for cell in cells if any(cell is other for other in (*parts.chapter, *parts.appendix))]
        return Levels(parts.answer, [], aside)
    return parts
