"""The control of the domain task: how far the format of a text tells its domain, and what its words tell without the format."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rtx.baselines.classical import Fit, Fitted, Labelled, record, share_right
from rtx.baselines.counting_words import majority, tf_idf
from rtxlib.data.clean import UNIFORM_WORDS, letters_alone, uniform
from rtxlib.data.prepare import Prepared
from rtxlib.data.rows import SPLITS
from rtxstudy.statistics import mean_interval, paired_difference

LENGTH, SIGNS, BOTH, LEFT = "length", "signs", "length and signs", "length and signs of uniform texts"
WHOLE, LETTERS, UNIFORM = "words and signs", "words without signs", "a few words without signs"
CONSTANT = "one label for all"
_SPACED = re.compile(rf"\s[{re.escape(string.punctuation)}]")
_OTHERS: dict[str, Callable[[str], int]] = {
    "digits": lambda text: sum(map(str.isdigit, text)),
    "capitals": lambda text: sum(map(str.isupper, text)),
    "line breaks": lambda text: text.count("\n"),
    "not ASCII": lambda text: sum(ord(sign) > 127 for sign in text),
    "signs after a space": lambda text: len(_SPACED.findall(text)),  # as a treebank's tokeniser writes them
}


def length(texts: Sequence[str]) -> np.ndarray:
    """log(1 + n) of the characters and of the words of each text: (rows, 2)."""
    return np.log1p([[len(text), len(text.split())] for text in texts])


def signs(texts: Sequence[str]) -> np.ndarray:
    """log(1 + n) of each ASCII punctuation sign, and of the counts of ``_OTHERS``, in each text: (rows, signs)."""
    counts = ([text.count(sign) for sign in string.punctuation] + [n(text) for n in _OTHERS.values()] for text in texts)
    return np.log1p(list(counts))


def both(texts: Sequence[str]) -> np.ndarray:
    """:func:`length` beside :func:`signs`."""
    return np.hstack([length(texts), signs(texts)])


def of_format(features: Callable[[Sequence[str]], np.ndarray]) -> Fit:
    """A classifier of these features alone: logistic regression or gradient boosting, the better one on validation rows."""

    def fit(train: Labelled, validation: Labelled, classes: int) -> Fitted:
        models = (
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            HistGradientBoostingClassifier(early_stopping=False, random_state=0),
        )
        inputs, unseen = features(train.texts), features(validation.texts)
        right = [share_right(model.fit(inputs, train.labels).predict(unseen), validation.labels) for model in models]
        best = models[int(np.argmax(right))]
        return Fitted(lambda texts: best.predict(features(texts)), 0, {}, max(right))

    return fit


def uniform_words(texts: Sequence[str], labels: np.ndarray) -> int:
    """The words to which texts are cut: at most UNIFORM_WORDS, and few enough for three in four texts of each label."""
    counts = np.array([len(letters_alone(text).split()) for text in texts])
    shortest = min(np.quantile(counts[labels == label], 0.25) for label in np.unique(labels))
    return max(1, min(UNIFORM_WORDS, int(shortest)))


def format_control(data: Prepared) -> pd.DataFrame:
    """What format alone and words alone tell of the labels of single texts, all on the same rows.

    Texts with fewer words than :func:`uniform_words` are left out of every split. Columns: ``of`` ("format", "words" or
    "nothing"), ``input`` (what a classifier reads), ``accuracy`` with ``low`` and ``high`` (95 % interval over test texts),
    ``validation_accuracy``, ``n_test``, ``words`` (of a uniform text), ``left_out`` (test texts), and ``difference`` from the
    words and signs of the same texts with ``difference_low`` and ``difference_high``.
    """
    every = {split: Labelled(data.texts(split), np.array(data.splits[split].labels)) for split in SPLITS}
    words = uniform_words(*every["train"])
    parts = {split: _long_enough(part, words) for split, part in every.items()}
    train, validation, test = (parts[split] for split in SPLITS)

    def found(fit: Fit, change: Callable[[str], str] | None = None) -> dict:
        changed = [
            Labelled([change(text) for text in part.texts] if change else part.texts, part.labels)
            for part in (train, validation, test)
        ]
        return record("", fit, *changed, data.label_names)

    def cut(text: str) -> str:
        return uniform(text, words)

    rows = {
        ("nothing", CONSTANT): majority(train.labels, test.labels, data.label_names, validation.labels),
        ("format", LENGTH): found(of_format(length)),
        ("format", SIGNS): found(of_format(signs)),
        ("format", BOTH): found(of_format(both)),
        ("format", LEFT): found(of_format(both), cut),
        ("words", WHOLE): found(tf_idf),
        ("words", LETTERS): found(tf_idf, letters_alone),
        ("words", UNIFORM): found(tf_idf, cut),
    }
    right = {name: row["predictions"] == test.labels for name, row in rows.items()}
    sizes = {"n_test": len(test.labels), "words": words, "left_out": len(every["test"].labels) - len(test.labels)}
    table = []
    for (kind, view), row in rows.items():
        interval = mean_interval(right[kind, view].astype(float))
        change = paired_difference(right[kind, view], right["words", WHOLE])
        table.append(
            {
                "of": kind,
                "input": view,
                "accuracy": row["accuracy"],
                "low": max(interval.low, 0),
                "high": min(interval.high, 1),
            }
            | {"validation_accuracy": row["validation_accuracy"], **sizes, "difference": change.difference}
            | {"difference_low": change.low, "difference_high": change.high}
        )
    return pd.DataFrame(table)


def _long_enough(part: Labelled, words: int) -> Labelled:
    rows = [row for row, text in enumerate(part.texts) if len(letters_alone(text).split()) >= words]
    return Labelled([part.texts[row] for row in rows], part.labels[rows])
