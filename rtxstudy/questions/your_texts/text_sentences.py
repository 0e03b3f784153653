"""Sentences about somebody's own texts: what they are, and what is odd about them. Notebook 10 imports this module itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from rtxlib.errors import counted
from rtxlib.runs.card import plain
from rtxstudy.numbers import percent

SPLITS = {"train": "training", "validation": "validation", "test": "test"}
MOST_NAMED = 6  # labels that a sentence names
EXAMPLE = 120  # characters of a text that a sentence shows


def setting(
    name: str,
    columns: tuple[str, str, str | None],
    balance: pd.DataFrame,
    sentences: Iterable[str],
    cross_validated: bool,
) -> str:
    """What the file holds. columns: of the texts, of the labels, of second texts. balance: split, label_name, rows."""
    counts = balance.groupby("label_name", sort=False)["rows"].sum()
    frequent = counts.sort_values(ascending=False)
    shares = ", ".join(
        f"{plain(str(label))} {percent(rows / counts.sum(), 0)}" for label, rows in frequent.head(MOST_NAMED).items()
    )
    more = f" and {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    rows = balance.groupby("split", sort=False)["rows"].sum()
    splits = ", ".join(f"{rows[split]:,} {word}" for split, word in SPLITS.items() if split in rows)
    judged = (
        "Models are chosen by cross-validation on the training texts."
        if cross_validated
        else "Models are chosen on the validation texts."
    )
    text, label = map(plain, columns[:2])
    what = f"texts (column *{text}*)" if columns[2] is None else f"pairs of texts (columns *{text}* and *{plain(columns[2])}*)"
    first = (
        f"**{plain(name)}**: {counts.sum():,} {what} with {counted(len(counts), 'label')} (column *{label}*): "
        f"{shares}{more}. {splits} texts. {judged} The test texts decide nothing."
    )
    return "\n".join([first, "", *(f"- {plain(sentence)}" for sentence in sentences)])


def lengths(table: pd.DataFrame, limit: int) -> str:
    """How long the texts are. table: columns tokens, words."""
    tokens = table["tokens"]
    return (
        f"Half of the texts have at most {tokens.median():,.0f} tokens, and nine of ten at most {tokens.quantile(0.9):,.0f}. "
        f"The encoders read {limit} tokens of a text; {percent((tokens > limit).mean())} of the texts are longer."
    )


def oddities(findings: pd.DataFrame) -> str:
    """One sentence for each kind of finding (:func:`rtxstudy.questions.your_texts.text_facts.findings`), as a list."""
    if findings.empty:
        return "Nothing odd was found: no repeated texts, no text with two labels, and no label that a word or the length tells."
    return "\n".join(f"- {_SENTENCES[row['kind']](row)}" for row in findings.to_dict("records"))


def _example(row: Mapping[str, Any]) -> str:
    text = str(row["example"])
    return f" For example: “{plain(text[:EXAMPLE])}{'…' if len(text) > EXAMPLE else ''}”" if text else ""


def _texts(row: Mapping[str, Any], one: str = "", more: str = "") -> str:
    """How many texts, with a verb for one text and another for more."""
    return f"1 text {one}".rstrip() if row["rows"] == 1 else f"{row['rows']:,} texts {more}".rstrip()


def _rule(row: Mapping[str, Any]) -> tuple[str, str, str]:
    word, _, rest = str(row["what"]).partition("|")
    label, _, score = rest.rpartition("|")  # a label may hold the sign
    return plain(word), plain(label), score


def _word(row: Mapping[str, Any]) -> str:
    word, label, score = _rule(row)
    return (
        f"**One word gives a label away.** “{word}” stands in nearly every text of the label {label} and in few others (F1 of "
        f"that rule: {score}). If the word was put there with the label, new texts will not have it."
    )


def _length(row: Mapping[str, Any]) -> str:
    _, label, score = _rule(row)
    return (
        f"**Length gives a label away.** The number of characters alone finds the label {label} with an F1 of {score}. Models "
        "will learn the length."
    )


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "repeated": lambda row: (
        f"**Repeated texts.** {_texts(row, 'repeats', 'repeat')} an earlier one. All copies stay on one side of every split."
        f"{_example(row)}"
    ),
    "two labels": lambda row: (
        f"**Same text, two labels.** {_texts(row)} ({row['what']} different) occur with more than one label. No model can be "
        f"right on all of them.{_example(row)}"
    ),
    "near": lambda row: (
        f"**Near-duplicates.** {_texts(row, 'is', 'are')} nearly the same as another, or inside it "
        f"({counted(int(row['what']), 'group')}). Each group stays on one side of every split."
    ),
    "cut": lambda row: (
        f"**Long texts.** Of {_texts(row)} the encoders read only the first {row['what']} tokens. Counting words reads more."
    ),
    "unknown": lambda row: (
        f"**Unknown characters.** {row['what']} of all tokens are not in the vocabulary of the pretrained encoder, so it cannot "
        f"read these texts well. Models that start from scratch learn a vocabulary of their own.{_example(row)}"
    ),
    "split": lambda row: (
        f"**Another language or script.** A word has {row['what']} word pieces in the vocabulary of the pretrained encoder; in "
        f"English about 1.3. It was pretrained on English and may know little of these texts.{_example(row)}"
    ),
    "script": lambda row: (
        f"**Another script.** {_texts(row, 'is', 'are')} written without spaces between words, as Chinese and Japanese are. The "
        f"pretrained encoder was pretrained on English and may know little of these texts.{_example(row)}"
    ),
    "garbled": lambda row: (
        f"**Wrong encoding.** {_texts(row, 'has', 'have')} characters that a wrong encoding leaves, such as UTF-8 read as "
        f"Latin-1. Export the file again as UTF-8.{_example(row)}"
    ),
    "markup": lambda row: (
        f"**Markup.** {_texts(row, 'has', 'have')} HTML tags, which are left out before a model reads them.{_example(row)}"
    ),
    "length": _length,
    "word": _word,
    "id": lambda row: (
        f"**An identifier.** The column {plain(str(row['what']))} has another value in nearly every row. No model reads it."
    ),
}
