"""The cells of one executed notebook as HTML."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from nbconvert import HTMLExporter
from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from rtxstudy.report.formulas import mathml
from rtxstudy.report.levels import tags
from rtxstudy.report.markup import clean

PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
SHORT, KEPT = 15, 40  # lines of printed output: up to SHORT are shown; more are folded, and the last KEPT are kept


@dataclass
class Page:
    """One executed notebook, with its title and whether it is complete."""

    stem: str
    notebook: NotebookNode
    title: str
    titled: bool  # whether the title is a heading of the notebook
    completed: bool
    error: str | None

    @property
    def number(self) -> str:
        return self.stem.partition("_")[0] if self.stem[:1].isdigit() else ""


def highlight_code(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    return highlight(source, get_lexer_by_name("ipython3"), HtmlFormatter(nowrap=True))


def render_cells(exporter: HTMLExporter, render: Render, cells: Sequence[NotebookNode]) -> str:
    """Cells as HTML: each is rendered here, and the nbconvert template lays them out.

    What a cell shows stands in its place. The code of all of them is folded at the end, so that it does not part the text; a
    cell that failed keeps its code beside it.
    """
    parts: list[dict[str, Any]] = []
    folded: dict[str, dict[str, Any]] = {}  # "Parameters", "Code" → the fold
    for cell in cells:
        if cell.cell_type == "markdown":
            parts.append({"kind": "text", "html": render.markdown(cell.source, cell.get("attachments"), prose=True)})
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
            if code["source"] and not failed:
                fold = folded.setdefault(code["what"], code | {"outputs": [], "source": "", "first": code["count"]})
                fold["source"] = f"{fold['source']}\n\n{code['source']}".strip()
                fold["count"] = code["count"] if code["count"] == fold["first"] else f"{fold['first']} – {code['count']}"
                code["source"] = ""
            if code["source"] or code["outputs"]:
                parts.append(code)
    parts += folded.values()
    notebook = NotebookNode(cells=[NotebookNode(item) for item in parts], metadata=NotebookNode())
    return exporter.template.render(nb=notebook)


class _Markdown(IPythonRenderer):
    """Markdown of one notebook: MathML, headings one level lower and with unique ids, links within the report."""

    def __init__(self, render: Render, attachments: dict[str, Any] | None) -> None:
        super().__init__(escape=False, exclude_anchor_links=True, attachments=attachments)
        self.render = render

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        anchor = self.render.anchor(re.sub(r"<[^>]+>", "", text).strip(), level)
        level = min(level + 1, 6)  # the page has its own h1
        link = f'<a class="anchor" href="#{anchor}" aria-label="Link to this heading">#</a>'
        return f'<h{level} id="{anchor}">{text} {link}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        other = re.fullmatch(r"(?:\./)?([\w-]+)\.ipynb(?:#(.*))?", url)
        if other and other[1] in self.render.stems:
            url = f"#{other[1]}-{_slug(unquote(other[2]))}" if other[2] else f"#{other[1]}"
        elif url.startswith("#"):
            url = f"#{self.render.page.stem}-{_slug(unquote(url))}"
        elif "://" not in url and not url.startswith("mailto:"):
            return text  # a link to a file beside the notebook, which a reader of the report may not have
        return super().link(text, url, title)

    def inline_math(self, body: str) -> str:
        return mathml(body, "inline", self.render.page.stem)

    def block_math(self, body: str) -> str:
        return mathml(body, "block", self.render.page.stem)

    def latex_environment(self, name: str, body: str) -> str:
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block", self.render.page.stem)


@dataclass
class Render:
    """Turns the cells of one notebook into HTML, and collects its headings and its provenance, and counts its charts."""

    page: Page
    stems: set[str]
    contents: list[tuple[str, str]] = field(default_factory=list)  # anchor and words of each second-level heading
    anchors: set[str] = field(default_factory=set)
    charts: int = 0
    provenance: str = ""  # the block at the end of the notebook
    named: bool = True  # write names for ids

    def anchor(self, words: str, level: int) -> str:
        slug = f"{self.page.stem}-{_slug(words)}"
        unique, number = slug, 2
        while unique in self.anchors:
            unique, number = f"{slug}-{number}", number + 1
        self.anchors.add(unique)
        if level == 2:
            self.contents.append((unique, words))
        return unique

    def markdown(self, source: str, attachments: dict[str, Any] | None = None, prose: bool = False) -> str:
        return clean(MarkdownWithMath(renderer=_Markdown(self, attachments)).render(source), self.page.stem, prose, self.named)

    def outputs(self, cell: NotebookNode) -> list[str]:
        """The outputs of a code cell in order. Each stream of printed lines becomes one block."""
        streams: dict[str, str] = {}
        for output in cell.outputs:
            if output.output_type == "stream":
                streams[output.name] = streams.get(output.name, "") + output.text
        blocks = []
        for output in cell.outputs:
            if output.output_type == "stream":
                if text := streams.pop(output.name, ""):
                    blocks.append(_stream(output.name, text))
            elif output.output_type == "error":
                blocks.append(_error(output))
            else:
                kind = next((kind for kind in SHOWN if kind in output.data), None)
                if kind:
                    blocks.append(SHOWN[kind](self, output, cell))
        return [text for text in blocks if text]

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
        width = (output.metadata.get(kind) or {}).get("width")  # a figure drawn at twice its size has one
        size = f' width="{int(width)}"' if width else ""
        return f'<figure><img alt="{html.escape(alt)}" src="{source}"{size}></figure>'

    def unnamed(self, cell: NotebookNode) -> str:
        return f"Figure of notebook {self.page.stem}, cell {cell.execution_count}"


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", html.unescape(words).lower()).strip("-")


def _stream(name: str, text: str) -> str:
    """Printed lines as one block. A line that a terminal writes over is progress, which a report leaves out."""
    lines = [line for line in text.rstrip("\n").split("\n") if "\r" not in line.rstrip("\r")]
    if not any(lines):
        return ""
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
    if 'class="provenance"' in text:  # one block at the end of the page holds those of all notebooks
        render.provenance = clean(text, render.page.stem, named=False)
        return ""
    if re.search(r"plotly\.js v\d", text):
        return ""
    return f'<div class="rich">{clean(text, render.page.stem, named=render.named)}</div>'


def _prose(text: str) -> str:
    return f'<div class="prose">{text}</div>'


# How an output is shown: in the first of these forms that it has.
SHOWN: dict[str, Callable[[Render, NotebookNode, NotebookNode], str]] = {
    PLOTLY: Render.chart,
    "text/html": _html,
    "image/svg+xml": lambda render, output, cell: render.image("image/svg+xml", output, cell),
    "image/png": lambda render, output, cell: render.image("image/png", output, cell),
    "image/jpeg": lambda render, output, cell: render.image("image/jpeg", output, cell),
    WIDGET: lambda render, output, cell: "",  # a widget needs a kernel
    "text/markdown": lambda render, output, cell: _prose(render.markdown(output.data["text/markdown"])),
    "text/latex": lambda render, output, cell: mathml(
        output.data["text/latex"].strip().strip("$"), "block", render.page.stem
    ),
    "text/plain": lambda render, output, cell: f'<pre class="plain">{html.escape(output.data["text/plain"])}</pre>',
}
