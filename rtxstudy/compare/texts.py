"""The rows of a user's file, cleaned, grouped and split, with plain facts about what was done."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib.data.clean import clean
from rtxlib.data.files import require_column
from rtxlib.data.rows import label_text, labelled
from rtxlib.errors import InputError, few, shortened
from rtxstudy.compare import columns, near, reading, splitting

CLEANING = {
    "lowercase": True,
    "strip_html": True,
    "strip_urls": False,
    "squeeze_whitespace": True,
}  # links stay: they may tell
MOST_ROWS = 100_000  # that are compared; of more, so many are drawn
LONGEST = 20_000  # characters of a text that are read
RARE = 5  # a label of fewer rows is left out, because it can be neither learnt nor judged
FEWEST = 40  # rows, of all labels together
UNBALANCED = 0.5  # a label with less than this share of an equal part makes the labels unbalanced
MOST_STARS = 11  # whole numbers that may be a scale, such as stars


@dataclass
class Texts:
    """Texts that models are compared on.

    Attributes:
        name: of the file
        text_column, label_column: of the file
        label_names: by label number; whole numbers in their order
        table: columns ``text`` (cleaned), ``raw``, ``label`` (number), ``group``, ``split`` ("train", "validation" or "test"),
            ``fold`` (of training rows, if there is no validation split; else −1), ``line`` (of the file)
        said: sentences about how the file was read
        other: the other columns of the file, by their names, for the rows of ``table``
    """

    name: str
    text_column: str
    label_column: str
    label_names: list[str]
    table: pd.DataFrame
    said: list[str] = field(default_factory=list)
    other: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def cross_validated(self) -> bool:
        return not (self.table["split"] == "validation").any()

    @property
    def unbalanced(self) -> bool:
        """Whether some label is so rare that accuracy hides how it fares. Then macro-F1 decides."""
        return bool(self.table["label"].value_counts(normalize=True).min() < UNBALANCED / len(self.label_names))

    @property
    def ordered(self) -> np.ndarray | None:
        """The numbers that the labels are, if these are a scale, such as stars; else None."""
        whole = all(re.fullmatch(r"[+-]?\d{1,4}", name) for name in self.label_names)
        return np.array(self.label_names, int) if whole and 2 < len(self.label_names) <= MOST_STARS else None

    def rows(self, split: str) -> np.ndarray:
        return np.flatnonzero(self.table["split"] == split)

    @property
    def judged(self) -> np.ndarray:
        """The rows by which models are chosen: the validation rows, or in cross-validation all training rows."""
        return self.rows("train" if self.cross_validated else "validation")

    def texts(self, rows: np.ndarray) -> list[str]:
        return self.table["text"].iloc[rows].tolist()

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        return self.table["label"].to_numpy()[rows]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the texts, labels, splits and folds."""
        digest = hashlib.sha256("\0".join(self.label_names).encode("utf-8", "replace"))
        for column in ("text", "label", "split", "fold"):
            digest.update("\0".join(map(str, self.table[column])).encode("utf-8", "replace"))
        return digest.hexdigest()[:16]


def open_texts(
    file: Path | str,
    text_column: str | None = None,
    label_column: str | None = None,
    group_column: str | None = None,
    split_column: str | None = None,
    test: Path | str | None = None,
) -> Texts:
    """Read, clean, group and split a file.

    Args:
        file: CSV, TSV, JSONL or Parquet
        text_column, label_column: None: they are guessed
        group_column: rows with the same value, such as one author, stay on one side of every split
        split_column: names the split of each row: train, validation or test
        test: another file with the same columns, whose rows are the test split

    Raises InputError for anything that the user has to mend.
    """
    name = Path(file).name
    table, drawn = reading.read(file)
    for column, option in ((group_column, "--group-column"), (split_column, "--split-column")):
        if column is not None:
            require_column(table, column, name, option)
    others = (group_column, split_column)
    text_column, label_column, said = columns.choose(table, name, text_column, label_column, others)
    said = [drawn] * bool(drawn) + said
    rows = _rows(table, text_column, label_column, name, said)
    rows["given"] = (
        "" if split_column is None else splitting.given_splits(table[split_column].loc[rows.index], split_column)
    )
    rows["of"] = "" if group_column is None else table[group_column].loc[rows.index]
    columns.check_labels(rows["name"], label_column, name)
    rows = _without_rare(rows, said)
    if test is not None:
        rows = _with_test(rows, test, text_column, label_column, group_column, said)
    rows = _drawn(rows, said)
    if len(rows) < FEWEST:
        raise InputError(f"{name} has {len(rows)} rows with a text and a label; at least {FEWEST} are needed.")
    names = labelled(rows[["name"]], rows["name"], {value: value for value in rows["name"].unique()}, name).label_names
    numbers = rows["name"].map({value: number for number, value in enumerate(names)}).to_numpy()
    group = near.groups(rows["text"].tolist())
    if group.max() == 0:
        raise InputError(f"All texts of {name} are the same or nearly the same, so there is nothing to compare.")
    if group_column is not None:
        group = _also(group, rows["of"].to_numpy())
    where = splitting.split(group, numbers, rows["given"].to_numpy())
    made = pd.DataFrame(
        {"text": rows["text"], "raw": rows["raw"], "label": numbers, "group": group, "split": where, "line": rows.index}
    )
    other = table.drop(columns=[text_column, label_column]).reindex(rows.index[rows.index.isin(table.index)])
    if left := int((where == "").sum()):
        said.append(
            f"{left:,} training or validation rows were left out, because their texts are nearly those of a test row."
        )
    made = made[where != ""].reset_index(drop=True)
    lacking = set(range(len(names))) - set(made.loc[made["split"] == "train", "label"])
    if lacking:
        raise InputError(
            f"No training row is left of the label {few(names[number] for number in lacking)}; give more rows of it."
        )
    made["fold"] = -1
    if not (made["split"] == "validation").any():
        train = made["split"] == "train"
        made.loc[train, "fold"] = splitting.folds(made["group"].to_numpy()[train], made["label"].to_numpy()[train])
    return Texts(name, text_column, label_column, names, made, said, other)


