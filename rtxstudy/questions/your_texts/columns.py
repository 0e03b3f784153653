"""Which column holds the texts and which the labels, where the user has not said."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rtx.classifiers.words import UNSPACED
from rtxlib.data.files import require_column
from rtxlib.data.rows import label_text, spread
from rtxlib.errors import InputError, few, shortened

TEXT_NAMES = (
    "text",
    "texts",
    "review",
    "sentence",
    "message",
    "tweet",
    "comment",
    "content",
    "body",
    "sms",
    "document",
    "title",
)
LABEL_NAMES = ("label", "labels", "class", "category", "target", "sentiment", "stars", "rating", "topic", "y")
MOST_LABELS = 1000  # that are compared
SURELY_LABELS = 20  # different values, of any kind, that are labels without a doubt
FEWEST_WORDS = 1.5  # words that a text has on average; a column of fewer is no column of texts, unless it is named
SIGNS = 2  # signs of a script without spaces that are about a word
LOOKED_AT = 5000  # rows that are looked at to guess a column


def choose(
    table: pd.DataFrame, name: str, text: str | None, label: str | None, others: Mapping[str, str | None] | None = None
) -> tuple[str, str, list[str]]:
    """The column of the texts, the column of the labels, and a sentence for each that was guessed.

    table: values as text. name: of the file. others: option → column that has another use. Raises InputError when a named column
    is missing, there twice, or named for two uses, or when a column cannot be guessed.
    """
    named = {"--text-column": text, "--label-column": label}
    for option, column in named.items():
        if column is not None:
            require_column(table, column, name, option)
    named |= others or {}
    for option, column in named.items():
        twice = next((other for other in named if other != option and named[other] == column is not None), None)
        if twice is not None:
            raise InputError(f"{option} and {twice} both name '{shortened(column)}'; name two columns.")
    used = set(named.values())
    free = [column for column in table.columns if column not in used and list(table.columns).count(column) == 1]
    sample, sentences, guessed = table.iloc[spread(len(table), LOOKED_AT)], [], text is None
    if guessed:
        text = _text_column(sample, free, name)
        sentences.append(f"The column '{shortened(text)}' was taken for the texts; --text-column names another.")
    if label is None:
        label = _label_column(sample, [column for column in free if column != text], name)
        sentences.append(f"The column '{shortened(label)}' was taken for the labels; --label-column names another.")
    for column in dict.fromkeys((text, label)):
        if (sample[column].astype(str).str.strip() == column.strip()).any():
            sentences.append(
                f"'{shortened(column)}' is the name of a column and one of its values. If the file has no line with the names "
                "of its columns, add one; its first row was taken for that line."
            )
    more = [column for column in _like_texts(sample, free) if column not in (text, label)]
    if guessed and more and named.get("--text-pair-column") is None:
        verb = "is" if len(more) == 1 else "are"
        sentences.append(
            f"{few(more, 4)} may hold texts too and {verb} not read; --text-pair-column names the second text of a pair."
        )
    return text, label, sentences


def _text_column(table: pd.DataFrame, columns: list[str], name: str) -> str:
    words = _like_texts(table, columns)
    called = [column for column in columns if column.strip().lower() in TEXT_NAMES]
    if not words and (twice := [c for c in table.columns if c.strip().lower() in TEXT_NAMES and c not in columns]):
        raise InputError(f"{name} has more than one column '{shortened(twice[0])}'; rename one.")
    if not words and len(called) == 1 and table[called[0]].nunique() == 1:
        return called[0]  # that all of its texts are the same is told later
    if not words:
        raise InputError(
            f"No column of {name} looks like texts (it has {few(table.columns, 8)}); name one with --text-column. The first line "
            "of the file must hold the names of its columns."
        )
    return max([column for column in called if column in words] or words, key=words.__getitem__)


def _like_texts(table: pd.DataFrame, columns: list[str]) -> dict[str, float]:
    """The columns that look like texts, with their average numbers of words."""
    texts = {column: table[column].astype(str) for column in columns}
    signs = {column: values.str.count(f"[{UNSPACED}]") / SIGNS for column, values in texts.items()}
    words = {column: (values.str.split().str.len() + signs[column]).mean() for column, values in texts.items()}
    return {column: many for column, many in words.items() if many >= FEWEST_WORDS and table[column].nunique() > 1}


def _label_column(table: pd.DataFrame, columns: list[str], name: str) -> str:
    def repeats(column: str) -> bool:
        values = table[column].map(label_text)
        values = values[values != ""]
        return len(values) > 0 and 2 <= values.nunique() <= min(200, len(values) / 3)

    fit = [column for column in columns if repeats(column)]
    named = [column for column in fit if column.strip().lower() in LABEL_NAMES]
    if len(named) == 1 or len(fit) == 1:
        return (named if len(named) == 1 else fit)[0]
    if named and "label" in [column.strip().lower() for column in named]:
        return next(column for column in named if column.strip().lower() == "label")
    twice = [c for c in table.columns if c.strip().lower() in LABEL_NAMES and list(table.columns).count(c) > 1]
    if not fit and twice:
        raise InputError(f"{name} has more than one column '{shortened(twice[0])}'; rename one.")
    if not fit:
        raise InputError(
            f"No column of {name} looks like labels, with a few values that repeat (it has {few(table.columns, 8)}); name one "
            "with --label-column."
        )
    raise InputError(
        f"The columns {few(named or fit, 8)} of {name} could each hold the labels; name one with --label-column."
    )


def check_labels(values: pd.Series, column: str, name: str) -> list[str]:
    """Raise InputError when the values of a label column (text, none empty) are no classes; else what is doubtful about them."""
    distinct, rows = values.nunique(), len(values)
    numbers = pd.to_numeric(values, errors="coerce").notna().all()
    if distinct < 2:
        only = f" ('{shortened(values.iloc[0], 40)}')" if rows else ""
        raise InputError(
            f"The column '{shortened(column)}' of {name} has {distinct} label{only}; at least two are needed."
        )
    if distinct <= SURELY_LABELS or (distinct <= min(MOST_LABELS, rows / 5) and not numbers):
        return []
    if distinct <= min(MOST_LABELS, rows / 5):
        return [
            f"The labels are {distinct} different numbers. If the column '{shortened(column)}' is a quantity, such as an age or "
            "a price, join its values into a few classes first: every number is a class of its own here."
        ]
    kind, so = ("numbers", "so it is a quantity and no class") if numbers else ("values", "so they are no classes")
    if not numbers and distinct > MOST_LABELS and distinct <= rows / 5:
        raise InputError(
            f"The column '{shortened(column)}' of {name} has {distinct:,} different labels, and at most {MOST_LABELS:,} are "
            "compared; join the rare ones, or take the rows of the frequent ones."
        )
    raise InputError(
        f"The column '{shortened(column)}' of {name} has {distinct:,} different {kind} in {rows:,} rows, {so}; name another "
        "column with --label-column, or join its values into a few."
    )
