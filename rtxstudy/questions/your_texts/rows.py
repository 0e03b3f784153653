"""The rows of a user's file that have a text and a label, cleaned, with plain facts about those that are left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib.data.clean import clean
from rtxlib.data.files import as_texts, require_column, require_texts
from rtxlib.data.rows import PAIR, blank, label_text
from rtxlib.errors import InputError, few, shortened
from rtxstudy.questions.your_texts import reading

CLEANING = {
    "lowercase": True,
    "strip_html": True,
    "strip_urls": False,
    "squeeze_whitespace": True,
}  # links stay: they may tell
RAW = {"text": "raw", PAIR: "raw_pair"}  # column of cleaned texts → column of the texts as they are
LONGEST = 20_000  # characters of a cleaned text that are read, here and by the model that is handed over
MOST_ROWS, MOST_TEST = 100_000, 10_000  # rows to learn and choose from, and given test rows; of more, so many are drawn
RARE = 5  # a label of fewer rows is left out, because it can be neither learnt nor judged


@dataclass(frozen=True)
class Columns:
    """What the columns of a file are called: of texts, labels, second texts of pairs, groups."""

    text: str
    label: str
    pair: str | None = None
    group: str | None = None

    @property
    def read(self) -> list[str]:
        """Those of texts and labels."""
        return [column for column in (self.text, self.pair, self.label) if column is not None]

    def require(self, table: pd.DataFrame, name: str) -> None:
        """Raise InputError when a table lacks one of them or has it twice. name: of its file."""
        for option, column in (
            ("--text-column", self.text),
            ("--text-pair-column", self.pair),
            ("--label-column", self.label),
            ("--group-column", self.group),
        ):
            if column is not None:
                require_column(table, column, name, option)


def usable(table: pd.DataFrame, columns: Columns, name: str, sentences: list[str]) -> pd.DataFrame:
    """The rows that have a text and a label.

    Columns raw, text (cleaned), name (of the label); of pairs also raw_pair and text_pair. name: of the file; sentences:
    gets sentences. Raises InputError when there are no such rows.
    """
    fields: dict[str, object] = {}
    for kind, column in (("text", columns.text), (PAIR, columns.pair)):
        if column is None:
            continue
        raw = table[column].astype(str)
        cleaned = pd.Series(clean(raw, **CLEANING)[0], raw.index, dtype=str)
        if cut := int((cleaned.str.len() > LONGEST).sum()):
            many = "1 text is" if cut == 1 else f"{cut:,} texts are"
            sentences.append(f"{name}: {many} longer than {LONGEST:,} characters; only the beginning is read.")
        fields |= {RAW[kind]: raw.to_numpy(), kind: cleaned.str.slice(0, LONGEST)}
    rows = pd.DataFrame(fields | {"name": table[columns.label].map(label_text).to_numpy()}, table.index)
    blanks = {kind: rows[kind].map(blank).to_numpy(bool) for kind in RAW if kind in rows}
    empty, unlabelled = np.any(list(blanks.values()), axis=0), (rows["name"] == "").to_numpy()
    for kind, mask in (blanks | {"name": unlabelled}).items():
        what, column, option = {
            "text": ("texts", columns.text, "--text-column"),
            PAIR: ("second texts", columns.pair, "--text-pair-column"),
            "name": ("labels", columns.label, "--label-column"),
        }[kind]
        if mask.all():
            raise InputError(f"All {what} in the column '{shortened(column)}' of {name} are empty; name another with {option}.")
    if empty.all():
        raise InputError(f"No row of {name} has both a text and a second text; name other columns.")
    for mask, what in ((empty, "text"), (unlabelled & ~empty, "label")):
        if count := int(mask.sum()):
            verb = ("row has", "is") if count == 1 else ("rows have", "are")
            sentences.append(f"{name}: {count:,} {verb[0]} no {what} and {verb[1]} left out.")
    return rows[~empty & ~unlabelled]


def without_rare(rows: pd.DataFrame, sentences: list[str]) -> pd.DataFrame:
    """The rows whose label is not too rare to be learnt and judged. Raises InputError when fewer than two labels are left.

    Given test rows do not count, because nothing learns from them.
    """
    counts = rows.loc[rows["given"] != "test", "name"].value_counts().reindex(rows["name"].unique(), fill_value=0)
    rare = counts[counts < RARE]
    if rare.empty:
        return rows
    if (remaining := len(counts) - len(rare)) < 2:
        only = "No label has" if remaining == 0 else "Only one label has"
        raise InputError(f"{only} {RARE} rows or more; at least two such labels are needed.")
    tested = rows[rows["given"] == "test"]
    lost = int(tested["name"].isin(rare.index).sum())
    why, kind = "That is too few to learn and to judge, so", "rows" if tested.empty else "training and validation rows"
    also = f" So {'is' if lost == 1 else 'are'} {lost:,} test row{'s' * (lost != 1)}." if lost else ""
    sentences.append(
        f"The labels {few(rare.index)} have fewer than {RARE} {kind} each. {why} their {rare.sum():,} rows are left out.{also}"
        if len(rare) > 1
        else f"The label {few(rare.index)} has fewer than {RARE} {kind}. {why} it is left out.{also}"
    )
    return rows[~rows["name"].isin(rare.index)]


def with_test(
    rows: pd.DataFrame, rare: set[str], test: Path | str, columns: Columns, sentences: list[str]
) -> pd.DataFrame:
    """The rows with those of a test file below them, whose lines are negative. rare: labels that were left out.

    Raises InputError for labels without training rows.
    """
    values, sentence = reading.read(test)
    name = Path(test).name
    table = as_texts(values, name)
    columns.require(table, name)
    require_texts(values, columns.read, name)
    sentences += [sentence] * bool(sentence)
    more = usable(table, columns, name, sentences)
    if count := int(more["name"].isin(rare).sum()):
        many = f"1 row of {name} has" if count == 1 else f"{count:,} rows of {name} have"
        sentences.append(f"{many} a label that was left out, and {'is' if count == 1 else 'are'} left out too.")
        more = more[~more["name"].isin(rare)]
    unknown = more.loc[~more["name"].isin(rows["name"]), "name"].value_counts()
    if len(unknown):
        many = "1 row with a label" if unknown.sum() == 1 else f"{unknown.sum():,} rows with labels"
        raise InputError(
            f"{name} has {many} that no training row has: {few(unknown.index)}. Correct them, or "
            "give training rows of these labels."
        )
    if (rows["given"] == "test").any():
        raise InputError("--test and a column with test rows were given; one test split is enough.")
    more = more.assign(given="test", of=table[columns.group].loc[more.index] if columns.group else "")
    more.index = -more.index
    return pd.concat([rows, more])


def drawn(rows: pd.DataFrame, sentences: list[str]) -> pd.DataFrame:
    """At most MOST_ROWS of the rows, and MOST_TEST of those that are given as test rows."""
    parts = []
    for part, most, what in (
        (rows[rows["given"] != "test"], MOST_ROWS, "rows"),
        (rows[rows["given"] == "test"], MOST_TEST, "test rows"),
    ):
        if len(part) > most:
            sentences.append(
                f"{most:,} of the {len(part):,} {what} were drawn at random; more would not be compared in the time."
            )
            part = part.sample(most, random_state=0).sort_index()
        parts.append(part)
    return pd.concat(parts)
