"""Each page as one HTML file with all modules inlined, which opens by a double click, from a server or in a frame."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rtxlib.errors import InputError, nearest

HERE = Path(__file__).parent
MARK = '<meta name="generator" content="rtxlib">'  # a file with this mark may be overwritten
PAGES = {  # folder → title
    "transformer": "The transformer, by hand",
    "swiglu": "SwiGLU, a gate that the input opens",
}
SENTENCES = {  # folder → what a reader can do there
    "transformer": "Watch a sentence pass the same layer three times until its answer turns, and change any number on the way.",
    "swiglu": "Move the weights of one unit of a feed-forward, and see when its gate lets the input through.",
}

_IMPORT = re.compile(r'^import\s+(?P<names>\{[^}]*\}|\*\s+as\s+\w+)\s+from\s+"(?P<path>[^"]+)";$', re.M)
_EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function\*?|class|const)\s+(?P<name>\w+))", re.M)
# A comment on lines of its own; the modules keep it, the pages need not carry it.
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*.*?\*/[ \t]*)\n", re.M | re.S)

# The page may run its own inline script and style. It can send no request.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def script(*entries: str) -> str:
    """These modules ("transformer/view.js") and all they import as one script, each after those it imports.

    Each module becomes a function that is called once, so its names cannot clash. Its exports are a constant named
    after its folder and file, ``transformer_view``. Comments on lines of their own are left out. Raises ``ValueError``
    for an import or export of a form that :mod:`rtxstudy.pages` does not allow, and for modules that import each other
    in a circle.
    """
    wrapped: dict[Path, str] = {}
    for entry in entries:
        _gather(HERE / entry, wrapped, ())
    return "\n".join(wrapped.values())


def _gather(file: Path, wrapped: dict[Path, str], importers: tuple[Path, ...]) -> None:
    """Add ``file`` to ``wrapped`` after all it imports. ``importers`` is the chain of files that led to it."""
    if file in wrapped:
        return
    if file in importers:
        raise ValueError(f"{file.name} imports itself through {importers[-1].name}.")
    source = file.read_text(encoding="utf-8")
    for match in _IMPORT.finditer(source):
        _gather((file.parent / match["path"]).resolve(), wrapped, (*importers, file))

    def bind(match: re.Match) -> str:
        names, constant = match["names"], _constant((file.parent / match["path"]).resolve())
        if names.startswith("*"):
            return f"const {names.split()[-1]} = {constant};"
        return f"const {names.replace(' as ', ': ')} = {constant};"

    exported = ", ".join(match["name"] for match in _EXPORT.finditer(source))
    body = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub(bind, source)))
    if leftover := re.search(r"^(import|export)\b.*$", body, re.M):
        raise ValueError(f"{file.name} has a line that cannot be inlined: {leftover[0]}")
    wrapped[file] = f"const {_constant(file)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _constant(file: Path) -> str:
    return f"{file.parent.name}_{file.stem}"


def module(name: str) -> str:
    """The page as one ES module for anywidget: its default export renders the page of a widget's model."""
    code = script("shared/host.js", f"{name}/view.js")
    return f"{code}\nexport default {{ render: shared_host.widget({name}_view.mount) }};\n"


def style(name: str) -> str:
    """The style rules that all pages share, and those of this page."""
    files = (HERE / "shared" / "style.css", HERE / name / "style.css")
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())


def page(name: str, state: dict[str, Any] | None = None) -> str:
    """The whole page as HTML. ``state`` holds the fields with which it opens instead of its defaults.

    Raises ``InputError`` for an unknown page, or a state that is not JSON.
    """
    if name not in PAGES:
        raise InputError(f"There is no page '{name}'; there are {', '.join(PAGES)}.{nearest(name, PAGES)}")
    try:
        state_json = json.dumps(state or {}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"The state of a page is plain JSON, without NaN or infinity: {error}.") from None
    code = script("shared/host.js", f"{name}/view.js") + f"\nshared_host.openPage({name}_view.mount);"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
{MARK}
<title>{html.escape(PAGES[name])}</title>
<style>
{style(name)}
</style>
</head>
<body>
<main id="page"></main>
<script type="application/json" id="state">{_inline(state_json)}</script>
<script>
"use strict";
{_inline(code)}
</script>
</body>
</html>
"""


class Card(NamedTuple):
    """What the list of pages shows of one of them."""

    file: str
    page: str  # the folder of its modules, which holds its picture
    title: str
    sentence: str


def cards() -> list[Card]:
    """The cards of all pages."""
    return [Card(f"{name}.html", name, title, SENTENCES[name]) for name, title in PAGES.items()]


def index(entries: Iterable[Card]) -> str:
    """The HTML page that links to pages, each with a small picture and a sentence."""
    links = "\n".join(
        f'<li><a href="{html.escape(card.file)}">{_picture(card.page)}<strong>{html.escape(card.title)}</strong>'
        f"<span>{html.escape(card.sentence)}</span></a></li>"
        for card in entries
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
{MARK}
<title>Pages to touch</title>
<style>
{(HERE / "shared" / "index.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<main>
<h1>Pages to touch</h1>
<p>Each page is one file. It computes every number in the browser, and asks for nothing from the network.</p>
<ul>
{links}
</ul>
</main>
</body>
</html>
"""


def _picture(name: str) -> str:
    return (HERE / name / "card.svg").read_text(encoding="utf-8").strip()


def _inline(text: str) -> str:
    """JSON or JavaScript, escaped so that no HTML parser sees the end of its script element in it."""
    return re.sub(r"<(?=/script|script|!--)", r"\\u003c", text, flags=re.I)


def iframe(name: str, state: dict[str, Any] | None = None, height: str = "min(85vh, 56rem)") -> str:
    """The page in a frame, for the output of a notebook or a report; ``height`` is a CSS length.

    The frame may run scripts. It has no origin, so it can neither read nor send anything.
    """
    return (
        f'<iframe title="{html.escape(PAGES.get(name, name))}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}; border: 0" srcdoc="{html.escape(page(name, state))}"></iframe>'
    )
