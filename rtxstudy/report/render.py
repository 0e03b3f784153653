"""The cells of one executed notebook as HTML."""

from __future__ import annotations

import base64
import html
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bs4 import BeautifulSoup, Tag
from latex2mathml.converter import convert as latex_to_mathml
from nbconvert import HTMLExporter
from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
SHORT, KEPT = 15, 40  # lines of printed output: shown openly up to SHORT; folded above, the last KEPT of them

_NUMBER = re.compile(r"[\[(<>≈~±+−-]*\s*[\d.][\d\s.,eE%×±+−–:/()\[\]-]*(?:ms|s|h|MB|GB|M|k|pp|points?)?")
_NOTHING = {"", "–", "—", "-", "nan", "NaN", "None", "<NA>", "NaT"}


@dataclass
class Page:
    """One executed notebook and what is said about it as a whole."""

    stem: str
    notebook: NotebookNode
    title: str
    titled: bool  # by a heading of its own
    completed: bool
    error: str | None

    @property
    def number(self) -> str:
        return self.stem.partition("_")[0] if self.stem[:1].isdigit() else ""


def tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def highlight_code(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    return highlight(source, get_lexer_by_name("ipython3"), HtmlFormatter(nowrap=True))


def render_cells(exporter: HTMLExporter, render: Render, cells: Sequence[NotebookNode]) -> str:
    """Cells through the nbconvert template; the rendering of each is done beforehand and laid out by the template."""
    shown: list[dict[str, Any]] = []
    for cell in cells:
        if cell.cell_type == "markdown":
            shown.append({"kind": "text", "html": render.markdown(cell.source, cell.get("attachments"))})
        elif cell.cell_type == "code" and (cell.source.strip() or cell.outputs):
            failed = any(output.output_type == "error" for output in cell.outputs)
            code = {
                "kind": "code",
                "what": "Parameters" if {"parameters", "injected-parameters"} & set(tags(cell)) else "Code",
                "source": "" if "remove-input" in tags(cell) else cell.source,
                "count": f"[{cell.execution_count}]" if cell.execution_count else "not run",
                "outputs": render.outputs(cell),
                "anchor": f"{render.page.stem}-failed" if failed else None,
            }
            if not (code["source"] or code["outputs"]):
                continue
            last = shown[-1] if shown else {}
            if last.get("what") == code["what"] and not last["outputs"]:  # silent cells share a fold with the next
                code["source"] = f"{last['source']}\n\n{code['source']}".strip()
                first = last["count"].partition(" – ")[0]
                code["count"] = first if first == code["count"] else f"{first} – {code['count']}"
                shown.pop()
            shown.append(code)
    notebook = NotebookNode(cells=[NotebookNode(item) for item in shown], metadata=NotebookNode())
    return exporter.template.render(nb=notebook)


class _Markdown(IPythonRenderer):
    """Markdown of one notebook: MathML, headings one level down with ids of their own, links within the report."""

    def __init__(self, render: Render, attachments: dict[str, Any] | None) -> None:
        super().__init__(escape=False, exclude_anchor_links=True, attachments=attachments)
        self.render = render

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        anchor = self.render.anchor(re.sub(r"<[^>]+>", "", text).strip(), level)
        level = min(level + 1, 6)  # the page has its own h1
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        other = re.fullmatch(r"(?:\./)?([\w-]+)\.ipynb(?:#.*)?", url)
        if other and other[1] in self.render.stems:
            url = f"#{other[1]}"
        elif url.startswith("#"):
            url = f"#{self.render.page.stem}-{_slug(url)}"
        elif "://" not in url and not url.startswith("mailto:"):
            return text  # a file beside the notebook; the report may be read anywhere
        return super().link(text, url, title)

    def inline_math(self, body: str) -> str:
        return self.render.mathml(body, "inline")

    def block_math(self, body: str) -> str:
        return self.render.mathml(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return self.render.mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


@dataclass
class Render:
    """Turns what one notebook holds into HTML, and remembers its headings and charts."""

    page: Page
    stems: set[str]
    contents: list[tuple[str, str]] = field(default_factory=list)  # (anchor, words) of its second-level headings
    anchors: set[str] = field(default_factory=set)
    charts: int = 0

    def anchor(self, words: str, level: int) -> str:
        slug = f"{self.page.stem}-{_slug(words)}"
        unique, number = slug, 2
        while unique in self.anchors:
            unique, number = f"{slug}-{number}", number + 1
        self.anchors.add(unique)
        if level == 2:
            self.contents.append((unique, words))
        return unique

    def markdown(self, source: str, attachments: dict[str, Any] | None = None) -> str:
        return self.clean(MarkdownWithMath(renderer=_Markdown(self, attachments)).render(source))

    def mathml(self, formula: str, display: str) -> str:
        """A formula as MathML; its source, marked, where the converter does not know a command in it."""
        body = re.sub(r"\\(begin|end)\{(aligned|align)\}", r"\\\1{align*}", formula.strip())  # unnumbered, and known
        try:
            mathml = latex_to_mathml(body, display=display)
        except Exception as error:  # it raises a dozen kinds, bare IndexError among them
            mathml = f"\\{type(error).__name__}"
        if re.search(r"\\[A-Za-z]", mathml):
            source = formula.strip()
            print(f"{self.page.stem}: the formula {source!r} cannot be set; its source is shown.", file=sys.stderr)
            return f'<code class="unset" title="This formula could not be set">{html.escape(source)}</code>'
        # \mathrm{softmax} comes as seven identifiers, which are set as seven variables side by side
        letters = r'(?:<mi mathvariant="normal">[^<]</mi>){2,}'
        joined = re.sub(letters, lambda run: f"<mi>{re.sub('<[^>]+>', '', run[0])}</mi>", mathml)
        joined = re.sub(r"<mo>([A-Za-z]{2,})</mo>", r"<mi>\1</mi>", joined)  # a name needs no space before its bracket
        return f'<div class="formula" tabindex="0">{joined}</div>' if display == "block" else joined

    def outputs(self, cell: NotebookNode) -> list[str]:
        """The outputs of a code cell in order; what it printed is gathered into one block for each stream."""
        streams: dict[str, str] = {}
        for output in cell.outputs:
            if output.output_type == "stream":
                streams[output.name] = streams.get(output.name, "") + output.text
        shown = []
        for output in cell.outputs:
            if output.output_type == "stream":
                if text := streams.pop(output.name, ""):
                    shown.append(_stream(output.name, text))
            elif output.output_type == "error":
                shown.append(_error(output))
            else:
                kind = next((kind for kind in SHOWN if kind in output.data), None)
                if kind:
                    shown.append(SHOWN[kind](self, output, cell))
        return [text for text in shown if text]

    def chart(self, output: NotebookNode, cell: NotebookNode) -> str:
        self.charts += 1
        spec = output.data[PLOTLY]
        layout = spec.get("layout", {})
        words = (layout.get("meta") or {}).get("alt") or (layout.get("title") or {}).get("text") or self.unnamed(cell)
        words = re.sub(r"<[^>]+>", " ", words)
        data = json.dumps({"data": spec.get("data", []), "layout": layout}).replace("</", "<\\/")
        return (
            f'<figure class="chart"><div class="plot" role="img" aria-label="{html.escape(words)}"></div>'
            f'<script type="application/json">{data}</script></figure>'
        )

    def image(self, kind: str, output: NotebookNode, cell: NotebookNode) -> str:
        data = output.data[kind]
        text = "".join(data) if isinstance(data, list) else data
        source = f"data:{kind};base64,{text.strip()}" if kind != "image/svg+xml" else _svg(text)
        alt = output.metadata.get("alt") or cell.metadata.get("alt") or self.unnamed(cell)
        width = (output.metadata.get(kind) or {}).get("width")  # set for figures drawn at twice their size
        size = f' width="{int(width)}"' if width else ""
        return f'<figure><img alt="{html.escape(alt)}" src="{source}"{size}></figure>'

    def unnamed(self, cell: NotebookNode) -> str:
        return f"Figure of notebook {self.page.stem}, cell {cell.execution_count}"

    def clean(self, text: str) -> str:
        """Markup of a notebook made fit for the page: tables in boxes that scroll, nothing that would be fetched."""
        if "<" not in text:
            return text
        soup = BeautifulSoup(text, "html.parser")
        for tag in soup.find_all(True):
            outside = next((str(tag[name]) for name in _FETCHES.get(tag.name, ()) if _outside(tag.get(name))), None)
            if outside:
                print(f"{self.page.stem}: {outside} lies outside the report and was left out.", file=sys.stderr)
                note = soup.new_tag("span", attrs={"class": "missing"})
                note.string = f"[left out: {outside} lies outside this file]"
                tag.replace_with(note)
        for table in soup.find_all("table"):
            _table(soup, table)
        return str(soup)


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", html.unescape(words).lower()).strip("-")


_FETCHES = {  # what a browser loads by itself, by tag
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "link": ("href",),
    "object": ("data",),
    **dict.fromkeys(("script", "iframe", "audio", "embed", "input", "track"), ("src",)),
}


def _outside(address: Any) -> bool:
    return bool(address) and not str(address).startswith(("data:", "#"))


def _table(soup: BeautifulSoup, table: Tag) -> None:
    """Numbers to the right, pandas' own markup away, and a box of its own to scroll in."""
    for style in table.find_all_previous("style", attrs={"scoped": True}):
        style.decompose()
    del table["border"]
    head = table.thead.find_all("tr") if table.thead else []
    if len(head) == 2:  # pandas gives the names of an index a row of their own; there is room beside the columns' names
        above, below = (row.find_all("th") for row in head)
        words = [{cell.get_text(strip=True) for cell in pair} - {""} for pair in zip(above, below, strict=False)]
        if len(above) == len(below) and all(len(both) <= 1 for both in words):
            for cell, both in zip(above, words, strict=True):
                cell.string = "".join(both)
            head[1].decompose()
    rows = table.find_all("tr")
    for row in rows:
        del row["style"]  # pandas aligns its head to the right, words included
    # counted from the right, because the cells of an index may span rows
    cells: dict[int, list[Tag]] = {}
    for row in rows:
        for position, cell in enumerate(reversed(row.find_all(["td", "th"]))):
            cells.setdefault(position, []).append(cell)
    for column in cells.values():
        values = [cell.get_text(strip=True) for cell in column if cell.name == "td"]
        told = [value for value in values if value not in _NOTHING]
        numbers = bool(told) and all(_NUMBER.fullmatch(value) for value in told)
        kind = "number" if numbers else "long" if any(len(value) > 40 for value in told) else None
        for cell in column if kind else ():
            cell["class"] = [*cell.get("class", []), kind]
    box = soup.new_tag("div", attrs={"class": "table", "tabindex": "0", "role": "region", "aria-label": "Table"})
    table.wrap(box)


def _stream(name: str, text: str) -> str:
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.rstrip("\n").split("\n")]  # as a terminal ends up
    body = f"<pre>{ansi2html(chr(10).join(lines[-KEPT:]))}</pre>"
    if name == "stdout" and len(lines) <= SHORT:
        return f'<div class="printed">{body}</div>'
    what = "Messages" if name == "stderr" else "Printed"
    count = f"{len(lines)} line{'s' * (len(lines) > 1)}" + (f", the last {KEPT} here" if len(lines) > KEPT else "")
    return f'<details class="printed"><summary>{what}: {count}</summary>{body}</details>'


def _error(output: NotebookNode) -> str:
    words = html.escape(f"{output.ename}: {output.evalue}".rstrip(": "))
    trace = ansi2html("\n".join(output.traceback))
    return (
        f'<div class="error" role="note"><p><strong>This cell failed.</strong> {words}</p>'
        f"<details open><summary>Traceback</summary><pre>{trace}</pre></details></div>"
    )


def _svg(text: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode("ascii")


def _html(render: Render, output: NotebookNode, cell: NotebookNode) -> str:
    text = output.data["text/html"]
    return "" if re.search(r"plotly\.js v\d", text) else f'<div class="rich">{render.clean(text)}</div>'


def _prose(text: str) -> str:
    return f'<div class="prose">{text}</div>'


# What an output is shown as: the first of these that it holds.
SHOWN: dict[str, Callable[[Render, NotebookNode, NotebookNode], str]] = {
    PLOTLY: Render.chart,
    "text/html": _html,
    "image/svg+xml": lambda render, output, cell: render.image("image/svg+xml", output, cell),
    "image/png": lambda render, output, cell: render.image("image/png", output, cell),
    "image/jpeg": lambda render, output, cell: render.image("image/jpeg", output, cell),
    WIDGET: lambda render, output, cell: "",  # it needs a kernel; a progress bar says no more than where it began
    "text/markdown": lambda render, output, cell: _prose(render.markdown(output.data["text/markdown"])),
    "text/latex": lambda render, output, cell: render.mathml(output.data["text/latex"].strip().strip("$"), "block"),
    "text/plain": lambda render, output, cell: f'<pre class="plain">{html.escape(output.data["text/plain"])}</pre>',
}
