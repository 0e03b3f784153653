"""The end of the page: the provenance of all notebooks in one block, and how to cite it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from bs4 import BeautifulSoup

_CITE = "rtxlib: when does a recurrent transformer replace a deeper standard one for text classification?"


def colophon(blocks: Sequence[tuple[str, str]]) -> str:
    """What all notebooks have in common, and what each has of its own, folded. ``blocks``: a notebook's title, its provenance.

    The provenance is the HTML table of :class:`rtxstudy.provenance.Provenance`.
    """
    tables = {title: _rows(block) for title, block in blocks}
    if not tables:
        return ""
    names = list(dict.fromkeys(name for rows in tables.values() for name in rows))
    common = {
        name: next(iter(values))
        for name in names
        if len(values := {rows.get(name) for rows in tables.values()}) == 1 and None not in values
    }
    commit, dirty = (_all(tables, name) for name in ("commit", "dirty"))
    lines = [f"Made from commit {commit}." if commit not in ("", "none") else "Made from an installed package."]
    if dirty not in ("", "no", "none"):
        lines.append("<strong>The code had changes that are not committed, so the commit does not tell all of it.</strong>")
    cells = "".join(f"<tr><th scope='row'>{name}</th><td>{value}</td></tr>" for name, value in common.items())
    each = "".join(
        f"<details><summary>{html.escape(title)}</summary>{_table(rows, common)}</details>" for title, rows in tables.items()
    )
    return (
        f"<p>{' '.join(lines)}</p><details><summary>Device, versions and settings of all notebooks</summary>"
        f'<table class="provenance"><tbody>{cells}</tbody></table></details>'
        f"<details><summary>Data, seeds and time of each notebook</summary>{each}</details>"
    )


def citation() -> str:
    """How to cite the project, as a sentence in HTML."""
    try:
        number = f", version {version('rtxlib')}"
    except PackageNotFoundError:
        number = ""
    return f"The rtxlib authors. <cite>{html.escape(_CITE)}</cite>{number}. MIT licence."


def _rows(block: str) -> dict[str, str]:
    table = BeautifulSoup(block, "html.parser")
    return {row.th.get_text(): row.td.decode_contents() for row in table.find_all("tr") if row.th and row.td}


def _all(tables: dict[str, dict[str, str]], name: str) -> str:
    return ", ".join(dict.fromkeys(rows[name] for rows in tables.values() if name in rows))


def _table(rows: dict[str, str], common: dict[str, str]) -> str:
    cells = "".join(f"<tr><th scope='row'>{k}</th><td>{v}</td></tr>" for k, v in rows.items() if k not in common)
    return f'<table class="provenance"><tbody>{cells}</tbody></table>'
