"""What the texts are like: their labels and lengths, and what is odd about them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from rtx.classifiers.words import WORD
from rtxlib.data.clean import strip_tags
from rtxlib.data.rows import sides
from rtxlib.data.tokenization import encode
from rtxstudy.numbers import percent

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from rtxstudy.questions.your_texts.texts import Texts

FINDINGS = ["kind", "rows", "of", "what", "example"]
TELLS = 0.9  # F1 of a rule by one word or by length that gives a label away
SPLIT_PIECES = 1.8  # word pieces for each word; English text has about 1.3, German 2.2, French 1.9
UNKNOWN = 0.02  # share of unknown tokens
GARBLED = re.compile("\ufffd|Ã[\x80-\xbf]|â€|Â[\xa0-\xbf]")  # UTF-8 that was read as another encoding


def labels(texts: Texts) -> pd.DataFrame:
    """Columns split, label_name, rows: how many rows of each label each split has."""
    named = texts.table.assign(label_name=[texts.label_names[number] for number in texts.table["label"]])
    counts = named.groupby(["split", "label_name"]).size().rename("rows").reset_index()
    order = {name: place for place, name in enumerate(("train", "validation", "test"))}
    return counts.sort_values(["split", "label_name"], key=lambda keys: keys.map(order) if keys.name == "split" else keys)


def lengths(texts: Texts, tokenizer: PreTrainedTokenizerFast) -> pd.DataFrame:
    """One row per text: split, tokens, words, unknown (tokens that the vocabulary does not have)."""
    ids, offsets = encode(texts.texts(np.arange(len(texts.table))), tokenizer, None)
    unknown = np.add.reduceat(ids == tokenizer.unk_token_id, offsets[:-1])
    return pd.DataFrame({"split": texts.table["split"], "tokens": np.diff(offsets), "words": texts.words, "unknown": unknown})


def findings(texts: Texts, sizes: pd.DataFrame, limit: int, english: bool = True) -> pd.DataFrame:
    """What is odd about the texts, one row for each kind that occurs.

    sizes: of :func:`lengths`; limit: tokens that a model reads; english: whether the tokens are those of MiniLM, which was
    pretrained on English, and not of these texts. Columns :data:`FINDINGS`: ``rows`` of ``of`` rows show it,
    ``what`` is a name or a number that the sentence needs, ``example`` a text.
    """
    table, records = texts.table, []

    def note(kind: str, rows: int, what: Any = "", example: str = "", total: int = len(table)) -> None:
        if rows:
            records.append({"kind": kind, "rows": int(rows), "of": total, "what": str(what), "example": example})

    table = table.assign(raw=[" ".join(sides(text)) for text in texts.raw(np.arange(len(table)))])
    again = table[texts.text_columns].duplicated()
    note("repeated", again.sum(), example=_first(table, again))
    torn = table.groupby(texts.text_columns)["label"].transform("nunique") > 1
    note("two labels", torn.sum(), len(table.loc[torn, texts.text_columns].drop_duplicates()), _first(table, torn))
    if not texts.pairs:  # of which those with one first text are alike
        near = table.groupby("alike")["text"].transform("nunique") > 1
        note("near", near.sum(), table.loc[near, "alike"].nunique(), _first(table, near))
    cut = sizes["tokens"] > limit
    note("cut", cut.sum(), limit)
    pieces = (sizes["tokens"] - 2) / sizes["words"].clip(lower=1)
    share = sizes["unknown"].sum() / max(1, (sizes["tokens"] - 2).sum())
    if english and share >= UNKNOWN:
        note("unknown", (sizes["unknown"] > 0).sum(), percent(share, 0), _first(table, sizes["unknown"] > 0))
    if english and pieces.median() >= SPLIT_PIECES:
        note("split", len(table), f"{pieces.median():.1f}", _first(table, pieces >= SPLIT_PIECES))
    unspaced = pd.Series(texts.signs > 0.5 * texts.words, table.index)
    if english and texts.signs.sum() > 0.5 * texts.words.sum():
        note("script", unspaced.sum(), example=_first(table, unspaced))
    garbled = table["raw"].str.contains(GARBLED)
    note("garbled", garbled.sum(), example=_first(table, garbled, "raw"))
    markup = table["raw"].map(strip_tags) != table["raw"]
    note("markup", markup.sum(), example=_first(table, markup, "raw"))
    for kind, name, label, score in [*_by_length(texts), *_by_word(texts)]:
        note(kind, (table["label"] == label).sum(), f"{name}|{texts.label_names[label]}|{score:.2f}")
    for column in _ids(texts.other):
        note("id", len(texts.other), column, total=len(texts.other))
    return pd.DataFrame(records, columns=FINDINGS)


def _first(table: pd.DataFrame, mask: pd.Series, column: str = "text") -> str:
    return str(table.loc[mask.to_numpy(), column].iloc[0])[:200] if mask.any() else ""


def _by_length(texts: Texts) -> list[tuple[str, str, int, float]]:
    """A label that the length of a text gives away: ("length", "", label, F1 of a small tree), or nothing."""
    train, judged = texts.rows("train")[::2], texts.rows("train")[1::2]
    length = np.stack([texts.table[column].str.len() for column in texts.text_columns], axis=1)
    tree = DecisionTreeClassifier(
        max_leaf_nodes=2 * len(texts.label_names), min_samples_leaf=5, class_weight="balanced"
    )
    tree.fit(length[train], texts.numbers(train))
    scores = f1_score(
        texts.numbers(judged),
        tree.predict(length[judged]),
        labels=range(len(texts.label_names)),
        average=None,
        zero_division=0,
    )
    share = np.bincount(texts.numbers(judged), minlength=len(scores)) / len(judged)
    scores = np.where(_tells(scores, share), scores, 0)
    best = int(np.argmax(scores))
    return [("length", "", best, float(scores[best]))] if scores[best] > 0 and len(judged) >= 20 else []


def _tells(f1: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Whether a rule gives a label away: its F1 is high, and halves what is missing to 1 where every text is given this label.

    f1: of the rules. share: of the rows, how many have the label.
    """
    always = 2 * share / (1 + share)  # F1 of giving every text this label
    return (f1 >= TELLS) & (1 - f1 <= (1 - always) / 2)


def _by_word(texts: Texts) -> list[tuple[str, str, int, float]]:
    """Labels that one word gives away: ("word", word, label, F1 of the rule "has the word")."""
    train = texts.rows("train")
    counter = CountVectorizer(binary=True, token_pattern=WORD, min_df=5, max_features=20_000)
    try:
        has = counter.fit_transform(texts.whole(train)).T.tocsr().astype(np.float64)  # (words, rows)
    except ValueError:  # no word occurs five times
        return []
    of_label = np.eye(len(texts.label_names))[texts.numbers(train)]  # (rows, labels)
    both = has @ of_label
    f1 = 2 * both / (np.asarray(has.sum(axis=1)) + of_label.sum(axis=0))
    best, words, share = f1.argmax(axis=0), counter.get_feature_names_out(), of_label.mean(axis=0)
    return [
        ("word", words[word], label, float(f1[word, label]))
        for label, word in enumerate(best)
        if _tells(f1[word, label], share[label])
    ]


def _ids(other: pd.DataFrame) -> list[str]:
    """The columns whose values are short and all different, as identifiers are."""
    return [
        column
        for column in other.columns
        if list(other.columns).count(column) == 1
        and len(other) >= 20
        and other[column].nunique() > 0.98 * len(other)
        and other[column].astype(str).str.split().str.len().max() <= 1
    ]
