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


def _sections(cells: Sequence[NotebookNode]) -> list[str | None]:
    """For each cell where its section sends it, whatever the tags say, and None where they decide.

    - ``nowhere``: this profile skips the section. All that it shows is empty, or begins with "Skipped". The limits of the report
      name what a profile leaves out.
    - ``appendix``: cells of the appendix are the only ones that show something.

    A section reaches from its heading to the next one, of any level. The title of a notebook and what stands below it stay.
    """
    starts = [n for n, cell in enumerate(cells) if _level(cell)] or [0]
    sent: list[str | None] = [None] * len(cells)
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        section = cells[start:end]
        if _level(section[0]) == 1 or not any(map(_shown, section)):
            continue
        telling = [cell for cell in section if any(map(_says, _shown(cell)))]
        if not telling:
            sent[start:end] = [None if _closes(cell) else "nowhere" for cell in section]
        elif all("appendix" in tags(cell) for cell in telling):
            sent[start:end] = ["appendix"] * len(section)
    return sent


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
    places, inside = [], 0  # inside: the level of the heading of an appendix, 0 outside
    for cell, sent in zip(cells, _sections(cells), strict=True):
        cell_tags = tags(cell)
        if level := _level(cell):
            inside = level if "appendix" in cell_tags and (not inside or level <= inside) else inside * (level > inside)
        if "notebook-only" in cell_tags:
            sent = "nowhere"
        elif "answer" in cell_tags and sent != "nowhere":
            sent = "answer"
        elif not sent:
            sent = "appendix" if inside or (cell.cell_type == "code" and "appendix" in cell_tags) else "chapter"
        places.append(sent)
    chapter = [cell for cell, place in zip(cells, places, strict=True) if place == "chapter"]
    if any(map(_shown, cells)) and not any(_level(cell) > 1 or any(map(_says, _shown(cell))) for cell in chapter):
        places = ["appendix" if place == "chapter" else place for place in places]
    return Levels(*([cell for cell, place in zip(cells, places, strict=True) if place == part] for part in Levels._fields))
