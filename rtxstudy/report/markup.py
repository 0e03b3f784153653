"""HTML of a notebook made fit for the page: tables in boxes that scroll, and nothing that a browser would fetch."""

from __future__ import annotations

import re
import sys
from typing import Any

from bs4 import BeautifulSoup, NavigableString, Tag

from rtxstudy import names

_NUMBER = re.compile(r"[\[(<>≈~±+−-]*\s*[\d.][\d\s.,eE%×±+−–:/()\[\]-]*(?:ms|s|h|MB|GB|M|k|pp|points?)?")
_NOTHING = {"", "–", "—", "-", "nan", "NaN", "None", "<NA>", "NaT"}
_FETCHES = {  # by tag, the attributes that a browser loads from
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
    "link": ("href",),
    "object": ("data",),
    **dict.fromkeys(("script", "iframe", "audio", "embed", "input", "track"), ("src",)),
}


_VERBATIM = ("code", "pre", "script", "style", "math", "svg", "abbr", "title")  # ids stay as they are in these


def clean(markup: str, stem: str, prose: bool = False) -> str:
    """The HTML without anything from outside the file, with names in place of ids, and with its tables in boxes that scroll.

    What is left out is named in its place and, with the notebook's ``stem``, on stderr. ``prose``: a person wrote the text.
    """
    if "<" not in markup:
        return markup
    soup = BeautifulSoup(markup, "html.parser")
    for tag in soup.find_all(True):
        outside = next((str(tag[name]) for name in _FETCHES.get(tag.name, ()) if _outside(tag.get(name))), None)
        if outside:
            print(f"{stem}: {outside} lies outside the report and was left out.", file=sys.stderr)
            note = soup.new_tag("span", attrs={"class": "missing"})
            note.string = f"[left out: {outside} lies outside this file]"
            tag.replace_with(note)
    name_ids(soup, prose)
    for table in soup.find_all("table"):
        _table(soup, table)
    return str(soup)


def name_ids(soup: BeautifulSoup, prose: bool = False) -> None:
    """Put the name of each data set and model in place of its id (:mod:`rtxstudy.names`). The id becomes a tooltip."""
    for text in soup.find_all(string=True):
        if type(text) is not NavigableString or any(parent.name in _VERBATIM for parent in text.parents):
            continue
        if text.parent.name == "th" and "_" in text and " " not in text.strip():
            text.replace_with(names.column(text.strip()))
            continue
        parts, last = [], 0
        for start, end, name in names.spans(text, prose=prose):
            abbreviation = soup.new_tag("abbr", attrs={"title": text[start:end]})
            abbreviation.string = name
            parts += [text[last:start], abbreviation]
            last = end
        if parts:
            text.replace_with(*(part for part in (*parts, text[last:]) if part))
    for tag in soup.find_all(alt=True):
        tag["alt"] = names.said(tag["alt"], prose=prose)


def _outside(address: Any) -> bool:
    return bool(address) and not str(address).startswith(("data:", "#"))


def _table(soup: BeautifulSoup, table: Tag) -> None:
    """Align numbers to the right, remove the markup of pandas, and put the table in a box that scrolls."""
    for style in table.find_all_previous("style", attrs={"scoped": True}):
        style.decompose()
    del table["border"]
    head = table.thead.find_all("tr") if table.thead else []
    if len(head) == 2:  # pandas puts the names of an index in a second row; they fit beside the names of the columns
        above, below = (row.find_all("th") for row in head)
        words = [{cell.get_text(strip=True) for cell in pair} - {""} for pair in zip(above, below, strict=False)]
        if len(above) == len(below) and all(len(both) <= 1 for both in words):
            for cell, both in zip(above, words, strict=True):
                cell.string = "".join(both)
            head[1].decompose()
    rows = table.find_all("tr")
    for row in rows:
        del row["style"]  # pandas aligns words in the head to the right
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
