"""What counting words gives without a neural network: the baselines every accuracy table holds."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rtxlib.errors import InputError
from rtxlib.runs.metrics import classification_report

NAME = "tf-idf + logistic regression"
STRENGTHS = (1.0, 3.0, 10.0)  # of logistic regression: C, the inverse of the L2 penalty
WORD = r"(?u)\b\w+\b"  # one-letter words too, so that "n't" and "I" leave a trace


def majority(train_labels: np.ndarray, test_labels: np.ndarray, label_names: Sequence[str]) -> dict:
    """The most frequent training label for every test row: the floor. Keys as in :func:`baseline`, ``C`` left out."""
    start = time.perf_counter()
    winner = int(np.bincount(_checked(train_labels, "training"), minlength=len(label_names)).argmax())
    predictions = np.full(len(test_labels), winner, dtype=np.int64)
    return {
        "model": "majority class",
        "family": "classical",
        **classification_report(test_labels, predictions, label_names),
        "seconds": time.perf_counter() - start,
        "n_features": 0,
        "parameters": 0,
        "predictions": predictions,
    }


def baseline(
    train_texts: Sequence[str],
    train_labels: np.ndarray,
    test_texts: Sequence[str],
    test_labels: np.ndarray,
    validation_texts: Sequence[str],
    validation_labels: np.ndarray,
    label_names: Sequence[str],
) -> dict:
    """TF-IDF of words and word pairs with logistic regression: a linear classifier that reads order in pairs only.

    Term counts are sublinear, 1 + log(count); C is the one of 1, 3, 10 with the best validation accuracy (the
    smallest at a tie). Labels are integers, shape (rows,). Returns ``model``, ``family``, what
    :func:`rtxlib.runs.metrics.classification_report` returns for the test rows, ``C``, ``seconds``
    (vectorising, all three fits and the choice), ``n_features``, ``parameters`` (weights and biases),
    ``ms_per_text`` (the test rows, all at once) and ``predictions`` (rows,) int64. Raises ``InputError`` when
    training labels are of one class only, or when a text and label count differ. Wang and Manning (2012), ACL, on
    how strong this is.
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
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD, lowercase=True)
    train, validation = words.fit_transform(train_texts), words.transform(validation_texts)
    fits = [LogisticRegression(C=strength, max_iter=1000).fit(train, train_labels) for strength in STRENGTHS]
    best = int(np.argmax([np.mean(fit.predict(validation) == validation_labels) for fit in fits]))
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    predictions = fits[best].predict(words.transform(test_texts)).astype(np.int64)
    return {
        "model": NAME,
        "family": "classical",
        **classification_report(test_labels, predictions, label_names),
        "C": STRENGTHS[best],
        "seconds": seconds,
        "n_features": len(words.vocabulary_),
        "parameters": fits[best].coef_.size + fits[best].intercept_.size,
        "ms_per_text": 1000 * (time.perf_counter() - start) / len(test_texts),
        "predictions": predictions,
    }


def _checked(labels: np.ndarray, split: str) -> np.ndarray:
    if len(labels) == 0:
        raise InputError(f"The {split} split has no rows; a baseline needs at least one.")
    return np.asarray(labels, dtype=np.int64)


def counting_words(data: Prepared, tested_on: Prepared | None = None) -> pd.DataFrame:
    """What is reached on these data without a neural network: by the majority class, and by TF-IDF with logistic regression.

    ``tested_on``: judge on the test split of these data instead. One row a classifier, with the columns that
    :func:`rtxlib.runs.store.runs_table` shares: model, family, seed, accuracy, f1, precision, recall, parameters,
    ms_per_text, n_test; and ``correct``, which test rows it got right. Raises InputError where the labels are others.
    """
    judge = tested_on or data
    if judge.label_names != data.label_names:
        raise InputError(f"What was learned of {', '.join(data.label_names)} cannot be judged by {', '.join(judge.label_names)}.")
    texts = {"train": data.texts("train"), "validation": data.texts("validation"), "test": judge.texts("test")}
    labels = {split: np.asarray((judge if split == "test" else data).splits[split].labels) for split in texts}
    rows = [
        majority(labels["train"], labels["test"], data.label_names),
        baseline(
            texts["train"],
            labels["train"],
            texts["test"],
            labels["test"],
            texts["validation"],
            labels["validation"],
            data.label_names,
        ),
    ]
    shown = ("model", "family", "accuracy", "f1", "precision", "recall", "parameters", "ms_per_text", "seconds", "C")
    return pd.DataFrame([{name: row.get(name) for name in shown} for row in rows]).assign(
        seed=0, n_test=len(labels["test"]), correct=[row["predictions"] == labels["test"] for row in rows]
    )
