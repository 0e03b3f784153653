"""HTML of a notebook made fit for the page: names for ids, tables in boxes, and nothing that a browser would fetch."""

from __future__ import annotations

import sys
from typing import Any

from bs4 import BeautifulSoup, NavigableString

from rtxstudy import names
from rtxstudy.report.html_tables import fit

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


def clean(markup: str, stem: str, prose: bool = False, named: bool = True) -> str:
    """The HTML without anything from outside the file, with names in place of ids, and with its tables in boxes.

    What is left out is named in its place and, with the notebook's ``stem``, on stderr. ``prose``: a person wrote the text.
    ``named``: False leaves ids as they are.
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
    if named:
        name_ids(soup, prose)
    for table in soup.find_all("table"):
        fit(soup, table)
    return str(soup)


def name_ids(soup: BeautifulSoup, prose: bool = False) -> None:
    """Put the short name of each data set and model in place of its id (:mod:`rtxstudy.names`). The tooltip has both.

    A number and its per cent sign are kept on one line.
    """
    for text in soup.find_all(string=True):
        if type(text) is not NavigableString or any(parent.name in _VERBATIM for parent in text.parents):
            continue
        if text.parent.name == "th" and "_" in text and " " not in text.strip():
            text.replace_with(names.column(text.strip()))
            continue
        if " %" in text:
            kept = NavigableString(text.replace(" %", "\N{NO-BREAK SPACE}%"))
            text.replace_with(kept)
            text = kept
        parts, last = [], 0
        for start, end, name in names.spans(text, prose=prose):
            whole = {"class": "whole"} if len(name.short) < 20 else {}  # a short name is not broken into lines
            tooltip = f"{name.long} ({text[start:end]})" if name.long != name.short else text[start:end]
            abbreviation = soup.new_tag("abbr", attrs={"title": tooltip, **whole})
            abbreviation.string = name.short
            parts += [text[last:start], abbreviation]
            last = end
        if parts:
            text.replace_with(*(part for part in (*parts, text[last:]) if part))
    for tag in soup.find_all(alt=True):
        tag["alt"] = names.said(tag["alt"], prose=prose)


def _outside(address: Any) -> bool:
    return bool(address) and not str(address).startswith(("data:", "#"))
