"""Executed notebooks as one HTML file that needs no network."""

from __future__ import annotations

import base64
import gzip
import re
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from nbconvert import HTMLExporter

from rtxlib.atomic import replacing
from rtxlib.errors import InputError
from rtxstudy.report.colophon import citation, colophon
from rtxstudy.report.levels import levels, tags
from rtxstudy.report.outcomes import Outcome
from rtxstudy.report.render import PLOTLY, Page, Render, highlight_code, render_cells

__all__ = ["PLOTLY", "build"]

TEMPLATE = Path(__file__).parent / "template"
# The order of the chapters: where depth pays, the loop on SST-2 and elsewhere, pretraining, other domains, the answer's limits
CHAPTERS = (
    "09_where_depth_pays",
    "12_what_a_loop_costs",
    "02_baseline",
    "03_recurrent",
    "11_what_passes_do",
    "05_width_vs_depth",
    "04_sensitivity",
    "07_pretrained_encoders",
    "06_domain_classification",
)
LARGEST = 6_000_000  # bytes; a report above this is slow to open and to mail


def build(
    executed: Sequence[Path], out: Path, title: str, outcomes: Iterable[Outcome] = (), named: bool = True
) -> Path:
    """Write executed notebooks as one offline page; returns ``out``.

    The output of cells tagged ``answer`` comes first, and appendices come last (:mod:`rtxstudy.report.levels`). The chapters
    between them stand in the order of :data:`CHAPTERS`, the appendices in the order given. ``named``:
    write the names of data sets and models in place of their ids, and how to cite the study. Code and long printed output
    are folded; code of cells tagged ``remove-input`` is left out. A banner names every notebook that is not complete: those
    without a completion marker in ``metadata.rtx``, and those of ``outcomes`` that are not done. The
    file of a skipped notebook comes from an earlier run, so it is left out.

    Raises ``InputError`` when a notebook cannot be read.
    """
    outcomes = list(outcomes)
    skipped = {outcome.name for outcome in outcomes if outcome.status == "skipped"}
    pages = [_read(path) for path in executed if path.stem not in skipped]
    renders = [Render(page, {other.stem for other in pages}, named=named) for page in pages]
    exporter = HTMLExporter(template_file=str(TEMPLATE / "cells.html.j2"), filters={"highlight": highlight_code})
    answers, answer_contents, chapters, appendices = [], [], [], []
    for page, render in zip(pages, renders, strict=True):
        show = partial(render_cells, exporter, render)
        parts = levels(page.notebook.cells)
        answers.append(show(parts.answer))
        answer_contents += render.contents
        for cells, sections in ((parts.chapter, chapters), (parts.appendix, appendices)):
            before = len(render.contents)
            if body := show(cells).strip():
                sections.append({"page": page, "body": body, "contents": render.contents[before:]})
    places = {stem: place for place, stem in enumerate(CHAPTERS)}
    chapters.sort(key=lambda section: places.get(section["page"].stem, len(places)))
    _anchors(chapters, appendices)
    text = exporter.environment.get_template("page.html.j2").render(
        title=title,
        answer="".join(answers).strip(),
        answer_contents=answer_contents,
        chapters=chapters,
        appendices=appendices,
        troubles=_troubles(pages, outcomes),
        style=(TEMPLATE / "page.css").read_text(encoding="utf-8"),
        script=(TEMPLATE / "page.js").read_text(encoding="utf-8"),
        plotly=_plotly() if any(render.charts for render in renders) else "",
        colophon=colophon([(render.page.title, render.provenance) for render in renders if render.provenance]),
        citation=citation() if named else "",
    )
    with replacing(out) as part:
        part.write_text(text, encoding="utf-8")
    if (size := out.stat().st_size) > LARGEST:
        print(f"{out.name} is {size / 1e6:.1f} MB; figures as smaller SVG or PNG would bring it down.", file=sys.stderr)
    return out


def _read(path: Path) -> Page:
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise InputError(f"{path} cannot be read as an executed notebook: {error}.") from None
    notebook.cells = [cell for cell in notebook.cells if "papermill-error-cell-tag" not in tags(cell)]
    record = notebook.metadata.get("rtx", {})
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"^#[ \t]+(.+?)\s*$", prose, re.M)
    return Page(
        stem=path.stem,
        notebook=notebook,
        title=re.sub(r"[`*$]", "", heading[1]) if heading else re.sub(r"^\d+_|_", " ", path.stem).strip(),
        titled=heading is not None,
        completed=record.get("completed") is True,
        error=record.get("error"),
    )


def _anchors(chapters: list[dict[str, Any]], appendices: list[dict[str, Any]]) -> None:
    """Give each section its anchor: the stem of its notebook, or another one where that notebook has a chapter, too."""
    stems = {section["page"].stem for section in chapters}
    for section in (*chapters, *appendices):
        stem = section["page"].stem
        section["anchor"] = f"{stem}-appendix" if section in appendices and stem in stems else stem
        section["whole"] = section["anchor"] == stem  # it begins with the title of the notebook


def _troubles(pages: Sequence[Page], outcomes: Iterable[Outcome]) -> list[dict[str, str | bool]]:
    """The lines of the banner: a notebook, its outcome, and whether it is in the report."""
    here = {page.stem for page in pages}
    words = {page.stem: page.error or "did not run to its end" for page in pages if not page.completed}
    words |= {o.name: f"{o.status}: {o.error}" for o in outcomes if o.status != "done"}
    return [{"stem": stem, "what": words[stem], "here": stem in here} for stem in sorted(words)]


def _plotly() -> str:
    """plotly.js as gzip in Base64, which page.js unpacks: the library is as large as the rest of a report."""
    from plotly.offline import get_plotlyjs  # here, because only a report with charts needs it

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
