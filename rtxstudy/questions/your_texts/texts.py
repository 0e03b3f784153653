"""The rows of a user's file, cleaned, grouped and split, with plain facts about what was done."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from rtx.classifiers.words import UNSPACED
from rtxlib.data.containment import words_key
from rtxlib.data.files import as_texts, doubtful_labels, require_column, require_texts
from rtxlib.data.rows import PAIR, Text, labelled, sides, texts_of
from rtxlib.errors import InputError, few
from rtxstudy.questions.your_texts import columns, near_duplicates, reading, rows, splitting
from rtxstudy.questions.your_texts.rows import RAW, Columns

FEWEST = 40  # rows of all labels together, where some of them are held out for the test
UNBALANCED = 0.5  # a label with less than this share of an equal part makes the labels unbalanced
MOST_STARS = 11  # numbers that may be a scale, such as stars or half stars


@dataclass
class Texts:
    """Texts, or pairs of texts, that models are compared on.

    Attributes:
        name: of the file
        columns: of the file
        label_names: by label number; whole numbers in their order
        table: columns ``text`` (cleaned), ``raw``, ``label`` (number), ``alike`` (a number that near-duplicates share), ``group``
            (a number of rows that stay together), ``split`` ("train", "validation" or "test"), ``fold`` (of training rows, if
            there is no validation split; else −1), ``line`` (of the file; negative of a test file); of pairs also
            ``text_pair`` and ``raw_pair``
        said: sentences about how the file was read
        other: the other columns of the file, by their names, for the rows of ``table``
    """

    name: str
    columns: Columns
    label_names: list[str]
    table: pd.DataFrame
    said: list[str] = field(default_factory=list)
    other: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def pairs(self) -> bool:
        return PAIR in self.table

    @property
    def text_columns(self) -> list[str]:
        """The columns of the table that hold cleaned texts: one, or two for pairs."""
        return ["text", PAIR] if self.pairs else ["text"]

    @property
    def cross_validated(self) -> bool:
        return not (self.table["split"] == "validation").any()

    @cached_property
    def unbalanced(self) -> bool:
        """Whether some label is so rare that accuracy hides how it fares. Then macro-F1 decides. Test rows do not count."""
        counts = self.table.loc[self.table["split"] != "test", "label"].value_counts(normalize=True)
        return bool(counts.min() < UNBALANCED / len(self.label_names))

    @property
    def judged_by(self) -> str:
        """The name of the score that decides."""
        return "macro-F1" if self.unbalanced else "accuracy"

    @property
    def ordered(self) -> np.ndarray | None:
        """The numbers that the labels are, if these are a scale, such as stars; else None."""
        numbers = all(re.fullmatch(r"[+-]?\d{1,4}(\.\d)?", name) for name in self.label_names)
        return np.array(self.label_names, float) if numbers and 2 < len(self.label_names) <= MOST_STARS else None

    def rows(self, split: str) -> np.ndarray:
        return np.flatnonzero(self.table["split"] == split)

    @property
    def judged(self) -> np.ndarray:
        """The rows by which models are chosen: the validation rows, or in cross-validation all training rows."""
        return self.rows("train" if self.cross_validated else "validation")

    def texts(self, rows: np.ndarray) -> list[Text]:
        """The cleaned texts of some rows, or their pairs of texts."""
        return texts_of(self.table.iloc[rows])

    def raw(self, rows: np.ndarray) -> list[Text]:
        """The same as they stand in the file."""
        part = self.table.iloc[rows]
        return texts_of(pd.DataFrame({kind: part[RAW[kind]] for kind in self.text_columns}))

    def whole(self, rows: np.ndarray) -> list[str]:
        """The cleaned texts as single strings: both texts of a pair, one after the other."""
        return [" ".join(sides(text)) for text in self.texts(rows)]

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        return self.table["label"].to_numpy()[rows]

    @cached_property
    def words(self) -> np.ndarray:
        """(rows,) how many words each row has, in both texts of a pair: what stands between spaces, and each of :attr:`signs`."""
        spaced = np.sum([self.table[kind].str.count(" ").to_numpy() + 1 for kind in self.text_columns], axis=0)
        return spaced + self.signs

    @cached_property
    def signs(self) -> np.ndarray:
        """(rows,) how many signs of scripts without spaces each row has."""
        return np.sum([self.table[kind].str.count(f"[{UNSPACED}]").to_numpy() for kind in self.text_columns], axis=0)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the texts, labels, splits and folds."""
        digest = hashlib.sha256("\0".join(self.label_names).encode("utf-8", "replace"))
        for column in (*self.text_columns, "label", "split", "fold"):
            digest.update("\0".join(map(str, self.table[column])).encode("utf-8", "replace"))
        return digest.hexdigest()[:16]


