"""Tables of a notebook made fit for the page: at most seven columns and fifteen rows at first, and the rest one click away."""

from __future__ import annotations

import html
import re

from bs4 import BeautifulSoup, Tag

COLUMNS, ROWS = 7, 15  # shown at first; the script of the page shows the others, sorts, and hands out all of them as CSV
_NUMBER = re.compile(r"[\[(<>≈~±+−-]*\s*[\d.][\d\s.,eE%×±+−–:/()\[\]-]*(?:ms|s|h|MB|GB|M|k|pp|points?)?")
_INTERVAL = re.compile(r"[+−]?[\d.]+ to [+−]?[\d.]+")
_NOTHING = {"", "–", "—", "-", "nan", "NaN", "None", "<NA>", "NaT"}


def fit(soup: BeautifulSoup, table: Tag) -> None:
    """Align numbers to the right, remove the markup of pandas, and put the table in a box with what the script needs.

    The columns beyond :data:`COLUMNS` get the class ``more``, the rows beyond :data:`ROWS` the class ``later``. A column that has
    one value in all rows is told in a line above a table that is too wide, and counts as beyond.
    """
    for style in table.find_all_previous("style", attrs={"scoped": True}):
        style.decompose()
    del table["border"]
    _one_head(table)
    for blank in table.select("thead tr + tr th"):
        if not blank.get_text(strip=True):
            blank.name = "td"  # a head without words is none
    rows = table.find_all("tr")
    for row in rows:
        del row["style"]  # pandas aligns words in the head to the right
    # counted from the right, because the cells of an index may span rows
    cells: dict[int, list[Tag]] = {}
    for row in rows:
        for position, cell in enumerate(reversed(row.find_all(["td", "th"]))):
            cells.setdefault(position, []).append(cell)
    for column in cells.values():
        _align(column)
    box = soup.new_tag("div", attrs={"class": "table", "tabindex": "0", "role": "group", "aria-label": "Table"})
    table.wrap(box)
    if "provenance" in table.get("class", []) or table.thead is None:
        return
    whole = box.wrap(soup.new_tag("div", attrs={"class": "tabled"}))
    body = table.tbody.find_all("tr") if table.tbody else []
    joined = table.thead.find(lambda cell: int(cell.get("colspan", 1)) > 1)  # heads that stand over several columns
    same = [] if joined else _narrow(cells, len(body))
    if same:
        line = soup.new_tag("p", attrs={"class": "same"})
        line.append(BeautifulSoup(f"In all rows: {'; '.join(same)}.", "html.parser"))
        whole.insert(0, line)
    if len(body) > ROWS + 3:  # not worth a click for fewer
        for row in body[ROWS:]:
            row["class"] = [*row.get("class", []), "later"]
    whole["data-rows"], whole["data-columns"] = str(len(body)), str(len(cells))


def _one_head(table: Tag) -> None:
    """pandas puts the names of an index in a second row; they fit beside the names of the columns."""
    head = table.thead.find_all("tr") if table.thead else []
    if len(head) != 2:
        return
    above, below = (row.find_all("th") for row in head)
    words = [{cell.get_text(strip=True) for cell in pair} - {""} for pair in zip(above, below, strict=False)]
    if len(above) == len(below) and all(len(both) <= 1 for both in words):
        for cell, both in zip(above, words, strict=True):
            cell.string = "".join(both)
        head[1].decompose()


def _align(column: list[Tag]) -> None:
    values = [cell.get_text(strip=True) for cell in column if cell.name == "td"]
    contents = [value for value in values if value not in _NOTHING]
    numbers = bool(contents) and all(_NUMBER.fullmatch(value) or _INTERVAL.fullmatch(value) for value in contents)
    kind = "number" if numbers else "long" if any(len(value) > 40 for value in contents) else None
    for cell in column if kind else ():
        cell["class"] = [*cell.get("class", []), kind]


def _narrow(cells: dict[int, list[Tag]], rows: int) -> list[str]:
    """Mark the columns beyond the seventh. Returns what the columns that are the same in all rows say, as HTML."""
    order = sorted(cells, reverse=True)  # from left to right
    if len(order) <= COLUMNS:
        return []
    alike = [
        position
        for position in order
        if rows > 2 and len(cells[position]) == rows + 1 and len({cell.get_text() for cell in cells[position][1:]}) == 1
    ]
    alike = alike[: len(order) - COLUMNS]
    beyond = [*alike, *[position for position in order if position not in alike][COLUMNS:]]
    for position in beyond:
        for cell in cells[position]:
            cell["class"] = [*cell.get("class", []), "more"]
    pairs = [(cells[position][0].get_text(strip=True), cells[position][1].decode_contents().strip()) for position in alike]
    return [f"{html.escape(name)} {value}" for name, value in pairs if value not in _NOTHING]
