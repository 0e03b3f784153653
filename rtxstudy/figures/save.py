"""Saving a figure: SVG, PDF, PNG and the table behind it under one name, and the HTML that shows it."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from rtx.cli.output import inert
from rtxlib.atomic import replacing
from rtxlib.errors import InputError
from rtxstudy.figures.style import WIDTH
from rtxstudy.names import said

MOST_SVG = 60_000  # bytes; a larger drawing is shown as PNG, so that a report of many figures stays small
NOTHING = "Nothing in this figure is larger than the noise. (A difference of fewer than three seeds does not count.)"
_METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}}
_DOTS = 200  # per inch
_SHOWN = 105  # pixels of a page for an inch, so that type of 10 points has the size of a caption
# In a notebook a click shows the figure as large as the screen, and the next one as before. A report has a way of its own.
_ENLARGE = (
    "this.closest('.enlarge, dialog') || (document.fullscreenElement ? document.exitFullscreen() : this.requestFullscreen())"
)


@dataclass(frozen=True)
class Drawing:
    """A figure with what is saved beside it: what a question draws, and :meth:`rtxstudy.study.Study.show` shows."""

    figure: Figure
    stem: str  # of its files, with the number of its notebook: "06_unified"
    numbers: pd.DataFrame  # what it draws
    alt: str  # what stands where; its title is put before it
    caption: str | None = None
    finds: bool = True  # False folds it away behind a line that says that it finds nothing


@dataclass(frozen=True)
class Shown:
    """A saved figure. As the last expression of a cell it is shown, with its alt text."""

    folder: Path
    stem: str
    alt: str
    caption: str | None = None
    finds: bool = True  # False: nothing in it is larger than the noise, so the report folds it
    width: float = WIDTH  # inches

    def __repr__(self) -> str:  # without the folder, so that an executed notebook holds no path of a machine
        return f"{self.stem}: {self.alt}"

    def _repr_html_(self) -> str:
        kind, mime = "svg", "image/svg+xml"
        if (self.folder / f"{self.stem}.svg").stat().st_size > MOST_SVG:
            kind, mime = "png", "image/png"
        data = base64.b64encode((self.folder / f"{self.stem}.{kind}").read_bytes()).decode()
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        size = f'width="{_SHOWN * self.width:.0f}" style="cursor: zoom-in" onclick="{_ENLARGE}"'
        image = f'<img alt="{html.escape(self.alt)}" src="data:{mime};base64,{data}" {size}>'
        wide = ' class="wide"' if self.width > WIDTH else ""
        figure = f"<figure{wide}>{image}{caption}</figure>"
        return figure if self.finds else f"<details><summary>{NOTHING}</summary>{figure}</details>"


def save(
    figure: Figure, stem: str, table: pd.DataFrame, folder: Path, alt: str, caption: str | None = None, finds: bool = True
) -> Shown:
    """Write ``stem``.svg, .pdf, .png (200 dots per inch) and .csv (``table``, the figure's numbers) into ``folder``.

    The same figure and table give the same bytes in every run: the files hold no dates, and names in the SVG are
    hashes with a fixed salt. Each file is written whole or not at all. Closes the figure. Raises ``InputError``
    without an alt text, or for a stem that is a path.
    """
    if not alt.strip():
        raise InputError(f"Figure '{stem}' needs an alt text: one or two sentences that say what it shows.")
    if Path(stem).name != stem:
        raise InputError(f"A figure's stem is a plain file name, not '{stem}'.")
    settings = {"svg.hashsalt": "rtxlib", "svg.fonttype": "path", "pdf.fonttype": 42}
    for text in figure.findobj(Text):
        if (named := said(text.get_text())) != text.get_text():
            text.set_text(named)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # one layout for all three files
    with mpl.rc_context(settings):
        for kind, metadata in _METADATA.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=_DOTS, metadata=metadata, facecolor="white")
            _write(folder / f"{stem}.{kind}", buffer.getvalue())
        _write(folder / f"{stem}.png", _with_palette(figure))
    safe, _ = inert(table)  # the labels of a user's file may begin like a formula of a spreadsheet
    _write(folder / f"{stem}.csv", safe.to_csv(index=False, float_format="%.10g", lineterminator="\n").encode())
    plt.close(figure)
    return Shown(folder, stem, alt, caption, finds, figure.get_figwidth())


def _with_palette(figure: Figure) -> bytes:
    """The figure as a PNG with 256 colours, which are enough for lines and letters."""
    pixels = io.BytesIO()
    figure.savefig(pixels, format="rgba", dpi=_DOTS, facecolor="white")
    size = tuple(int(inches * _DOTS) for inches in figure.get_size_inches())
    small = io.BytesIO()
    image = Image.frombytes("RGBA", size, pixels.getvalue()).convert("RGB")
    image.quantize(256, dither=Image.Dither.NONE).save(small, "PNG", optimize=True, dpi=(_DOTS, _DOTS))
    return small.getvalue()


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as part:
        part.write_bytes(data)