def _rows(table: pd.DataFrame, text: str, label: str, name: str, said: list[str]) -> pd.DataFrame:
    """Columns raw, text and name (of the label) of the rows that have a text and a label."""
    raw = table[text].astype(str)
    if cut := int((raw.str.len() > LONGEST).sum()):
        said.append(f"{cut:,} texts are longer than {LONGEST:,} characters; only the beginning is read.")
    cleaned, _ = clean(raw.str.slice(0, LONGEST), **CLEANING)
    rows = pd.DataFrame(
        {"raw": raw.to_numpy(), "text": cleaned, "name": table[label].map(label_text).to_numpy()}, table.index
    )
    empty, unlabelled = rows["text"].str.strip() == "", rows["name"] == ""
    if empty.all():
        raise InputError(
            f"All texts in the column '{shortened(text)}' of {name} are empty; name another with --text-column."
        )
    if unlabelled.all():
        raise InputError(
            f"No row of {name} has a label in the column '{shortened(label)}'; name another with --label-column."
        )
    for mask, what in ((empty, "text"), (unlabelled & ~empty, "label")):
        if count := int(mask.sum()):
            said.append(
                f"{count:,} {'row has' if count == 1 else 'rows have'} no {what} and {'is' if count == 1 else 'are'} left out."
            )
    return rows[~empty & ~unlabelled]


def _without_rare(rows: pd.DataFrame, said: list[str]) -> pd.DataFrame:
    counts = rows["name"].value_counts()
    rare = counts[counts < RARE]
    if rare.empty:
        return rows
    if len(counts) - len(rare) < 2:
        raise InputError(
            f"Only {len(counts) - len(rare)} label has {RARE} rows or more; at least two such labels are needed."
        )
    said.append(
        f"The labels {few(rare.index)} have fewer than {RARE} rows each. That is too few to learn and to judge, so their "
        f"{rare.sum():,} rows are left out."
        if len(rare) > 1
        else f"The label {few(rare.index)} has fewer than {RARE} rows. That is too few to learn and to judge, so it is left out."
    )
    return rows[~rows["name"].isin(rare.index)]


def _with_test(
    rows: pd.DataFrame, test: Path | str, text: str, label: str, group: str | None, said: list[str]
) -> pd.DataFrame:
    """The rows with those of a test file below them."""
    table, drawn = reading.read(test)
    name = Path(test).name
    for column, option in (
        (text, "--text-column"),
        (label, "--label-column"),
        *([(group, "--group-column")] if group else []),
    ):
        require_column(table, column, name, option)
    said += [drawn] * bool(drawn)
    more = _rows(table, text, label, name, said)
    unknown = more.loc[~more["name"].isin(rows["name"]), "name"].value_counts()
    if len(unknown):
        raise InputError(
            f"{name} has {unknown.sum():,} rows with labels that no training row has: {few(unknown.index)}. Correct them, or "
            "give training rows of these labels."
        )
    more = more.assign(given="test", of=table[group].loc[more.index] if group else "")
    more.index = -more.index  # lines of the other file
    if (rows["given"] == "test").any():
        raise InputError("--test and a column with test rows were given; one test split is enough.")
    return pd.concat([rows, more])


def _drawn(rows: pd.DataFrame, said: list[str]) -> pd.DataFrame:
    if len(rows) <= MOST_ROWS:
        return rows
    said.append(
        f"{MOST_ROWS:,} of the {len(rows):,} rows were drawn at random; more would not be compared in the time."
    )
    return rows.sample(MOST_ROWS, random_state=0).sort_index()


def _also(group: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Groups joined where the rows have the same value in the user's column. An empty value joins nothing."""
    rows = pd.Series(np.arange(len(group)))[of != ""]
    pairs = [(rows_of[0], other) for rows_of in rows.groupby(of[of != ""]).indices.values() for other in rows_of[1:]]
    index = rows.to_numpy()
    return near.joined(group, index[np.array(pairs, int).reshape(-1, 2)])
