"""Baselines without a neural network, for every accuracy table: the majority class, and TF-IDF with logistic regression."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rtxlib.data.prepared import Prepared
from rtxlib.data.rows import Text
from rtxlib.errors import InputError
from rtxlib.runs.metrics import classification_report

MAJORITY = "majority class"
NAME = "tf-idf + logistic regression"
SECOND_ALONE = f"{NAME}, second text alone"
STRENGTHS = (1.0, 3.0, 10.0)  # of logistic regression: C, the inverse of the L2 penalty
WORD = r"(?u)\b\w+\b"  # with one-letter words, so that "n't" and "I" are counted


def counting_words(data: Prepared, tested_on: Prepared | None = None) -> pd.DataFrame:
    """Two classifiers without a neural network, trained on these data: one row for each.

    Of pairs there is a third row, :data:`SECOND_ALONE`: the same as the second, without the first texts. In inference data the
    second text, the hypothesis, gives much of the label away (Gururangan et al. 2018).

    tested_on: the data whose test split is used; None: that of ``data``. The columns model, family, seed, accuracy, f1,
    precision, recall, parameters, ms_per_text and n_test are those of :func:`rtxlib.runs.store.runs_table`. Further columns are
    seconds, C and ``correct``: booleans (test rows,), the test rows that were classified correctly. Raises InputError when the
    two data sets have different labels.
    """
    judge = tested_on or data
    if judge.label_names != data.label_names:
        raise InputError(f"A classifier of {', '.join(data.label_names)} cannot be judged by {', '.join(judge.label_names)}.")
    source = {"train": data, "validation": data, "test": judge}
    texts = {split: of.texts(split) for split, of in source.items()}
    labels = {split: np.asarray(of.splits[split].labels) for split, of in source.items()}

    def counted(texts: Mapping[str, Sequence[Text]]) -> dict:
        of_splits = [part for split in ("train", "test", "validation") for part in (texts[split], labels[split])]
        return baseline(*of_splits, data.label_names)

    rows = [majority(labels["train"], labels["test"], data.label_names), counted(texts)]
    if not isinstance(texts["train"][0], str):
        seconds = {split: _side(pairs, 1) for split, pairs in texts.items()}
        rows.append(counted(seconds) | {"model": SECOND_ALONE})
    shown = ("model", "family", "accuracy", "f1", "precision", "recall", "parameters", "ms_per_text", "seconds", "C")
    return pd.DataFrame([{name: row.get(name) for name in shown} for row in rows]).assign(
        seed=0, n_test=len(labels["test"]), correct=[row["predictions"] == labels["test"] for row in rows]
    )


def majority(train_labels: np.ndarray, test_labels: np.ndarray, label_names: Sequence[str]) -> dict:
    """The most frequent training label, given to every test row. The keys are those of :func:`baseline`, without ``C``."""
    start = time.perf_counter()
    winner = int(np.bincount(_checked(train_labels, "training"), minlength=len(label_names)).argmax())
    predictions = np.full(len(test_labels), winner, dtype=np.int64)
    return {
        "model": MAJORITY,
        "family": "classical",
        **classification_report(test_labels, predictions, label_names),
        "seconds": time.perf_counter() - start,
        "parameters": 0,
        "predictions": predictions,
    }


def baseline(
    train_texts: Sequence[Text],
    train_labels: np.ndarray,
    test_texts: Sequence[Text],
    test_labels: np.ndarray,
    validation_texts: Sequence[Text],
    validation_labels: np.ndarray,
    label_names: Sequence[str],
) -> dict:
    """TF-IDF of words and word pairs with logistic regression: a linear classifier that sees word order only within pairs.

    Term counts are sublinear, 1 + log(count). C is the value among :data:`STRENGTHS` with the best validation accuracy, the
    smallest one if several are equal. Wang and Manning (2012), ACL, show how strong such a baseline is. Of pairs of texts the
    terms of the first and of the second text are counted apart.

    Returns ``model``, ``family``, the scores of :func:`rtxlib.runs.metrics.classification_report` on the test rows, ``C``,
    ``seconds`` (vectorising, all fits and the choice of C), ``parameters`` (weights and biases),
    ``ms_per_text`` (all test rows at once) and ``predictions``, (test rows,) int64.

    Labels are integers, (rows,). Raises ``InputError`` when a split is empty, when the training labels are of one class, when the
    training texts hold no words, or when the numbers of texts and labels differ.
    """
    for split, texts, labels in (
        ("training", train_texts, train_labels),
        ("validation", validation_texts, validation_labels),
        ("test", test_texts, test_labels),
    ):
        if len(texts) != len(_checked(labels, split)):
            raise InputError(f"The {split} split has {len(texts)} texts but {len(labels)} labels.")
    if len(np.unique(train_labels)) < 2:
        raise InputError("The training labels are all of one class; logistic regression needs at least two.")
    start = time.perf_counter()
    sides = [
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD, lowercase=True)
        for _ in ((train_texts[0],) if isinstance(train_texts[0], str) else train_texts[0])
    ]
    try:
        for side, words in enumerate(sides):
            words.fit(_side(train_texts, side))
        train, validation = _counted(train_texts, sides), _counted(validation_texts, sides)
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise InputError("The training texts hold no words, only signs.") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn takes hundreds of labels with a few rows each for a mistake
        fits = [LogisticRegression(C=strength, max_iter=1000).fit(train, train_labels) for strength in STRENGTHS]
    best = int(np.argmax([np.mean(fit.predict(validation) == validation_labels) for fit in fits]))
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    predictions = fits[best].predict(_counted(test_texts, sides)).astype(np.int64)
    return {
        "model": NAME,
        "family": "classical",
        **classification_report(test_labels, predictions, label_names),
        "C": STRENGTHS[best],
        "seconds": seconds,
        "parameters": fits[best].coef_.size + fits[best].intercept_.size,
        "ms_per_text": 1000 * (time.perf_counter() - start) / len(test_texts),
        "predictions": predictions,
    }


def _side(texts: Sequence[Text], side: int) -> Sequence[str]:
    """The texts, or the first (0) or second (1) text of each pair."""
    return texts if isinstance(texts[0], str) else [pair[side] for pair in texts]


def _counted(texts: Sequence[Text], sides: Sequence[TfidfVectorizer]) -> csr_matrix:
    """The terms of each row (rows, terms), counted by one vectoriser for each of its texts."""
    return hstack([words.transform(_side(texts, side)) for side, words in enumerate(sides)], format="csr")


def _checked(labels: np.ndarray, split: str) -> np.ndarray:
    if len(labels) == 0:
        raise InputError(f"The {split} split has no rows; a baseline needs at least one.")
    return np.asarray(labels, dtype=np.int64)