def open_texts(
    file: Path | str,
    text_column: str | None = None,
    label_column: str | None = None,
    text_pair_column: str | None = None,
    group_column: str | None = None,
    split_column: str | None = None,
    test: Path | str | None = None,
) -> Texts:
    """Read, clean, group and split a file.

    Args:
        file: CSV, TSV, JSONL or Parquet
        text_column, label_column: None: they are guessed
        text_pair_column: the column of second texts, where a row is a pair of texts
        group_column: rows with the same value, such as one author, stay on one side of every split
        split_column: names the split of each row: train, validation or test
        test: another file with the same columns, whose rows are the test split

    Raises InputError for anything that the user has to mend.
    """
    name = Path(file).name
    values, sentence = reading.read(file)
    table = as_texts(values, name)
    further = {"--text-pair-column": text_pair_column, "--group-column": group_column, "--split-column": split_column}
    for option, column in further.items():
        if column is not None:
            require_column(table, column, name, option)
    text_column, label_column, sentences = columns.choose(table, name, text_column, label_column, further)
    named = Columns(text_column, label_column, text_pair_column, group_column)
    require_texts(values, named.read, name)
    sentences = [sentence] * bool(sentence) + sentences
    data = rows.usable(table, named, name, sentences)
    data["given"] = (
        "" if split_column is None else splitting.given_splits(table[split_column].loc[data.index], split_column)
    )
    data["of"] = "" if group_column is None else table[group_column].loc[data.index]
    sentences += columns.check_labels(data["name"], label_column, name) + doubtful_labels(data["name"])
    every = set(data["name"])
    data = rows.without_rare(rows.drawn(data, sentences), sentences)
    tested = test is not None or bool((data["given"] == "test").any())
    if not tested and len(data) < FEWEST:
        raise InputError(
            f"{name} has {len(data)} rows with a text and a label that is frequent enough; at least {FEWEST} are needed, or rows "
            "of their own to test on (--test)."
        )
    if test is not None:
        data = rows.drawn(rows.with_test(data, every - set(data["name"]), test, named, sentences), sentences)
    other = table.drop(columns=[text_column, label_column, *([text_pair_column] if text_pair_column else [])])
    other = other.reindex(data.index[data.index.isin(table.index)])
    return _split(data, named, name, sentences, other)


def _split(data: pd.DataFrame, named: Columns, name: str, sentences: list[str], other: pd.DataFrame) -> Texts:
    """Group and split the rows of ``rows.usable``, which also have the columns ``given`` and ``of``."""
    names = labelled(data[["name"]], data["name"], {value: value for value in data["name"].unique()}, name).label_names
    numbers = data["name"].map({value: number for number, value in enumerate(names)}).to_numpy()
    group = alike = near_duplicates.groups(data["text"].tolist())
    if group.max() == 0:
        which = "texts" if named.pair is None else f"texts in the column '{named.text}'"
        raise InputError(f"All {which} of {name} are the same or nearly the same, so there is nothing to compare.")
    if named.pair is not None:
        sentences.append(
            "Pairs whose first texts are the same or nearly the same stay on one side of every split. So do pairs of the same "
            "texts in the other order."
        )
        both = zip(*(data[kind].map(words_key) for kind in ("text", PAIR)), strict=True)
        group = _also(group, np.array(["\0".join(sorted(pair)) for pair in both], dtype=object))
    if named.group is not None:
        group = _also(group, data["of"].to_numpy())
    where = splitting.split(group, numbers, data["given"].to_numpy())
    texts = {column: data[column] for kind in RAW if kind in data for column in (kind, RAW[kind])}
    table = pd.DataFrame(texts | {"label": numbers, "alike": alike, "group": group, "split": where, "line": data.index})
    if count := int((where == "").sum()):
        sentences.append(
            f"{count:,} training or validation {'row was' if count == 1 else 'rows were'} left out, because "
            f"{'it stays' if count == 1 else 'they stay'} together with a row of another split: the texts are nearly the same"
            f"{', or of one group' if named.group is not None else ''}."
        )
    table = table[where != ""].reset_index(drop=True)
    lacking = set(range(len(names))) - set(table.loc[table["split"] == "train", "label"])
    if lacking:
        raise InputError(
            f"No training row is left of the label{'s' * (len(lacking) > 1)} {few(names[number] for number in lacking)}; give "
            "more rows."
        )
    for split in ("validation", "test"):
        absent = set(range(len(names))) - set(table.loc[table["split"] == split, "label"])
        if absent and (table["split"] == split).any():
            sentences.append(
                f"No {split} row has the label{'s' * (len(absent) > 1)} {few(names[number] for number in absent)}, so nothing is "
                f"said about {'it' if len(absent) == 1 else 'them'}."
            )
    table["fold"] = -1
    if not (table["split"] == "validation").any():
        train = table["split"] == "train"
        table.loc[train, "fold"] = splitting.folds(table["group"].to_numpy()[train], table["label"].to_numpy()[train])
    return Texts(name, named, names, table, sentences, other)


def _also(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Groups joined where the rows have the same value in ``values`` (rows,). An empty value joins nothing."""
    rows = pd.Series(np.arange(len(group)))[values != ""]
    pairs = [(rows_of[0], other) for rows_of in rows.groupby(values[values != ""]).indices.values() for other in rows_of[1:]]
    index = rows.to_numpy()
    return near_duplicates.joined(group, index[np.array(pairs, int).reshape(-1, 2)])
